//! Published order of a table's rows, as claims on a suite of another size.
//!
//! Numbers of models of another size are not comparable with published ones; their order may be. In each column, the row with
//! the better published number is claimed to be better: all pairs of rows with different numbers are contrasts of one family
//! ([`crate::contrast`]), paired by seed.

use super::NumberResult;
use super::published::PublishedTable;
use super::runs::RecipeRun;
use crate::contrast::{Contrast, ContrastSide, judge};

/// Exact match in distribution from which on an encoding counts as converged.
const CONVERGED: f64 = 0.99;
/// Difference up to which two means are equal, because sums of the same values in another order differ by rounding.
const ROUNDING: f64 = 1e-12;

/// Published order of the rows of a table in a suite of another size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SizeOrder {
    /// Name of the suite.
    pub suite: String,
    /// Number of rows with runs in at least one column.
    pub rows: usize,
    /// Number of pairs of rows of one column whose published numbers differ and that have a seed in common.
    pub pairs: usize,
    /// Number of these pairs whose means are in the published order.
    pub same: usize,
    /// Number of these pairs whose means are in the opposite order.
    pub opposite: usize,
    /// Number of these pairs whose published order holds significantly.
    pub holds: usize,
    /// Number of these pairs whose published order is significantly contradicted.
    pub contradicted: usize,
    /// Number of rows whose runs are at least 99% right in distribution; `None` for tasks without exact match.
    pub converged: Option<usize>,
}

impl SizeOrder {
    /// Judges the order of the numbers of a table, by row and column, in a suite.
    pub(super) fn of(suite: &str, table: &PublishedTable, rows: &[Vec<NumberResult>]) -> Self {
        let run = |number: &'_ NumberResult| {
            number.other_sizes.iter().position(|run| run.suite.as_deref() == Some(suite))
        };
        let mut order = Self { suite: suite.to_owned(), ..Self::default() };
        let mut fits: Vec<Option<f64>> = Vec::new();
        for row in rows {
            let runs = row.iter().filter_map(|number| Some(&number.other_sizes[run(number)?]));
            // The least of a row; none where one is not known.
            let fit = runs.map(|run| run.fit).reduce(|a, b| Some(a?.min(b?)));
            fits.extend(fit);
        }
        order.rows = fits.len();
        let known: Option<Vec<f64>> = fits.into_iter().collect();
        let converged = |fits: Vec<f64>| fits.into_iter().filter(|fit| *fit >= CONVERGED).count();
        order.converged = known.filter(|fits| !fits.is_empty()).map(converged);
        let mut family: Vec<Contrast> = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            let sign = if table.metric_of(column).is_gain() { 1.0 } else { -1.0 };
            let number = |row: &'_ Vec<NumberResult>| {
                let number = &row[index];
                Some((sign * number.published.value?, number.other_sizes[run(number)?].clone()))
            };
            let mut numbers: Vec<(f64, RecipeRun)> = rows.iter().filter_map(number).collect();
            numbers.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (place, (value, better)) in numbers.iter().enumerate() {
                let worse = numbers[place + 1..].iter().filter(|(other, _)| other < value);
                family.extend(worse.filter_map(|(_, worse)| contrast(better, worse)));
            }
        }
        order.pairs = family.len();
        for judged in judge(&family, 0) {
            let difference = judged.paired.mean_difference;
            let is_same = difference > 0.0;
            if difference.abs() > ROUNDING {
                *(if is_same { &mut order.same } else { &mut order.opposite }) += 1;
            }
            if judged.separable {
                *(if is_same { &mut order.holds } else { &mut order.contradicted }) += 1;
            }
        }
        order
    }

    /// Formats the order as sentences.
    pub fn text(&self) -> String {
        let Self { suite, rows, pairs, same, opposite, holds, contradicted, converged } = self;
        if *pairs == 0 {
            return format!(
                "Another size: the records have no pairs of rows to compare; `pe-bench run {suite}` trains these encodings \
                 at another size."
            );
        }
        let equal = pairs - same - opposite;
        let undecided = pairs - holds - contradicted;
        let fit = converged.map_or_else(String::new, |converged| {
            format!(" In distribution, at least 99% of the answers are right in {converged} of {rows} rows.")
        });
        format!(
            "Another size: in `{suite}` the means of {same} of {pairs} pairs of rows are in the published order, \
             those of {opposite} in the opposite order, and those of {equal} are equal. With Holm's correction over \
             the pairs, the published order holds for {holds}, is contradicted for {contradicted} and is undecided \
             for {undecided}.{fit}"
        )
    }
}

/// The contrast of two runs; `None` without a seed in common.
fn contrast(a: &RecipeRun, b: &RecipeRun) -> Option<Contrast> {
    let seeds = |run: &RecipeRun| -> Vec<(u64, f64)> {
        run.by_seed.iter().map(|(seed, value)| (*seed, *value)).collect()
    };
    let (of_a, of_b) = (seeds(a), seeds(b));
    let side = |by_seed| ContrastSide { by_seed, above_chance: None };
    Contrast::of(a.metric.of_records()?, &side(&of_a), &side(&of_b), None)
}
