//! Percentile bootstrap over seeds.
//!
//! The seeds are drawn with replacement, n of n, and the mean and median of each draw are collected; the interval
//! excludes 2.5% of them on either side. Up to [`EXACT_UP_TO`] seeds all `n^n` draws are enumerated, so that the
//! result is deterministic; above, [`DRAWS`] draws are made with the given generator.
//!
//! The percentile interval is used and not BCa: the acceleration of BCa comes from a jackknife, which is inconsistent
//! for a median and rests on three points at n = 3. Percentiles never leave the range of the data, so that shares
//! stay between 0 and 100%.
//!
//! A bootstrap of few seeds is too narrow. At n = 3 the interval ranges from the smallest to the largest seed, which
//! covers the median in 3 of 4 cases only. METHODOLOGY.md lists the measured coverage, which a test verifies.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Number of seeds up to which every resample is enumerated (8^8 resamples of 6435 kinds).
pub const EXACT_UP_TO: usize = 8;
/// Number of random resamples above [`EXACT_UP_TO`].
pub const DRAWS: u32 = 10_000;
/// Number of draws that are summed at once.
const AT_ONCE: usize = 1000;
/// Inverse of the share outside the interval on either side: 2.5%.
const ONE_IN: u64 = 40;
/// Number of standard deviations from the mean beyond which the ends of the interval are searched first; the ends of
/// normal sums are at 1.96.
const TAIL: f64 = 1.7;

/// 95% percentile intervals of mean and median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// Interval of the mean.
    pub mean95: (f64, f64),
    /// Interval of the median.
    pub median95: (f64, f64),
}

/// Returns percentile intervals of `values`; `None` for fewer than two values or if one is not finite. `resamples`
/// must return resamples of as many values; it is called for more than [`EXACT_UP_TO`] values only.
pub fn percentile(
    values: &[f64],
    resamples: impl FnOnce(usize) -> Arc<Resamples>,
) -> Option<Bootstrap> {
    let n = values.len();
    if n < 2 || values.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if n > EXACT_UP_TO {
        return Some(resamples(n).intervals(&sorted));
    }
    let mut draws = Draws { sorted, means: Vec::new(), medians: Vec::new() };
    draws.every(&mut vec![0; n], 0, n, (1..=n as u64).product());
    Some(Bootstrap { mean95: ends(draws.means), median95: ends(draws.medians) })
}

/// [`DRAWS`] draws of `n` values, as the number of times that each index is drawn. They do not depend on the values
/// and are shared by all estimates from the same number of seeds.
#[derive(Debug)]
pub struct Resamples {
    /// Counts by index, then by draw. Bytes, so that all lists of 50 seeds fit into the cache of a core; the
    /// probability that an index is drawn 256 times is below 1e-500.
    counts: Vec<Vec<u8>>,
    /// Pairs of indices, in ascending order of values, between which the median of a draw lies, with the number of
    /// draws of each pair.
    medians: BTreeMap<(usize, usize), u64>,
}

impl Resamples {
    /// Draws resamples of `n` values.
    pub fn draw(n: usize, rng: &mut ChaCha8Rng) -> Self {
        let mut counts = vec![vec![0_u8; DRAWS as usize]; n];
        let mut medians = BTreeMap::new();
        let mut drawn = vec![0; n];
        for draw in 0..DRAWS as usize {
            for place in &mut drawn {
                *place = rng.random_range(0..n);
                counts[*place][draw] = counts[*place][draw].saturating_add(1);
            }
            drawn.sort_unstable();
            *medians.entry((drawn[(n - 1) / 2], drawn[n / 2])).or_default() += 1;
        }
        Self { counts, medians }
    }

    fn intervals(&self, sorted: &[f64]) -> Bootstrap {
        let mut sums = vec![0.0; DRAWS as usize];
        // In blocks that stay in the L1 cache while all values are added.
        pulp::Arch::new().dispatch(|| {
            for (piece, sums) in sums.chunks_mut(AT_ONCE).enumerate() {
                for (value, counts) in sorted.iter().zip(&self.counts) {
                    for (sum, count) in sums.iter_mut().zip(&counts[piece * AT_ONCE..]) {
                        *sum += value * f64::from(*count);
                    }
                }
            }
        });
        let (low, high) = ends_of_sums(&mut sums, sorted);
        let n = sorted.len() as f64;
        let mean95 = (low / n, high / n);
        let medians = self
            .medians
            .iter()
            .map(|((lower, upper), ways)| (f64::midpoint(sorted[*lower], sorted[*upper]), *ways));
        Bootstrap { mean95, median95: ends(medians.collect()) }
    }
}

