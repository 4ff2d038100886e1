//! Integer draws that use `ChaCha8` words only, so that an update of `rand` cannot change a sample.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

/// Draws uniformly from `0..n`.
///
/// Multiply-shift without rejection: a value's probability is off by less than 2^-32, and each draw uses one word.
pub(crate) fn below(rng: &mut ChaCha8Rng, n: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(n)) >> 32) as u32
}

/// Weighted choice among `N` things, exact to 2^-31.
#[derive(Debug, Clone)]
pub(crate) struct Weighted<const N: usize> {
    /// Cumulative weights, scaled to 2^31.
    upper: [u32; N],
}

impl<const N: usize> Weighted<N> {
    /// Returns a choice with these weights, which must be finite, not negative and not all zero.
    pub(crate) fn new(weights: [f64; N]) -> Self {
        const SCALE: f64 = (1_u32 << 31) as f64;
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let upper = weights.map(|weight| {
            sum += weight;
            (sum / total * SCALE).round() as u32
        });
        Self { upper }
    }

    /// Draws a choice and, from the unused bit of the word, a fair coin (0 or 1).
    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> (usize, u32) {
        let word = rng.next_u32();
        let point = word >> 1;
        // The last bound is always 2^31; counting the others has no branch to mispredict.
        let choice = self.upper[..N - 1].iter().filter(|u| point >= **u);
        (choice.count(), word & 1)
    }
}

/// Random stream of an evaluation set, keyed by a hash so that no training seed leads to it.
pub(crate) fn eval_rng(task: &str, split: &str, len: usize, seed: u64) -> ChaCha8Rng {
    let key = Sha256::digest(format!("pe-zoo/tasks/eval/{task}/{split}/{len}/{seed}"));
    ChaCha8Rng::from_seed(key.into())
}

/// Random stream of one sample of a finite training set, different from every evaluation stream.
pub(crate) fn train_rng(task: &str, len: usize, index: u32) -> ChaCha8Rng {
    let key = Sha256::digest(format!("pe-zoo/tasks/train/{task}/{len}/{index}"));
    ChaCha8Rng::from_seed(key.into())
}

/// Draws `count` different values of `0..n`, in random order; `count` is at most `n`.
pub(crate) fn distinct(rng: &mut ChaCha8Rng, count: usize, n: u32) -> Vec<u32> {
    let mut drawn = Vec::with_capacity(count);
    if 4 * count > n as usize {
        drawn.extend(0..n);
        for k in 0..count {
            let pick = k + below(rng, n - k as u32) as usize;
            drawn.swap(k, pick);
        }
        drawn.truncate(count);
        return drawn;
    }
    // Few among many: redrawing duplicates is cheaper than listing all values.
    let mut seen = vec![0_u64; (n as usize).div_ceil(64)];
    while drawn.len() < count {
        let value = below(rng, n);
        let (word, bit) = ((value / 64) as usize, 1 << (value % 64));
        if seen[word] & bit == 0 {
            seen[word] |= bit;
            drawn.push(value);
        }
    }
    drawn
}

/// Shuffles items into a uniformly random order.
pub(crate) fn shuffle(rng: &mut ChaCha8Rng, items: &mut [u32]) {
    for k in (1..items.len()).rev() {
        items.swap(k, below(rng, k as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_kept_and_the_coin_is_fair_and_independent() {
        let odds = Weighted::new([1.0, 50.0, 7.0]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counts = [[0_u32; 2]; 3];
        for _ in 0..580_000 {
            let (choice, coin) = odds.draw(&mut rng);
            counts[choice][coin as usize] += 1;
        }
        for (count, expected) in counts.iter().zip([5_000_i64, 250_000, 35_000]) {
            for side in count {
                // 5 standard deviations of a binomial count.
                let tolerance = 5.0 * (expected as f64).sqrt();
                assert!(((i64::from(*side) - expected) as f64).abs() < tolerance);
            }
        }
    }

    #[test]
    fn zero_weights_are_never_drawn() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for (weights, only) in [([1.0, 0.0, 0.0], 0), ([0.0, 2.0, 0.0], 1), ([0.0, 0.0, 3.0], 2)] {
            let odds = Weighted::new(weights);
            assert!((0..1000).all(|_| odds.draw(&mut rng).0 == only));
        }
    }

    #[test]
    fn below_reaches_every_value_equally_often() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut counts = [0_u32; 26];
        for _ in 0..26_000 {
            counts[below(&mut rng, 26) as usize] += 1;
        }
        assert!(counts.iter().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
    }

    #[test]
    fn distinct_values_are_distinct_and_every_order_is_equally_likely() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            *counts.entry(distinct(&mut rng, 3, 4)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
        for (count, n) in [(0, 5), (5, 5), (7, 100), (300, 8192)] {
            let mut drawn = distinct(&mut rng, count, n);
            assert!(drawn.iter().all(|value| *value < n));
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), count);
        }
    }

    #[test]
    fn shuffling_reaches_every_order_equally_often() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [7, 8, 9];
            shuffle(&mut rng, &mut items);
            *counts.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
    }

    #[test]
    fn streams_of_training_samples_differ_in_every_argument() {
        let first = |mut rng: ChaCha8Rng| rng.next_u64();
        let base = first(train_rng("copy", 8, 0));
        assert_ne!(base, first(train_rng("text", 8, 0)));
        assert_ne!(base, first(train_rng("copy", 9, 0)));
        assert_ne!(base, first(train_rng("copy", 8, 1)));
    }

    #[test]
    fn eval_streams_differ_in_every_argument() {
        let first = |mut rng: ChaCha8Rng| rng.next_u64();
        let base = first(eval_rng("copy", "uniform", 8, 0));
        assert_ne!(base, first(eval_rng("text", "uniform", 8, 0)));
        assert_ne!(base, first(eval_rng("copy", "other", 8, 0)));
        assert_ne!(base, first(eval_rng("copy", "uniform", 9, 0)));
        assert_ne!(base, first(eval_rng("copy", "uniform", 8, 1)));
    }
}
