//! Order of a table's rows in a suite of another size, beside the published order.
//!
//! Numbers of models of another size are not comparable with published ones; their order may be. Pairs of rows are
//! compared within each column: of the pairs whose published numbers differ, those in the published order minus those
//! in the opposite order, as a share (Kendall's rank correlation over these pairs; equal means count as neither). Means are
//! over the seeds that all compared runs share, and the interval is the percentile bootstrap over these seeds, drawn for
//! all rows at once.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::published::PublishedMetric;
use super::runs::RecipeRun;
use stats::bootstrap::ends;

/// Number of seeds up to which every resample is enumerated (5^5).
const EXACT_UP_TO: usize = 5;
/// Number of random resamples above [`EXACT_UP_TO`].
const DRAWS: usize = 2000;
/// Exact match in distribution from which on an encoding counts as converged.
const CONVERGED: f64 = 0.99;
/// Difference up to which two means are equal, because sums of the same values in another order differ by rounding.
const ROUNDING: f64 = 1e-12;

/// Comparison of a published order with that of a suite of another size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeOrder {
    /// Name of the suite.
    pub suite: String,
    /// Number of rows with runs in at least one column.
    pub rows: usize,
    /// Number of pairs of rows of one column whose published numbers differ and that both have runs.
    pub pairs: usize,
    /// Number of these pairs whose means are in the published order.
    pub same: usize,
    /// Number of these pairs whose means are in the opposite order.
    pub opposite: usize,
    /// 95 % interval of the rank correlation over seeds; `None` with fewer than two seeds in common.
    pub interval: Option<(f64, f64)>,
    /// Number of seeds in common.
    pub seeds: usize,
    /// Number of rows whose runs are at least 99 % right in distribution; `None` for tasks without exact match.
    pub converged: Option<usize>,
}

/// Number of a table with its run in the suite.
pub(super) struct OrderedNumber {
    pub(super) row: usize,
    pub(super) column: usize,
    /// Published number.
    pub(super) published: f64,
    /// Metric of the run.
    pub(super) metric: PublishedMetric,
    /// Nearest run of the suite.
    pub(super) run: RecipeRun,
}

impl SizeOrder {
    /// Compares the numbers of a table.
    pub(super) fn of(suite: &str, numbers: &[OrderedNumber], rng: &mut ChaCha8Rng) -> Self {
        let pairs: Vec<(&OrderedNumber, &OrderedNumber)> = numbers
            .iter()
            .enumerate()
            .flat_map(|(index, a)| numbers[index + 1..].iter().map(move |b| (a, b)))
            .filter(|(a, b)| a.column == b.column && a.published.total_cmp(&b.published).is_ne())
            .collect();
        // Positive: in the published order.
        let signs = |mean: &dyn Fn(&OrderedNumber) -> Option<f64>| -> Vec<f64> {
            let sign = |(a, b): &(&OrderedNumber, &OrderedNumber)| {
                let ours = mean(a)? - mean(b)?;
                let sign = if ours.abs() <= ROUNDING { 0.0 } else { ours.signum() };
                Some(sign * (a.published - b.published).signum())
            };
            pairs.iter().filter_map(sign).collect()
        };
        let compared: Vec<&OrderedNumber> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let seeds = common_seeds(&compared);
        let found = signs(&|number| mean(seeds.iter().map(|seed| number.run.by_seed[seed])));
        let correlations = resamples(seeds.len(), rng).into_iter().map(|draw| {
            let drawn = |number: &OrderedNumber| {
                mean(draw.iter().map(|index| number.run.by_seed[&seeds[*index]]))
            };
            (mean(signs(&drawn).into_iter()).unwrap_or(f64::NAN), 1)
        });
        let mut fits: BTreeMap<usize, Option<bool>> = BTreeMap::new();
        for number in numbers {
            let fit = number.run.fit.map(|fit| fit >= CONVERGED);
            let row = fits.entry(number.row).or_insert(fit);
            *row = row.zip(fit).map(|(before, fit)| before && fit);
        }
        Self {
            suite: suite.to_owned(),
            rows: fits.len(),
            pairs: pairs.len(),
            same: found.iter().filter(|sign| **sign > 0.0).count(),
            opposite: found.iter().filter(|sign| **sign < 0.0).count(),
            interval: (seeds.len() > 1).then(|| ends(correlations.collect())),
            seeds: seeds.len(),
            converged: fits
                .values()
                .copied()
                .collect::<Option<Vec<bool>>>()
                .filter(|rows| !rows.is_empty())
                .map(|rows| rows.into_iter().filter(|converged| *converged).count()),
        }
    }