/// Returns the sums of draws of `values` with as many other draws beyond them as are outside the interval on either side.
fn ends_of_sums(sums: &mut [f64], values: &[f64]) -> (f64, f64) {
    let outside = sums.len().div_ceil(ONE_IN as usize);
    let middle: f64 = values.iter().sum();
    let mean = middle / values.len() as f64;
    let deviation = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>().sqrt();
    let (below, above) = (middle - TAIL * deviation, middle + TAIL * deviation);
    // The tails, which are much faster to search than all sums. Written and counted without a branch.
    let mut tails = [vec![0.0; sums.len()], vec![0.0; sums.len()]];
    let mut counts = [0; 2];
    for sum in &*sums {
        let within = [*sum <= below, *sum >= above];
        for ((tail, count), within) in tails.iter_mut().zip(&mut counts).zip(within) {
            tail[*count] = *sum;
            *count += usize::from(within);
        }
    }
    // Sums that overflow are left to the slower search.
    let finite = middle.is_finite() && deviation.is_finite();
    if finite && counts.iter().all(|count| *count >= outside) {
        let [left, right] = &mut tails;
        let (left, right) = (&mut left[..counts[0]], &mut right[..counts[1]]);
        let place = right.len() - outside;
        let low = *left.select_nth_unstable_by(outside - 1, f64::total_cmp).1;
        return (low, *right.select_nth_unstable_by(place, f64::total_cmp).1);
    }
    let (_, low, rest) = sums.select_nth_unstable_by(outside - 1, f64::total_cmp);
    let place = rest.len() - outside;
    (*low, *rest.select_nth_unstable_by(place, f64::total_cmp).1)
}

/// Statistics of draws, each with the number of ways to draw it.
struct Draws {
    sorted: Vec<f64>,
    means: Vec<(f64, u64)>,
    medians: Vec<(f64, u64)>,
}

impl Draws {
    /// Adds all draws whose first `from` counts are the given ones and whose other counts sum to `left`. `ways` is
    /// `n! / (counts[0]! ... counts[from - 1]!)`.
    fn every(&mut self, counts: &mut Vec<usize>, from: usize, left: usize, ways: u64) {
        if from + 1 == counts.len() {
            counts[from] = left;
            self.keep(counts, ways / (1..=left as u64).product::<u64>());
            return;
        }
        for count in 0..=left {
            counts[from] = count;
            let ways = ways / (1..=count as u64).product::<u64>();
            self.every(counts, from + 1, left - count, ways);
        }
    }

    fn keep(&mut self, counts: &[usize], ways: u64) {
        let n = self.sorted.len();
        let pairs = || self.sorted.iter().zip(counts);
        let mean = pairs().map(|(x, count)| x * *count as f64).sum::<f64>() / n as f64;
        let drawn: Vec<f64> =
            pairs().flat_map(|(x, count)| std::iter::repeat_n(*x, *count)).collect();
        self.means.push((mean, ways));
        self.medians.push((sorted_median(&drawn), ways));
    }
}

/// Returns the middle value, or the mean of the middle two of an even number; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| sorted_median(&sorted))
}

/// Returns the median of values in ascending order; NaN if there are none.
pub fn sorted_median(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    match (sorted.get(n / 2), n % 2) {
        (None, _) => f64::NAN,
        (Some(upper), 1) => *upper,
        (Some(upper), _) => f64::midpoint(sorted[n / 2 - 1], *upper),
    }
}

