//! Verdicts on published numbers.

use super::published::{PublishedColumn, PublishedRow, PublishedTable};
use super::runs::RecipeRun;
use crate::stats::LEAST_SEEDS;
use crate::stats::estimate::half_width_factor;

/// 97.5 % quantile of the normal distribution, used because a published standard error comes from
/// many samples.
const NORMAL_QUANTILE: f64 = 1.96;

/// Verdict on a published number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The published recipe, and the intervals of both numbers have a value in common.
    Agrees,
    /// The published recipe, and they have none; or a seed diverged.
    Differs,
    /// The published recipe, with fewer seeds than a claim needs.
    TooFewSeeds,
    /// All runs have other settings, or the task differs slightly: no claim.
    OtherRecipe,
    /// No record of the experiment.
    NotRun,
    /// Verified by a command and not by records.
    Elsewhere,
}

/// All verdicts, in the order of table columns.
pub const VERDICTS: [Verdict; 6] = [
    Verdict::Agrees,
    Verdict::Differs,
    Verdict::TooFewSeeds,
    Verdict::OtherRecipe,
    Verdict::NotRun,
    Verdict::Elsewhere,
];

impl Verdict {
    /// Kebab-case name, as on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::TooFewSeeds => "too-few-seeds",
            Self::OtherRecipe => "other-recipe",
            Self::NotRun => "not-run",
            Self::Elsewhere => "elsewhere",
        }
    }

    /// Name of the verdict for use in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::TooFewSeeds => "too few seeds",
            Self::OtherRecipe => "other recipe",
            Self::NotRun => "not run",
            Self::Elsewhere => "shown elsewhere",
        }
    }
}

/// The values that a published number stands for: it was rounded, and is itself a mean over seeds.
///
/// With a standard deviation over a known number of seeds, Student's 95 % interval; over an unknown
/// number, one deviation; with a standard error, 1.96 of them; else what rounds to it.
pub fn published_interval(
    table: &PublishedTable,
    row: &PublishedRow,
    column: &PublishedColumn,
    value: f64,
) -> (f64, f64) {
    let spread = match (row.deviations.get(&column.name), row.standard_errors.get(&column.name)) {
        (Some(deviation), _) => deviation * table.seeds.and_then(half_width_factor).unwrap_or(1.0),
        (None, Some(error)) => NORMAL_QUANTILE * error,
        (None, None) => 0.0,
    };
    let half = table.rounding + spread;
    if table.metric_of(column).is_percent() {
        ((value - half).max(0.0), (value + half).min(100.0))
    } else {
        (value - half, value + half)
    }
}

/// The rule. METHODOLOGY.md states it in words.
pub(super) fn judge(table: &PublishedTable, run: &RecipeRun, published: (f64, f64)) -> Verdict {
    if !run.differences.is_empty() || !table.unlike.is_empty() {
        return Verdict::OtherRecipe;
    }
    if run.seeds + run.diverged < LEAST_SEEDS {
        return Verdict::TooFewSeeds;
    }
    match run.interval {
        Some((low, high)) if run.diverged == 0 && low <= published.1 && published.0 <= high => {
            Verdict::Agrees
        }
        _ => Verdict::Differs,
    }
}