    /// Rank correlation, -1 to 1; `None` without pairs, or if they have no seed in common.
    pub fn correlation(&self) -> Option<f64> {
        let surplus = self.same as f64 - self.opposite as f64;
        (self.pairs > 0 && self.seeds > 0).then(|| surplus / self.pairs as f64)
    }

    /// Formats the comparison as sentences.
    pub fn text(&self) -> String {
        let Self { suite, rows, pairs, same, opposite, .. } = self;
        let Some(correlation) = self.correlation() else {
            let found = match (rows, pairs) {
                (0, _) => "no records of it are here",
                (1, _) => "its records are of one row only",
                (_, 0) => "its records have no two different published numbers in one column",
                _ => "its records have no seed in common",
            };
            return format!(
                "Another size: `pe-bench run {suite}` trains these encodings in about four hours or less on two cores; \
                 {found}."
            );
        };
        let seeds = self.seeds;
        let interval = match self.interval {
            None => ", one seed in common and no interval".to_owned(),
            // Few seeds that agree do not tell how other seeds would vary.
            Some((low, high)) if low.to_bits() == high.to_bits() => {
                format!(", the same in every resample of {seeds} seeds")
            }
            Some((low, high)) => {
                format!(" [{low:.2} to {high:.2}], 95 % interval by bootstrap over {seeds} seeds")
            }
        };
        let order = match (pairs - same, opposite) {
            (0, _) => "the same order",
            (_, 0) => "no pair in the opposite order",
            _ => "not the same order",
        };
        let equal = pairs - same - opposite;
        let fit = self.converged.map_or_else(String::new, |converged| {
            format!(" At least 99 % right in distribution: {converged} of {rows} rows.")
        });
        format!(
            "Another size: {order} in `{suite}`, {same} of {pairs} pairs of rows as published, {opposite} in the opposite \
             order, {equal} with equal means; rank correlation {correlation:.2}{interval}.{fit}"
        )
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

/// Seeds that all runs share, ascending.
fn common_seeds(numbers: &[&OrderedNumber]) -> Vec<u64> {
    let of =
        |number: &&OrderedNumber| -> BTreeSet<u64> { number.run.by_seed.keys().copied().collect() };
    let common = numbers.iter().map(of).reduce(|all, own| &all & &own);
    common.into_iter().flatten().collect()
}

/// Resamples of `n` indices: all of them for few seeds, none for fewer than two.
fn resamples(n: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    match n {
        0 | 1 => Vec::new(),
        2..=EXACT_UP_TO => (0..n.pow(n as u32))
            .map(|draw| (0..n).map(|place| draw / n.pow(place as u32) % n).collect())
            .collect(),
        _ => (0..DRAWS).map(|_| (0..n).map(|_| rng.random_range(0..n)).collect()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn number(row: usize, column: usize, published: f64, ours: &[f64]) -> OrderedNumber {
        let run = RecipeRun {
            by_seed: (0..).zip(ours.iter().copied()).collect(),
            fit: Some(if row == 0 { 1.0 } else { 0.5 }),
            ..RecipeRun::default()
        };
        let metric = PublishedMetric::ErrorPercent;
        OrderedNumber { row, column, published, metric, run }
    }

    fn order(numbers: &[OrderedNumber]) -> SizeOrder {
        SizeOrder::of("small", numbers, &mut ChaCha8Rng::seed_from_u64(0))
    }

    #[test]
    fn pairs_are_counted_within_columns_and_equal_published_numbers_are_left_out() {
        let found = order(&[
            number(0, 0, 1.0, &[0.1, 0.1]),
            number(1, 0, 2.0, &[0.2, 0.2]),
            number(2, 0, 2.0, &[0.9, 0.9]),
            number(0, 1, 5.0, &[0.3, 0.3]),
            number(1, 1, 4.0, &[0.4, 0.4]),
        ]);
        // Column 0: rows 0 and 1, rows 0 and 2; column 1: one pair, opposite.
        assert_eq!((found.pairs, found.same, found.opposite, found.rows), (3, 2, 1, 3));
        assert!((found.correlation().unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((found.seeds, found.converged), (2, Some(1)));
        // Without any spread every resample is the same.
        let (low, high) = found.interval.unwrap();
        assert!((low - 1.0 / 3.0).abs() < 1e-12 && (high - 1.0 / 3.0).abs() < 1e-12);
        let said = found.text();
        assert!(said.contains("not the same order in `small`, 2 of 3 pairs"), "{said}");
        let spread = "0.33, the same in every resample of 2 seeds.";
        assert!(said.contains(spread) && said.contains("1 of 3 rows"), "{said}");
    }

    #[test]
    fn seeds_that_disagree_widen_the_interval_and_are_drawn_for_all_rows_at_once() {
        // By the mean of both seeds in the published order, by the second seed alone in the opposite one.
        let rows = [number(0, 0, 1.0, &[0.0, 0.5]), number(1, 0, 2.0, &[0.9, 0.4])];
        let found = order(&rows);
        assert_eq!((found.same, found.interval), (1, Some((-1.0, 1.0))));
        // A seed that shifts both rows changes nothing.
        let shifted = [number(0, 0, 1.0, &[0.0, 0.5]), number(1, 0, 2.0, &[0.1, 0.6])];
        assert_eq!(order(&shifted).interval, Some((1.0, 1.0)));
        assert!(order(&shifted).text().contains("the same order in `small`, 1 of 1 pairs"));
        // The same by random draws.
        let many = |from: f64| (0..7).map(|seed| from + f64::from(seed)).collect::<Vec<_>>();
        let found = order(&[number(0, 0, 1.0, &many(0.0)), number(1, 0, 2.0, &many(0.5))]);
        assert_eq!((found.seeds, found.interval), (7, Some((1.0, 1.0))));
    }

    #[test]
    fn without_two_rows_there_is_no_order_and_with_one_seed_no_interval() {
        let none = order(&[number(0, 0, 1.0, &[0.1])]);
        assert_eq!((none.pairs, none.correlation(), none.interval), (0, None, None));
        assert!(none.text().ends_with("its records are of one row only."), "{}", none.text());
        assert!(order(&[]).text().ends_with("no records of it are here."));
        let apart = order(&[number(0, 0, 1.0, &[0.1]), number(1, 1, 2.0, &[0.2])]);
        let said = apart.text();
        assert!(said.ends_with("no two different published numbers in one column."), "{said}");
        let one = order(&[number(0, 0, 1.0, &[0.1]), number(1, 0, 2.0, &[0.2])]);
        assert_eq!((one.correlation(), one.interval), (Some(1.0), None));
        assert!(one.text().contains("no interval"));
    }

    #[test]
    fn means_are_over_the_seeds_in_common_and_equal_means_are_no_opposite_order() {
        // With the second row's further seeds, which the first one lacks, the order would be the opposite.
        let found = order(&[number(0, 0, 1.0, &[0.5]), number(1, 0, 2.0, &[0.6, 0.0, 0.0])]);
        assert_eq!((found.same, found.opposite, found.seeds), (1, 0, 1));
        let mut later = number(1, 0, 2.0, &[]);
        later.run.by_seed = [(7, 0.6)].into();
        let found = order(&[number(0, 0, 1.0, &[0.5]), later]);
        assert_eq!((found.pairs, found.seeds, found.correlation()), (1, 0, None));
        assert!(found.text().contains("no seed in common"), "{}", found.text());
        let equal = order(&[
            number(0, 0, 1.0, &[0.5, 0.5]),
            number(1, 0, 2.0, &[0.5, 0.5]),
            number(2, 0, 3.0, &[0.7, 0.7]),
        ]);
        // The same three values, summed in another order.
        let rounded =
            order(&[number(0, 0, 1.0, &[0.1, 0.2, 0.3]), number(1, 0, 2.0, &[0.3, 0.2, 0.1])]);
        assert_eq!((rounded.same, rounded.opposite, rounded.pairs), (0, 0, 1));
        let said = equal.text();
        assert!(said.contains("no pair in the opposite order in `small`, 2 of 3 pairs"), "{said}");
        assert!(said.contains("0 in the opposite order, 1 with equal means"), "{said}");
    }
}