/// Returns the smallest value with at least 2.5% of the weight at or below it, and the largest value with at least
/// 2.5% at or above it.
pub fn ends(mut weighted: Vec<(f64, u64)>) -> (f64, f64) {
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: u64 = weighted.iter().map(|(_, weight)| weight).sum();
    let end = |values: &mut dyn Iterator<Item = &(f64, u64)>| {
        let mut sum = 0;
        for (value, weight) in values {
            sum += weight;
            if sum * ONE_IN >= total {
                return *value;
            }
        }
        f64::NAN
    };
    (end(&mut weighted.iter()), end(&mut weighted.iter().rev()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn seeded(values: &[f64], seed: u64) -> Bootstrap {
        let draw = |n| Arc::new(Resamples::draw(n, &mut ChaCha8Rng::seed_from_u64(seed)));
        percentile(values, draw).unwrap()
    }

    fn interval(values: &[f64]) -> Bootstrap {
        seeded(values, 1)
    }

    #[test]
    fn an_even_number_of_values_has_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn three_seeds_reach_from_the_least_to_the_greatest() {
        // All three draws are the smallest value with probability 1/27, more than 2.5%.
        let b = interval(&[0.5, 0.9, 0.6]);
        assert_eq!((b.mean95, b.median95), ((0.5, 0.9), (0.5, 0.9)));
    }

    #[test]
    fn every_draw_is_counted_once() {
        let mut draws = Draws { sorted: vec![0.0; 5], means: Vec::new(), medians: Vec::new() };
        draws.every(&mut vec![0; 5], 0, 5, 120);
        assert_eq!(draws.means.len(), 126);
        assert_eq!(draws.means.iter().map(|(_, ways)| ways).sum::<u64>(), 3125);
    }

    #[test]
    fn an_interval_mirrors_and_stays_within_the_data() {
        let values = [0.1, 0.15, 0.4, 0.8, 1.0, 1.0];
        let (b, mirrored) = (interval(&values), interval(&values.map(|x| -x)));
        assert!((b.mean95.0 + mirrored.mean95.1).abs() < 1e-12);
        assert!((b.median95.1 + mirrored.median95.0).abs() < 1e-12);
        assert!(b.mean95.0 >= 0.1 && b.mean95.1 <= 1.0);
    }

    #[test]
    fn the_same_generator_gives_the_same_interval() {
        let values: Vec<f64> = (0..12_u32).map(|i| f64::from(i * i)).collect();
        assert_eq!(interval(&values), interval(&values));
        let other = seeded(&values, 2);
        assert!((other.mean95.0 - interval(&values).mean95.0).abs() < 2.0);
    }

    #[test]
    fn one_value_and_values_that_are_not_finite_have_none() {
        let never = |_| panic!("few values need no draws");
        assert_eq!(percentile(&[1.0], never), None);
        assert_eq!(percentile(&[1.0, f64::INFINITY, 0.0], never), None);
    }

    #[test]
    fn the_ends_of_sums_are_those_of_sorted_sums() {
        let all_but_one = [&[0.0; 19][..], &[1.0]].concat();
        let mut values: Vec<Vec<f64>> = vec![vec![0.25; 12], all_but_one, vec![-1e308; 30]];
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        values.extend((0..20).map(|_| (0..50).map(|_| rng.random::<f64>() - 0.5).collect()));
        let mut tails = 0;
        for values in values {
            let n = values.len();
            let mut draw = |_| (0..n).map(|_| values[rng.random_range(0..n)]).sum();
            let sums: Vec<f64> = (0..DRAWS).map(&mut draw).collect();
            let mut sorted = sums.clone();
            sorted.sort_by(f64::total_cmp);
            let (low, high) = ends_of_sums(&mut sums.clone(), &values);
            assert_eq!((low, high), (sorted[249], sorted[9750]));
            tails += u32::from(low < high);
        }
        assert!(tails > 20, "{tails}");
    }

    #[test]
    fn drawn_and_counted_intervals_agree() {
        // The intervals by all 8^8 draws and by 10 000 random draws differ little.
        let values = [0.11, 0.2, 0.33, 0.47, 0.5, 0.68, 0.74, 0.9];
        let counted = interval(&values);
        let draws = Resamples::draw(8, &mut ChaCha8Rng::seed_from_u64(3));
        let drawn = draws.intervals(&values);
        for (a, b) in [(counted.mean95, drawn.mean95), (counted.median95, drawn.median95)] {
            assert!((a.0 - b.0).abs() < 0.02 && (a.1 - b.1).abs() < 0.02, "{counted:?} {drawn:?}");
        }
    }
}
