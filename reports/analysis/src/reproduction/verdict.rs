//! Verdicts on published numbers.

use super::NumberResult;
use super::published::{Printed, PublishedColumn, PublishedRow, PublishedTable};
use stats::LEAST_SEEDS;
use stats::estimate::half_width_factor;

/// 97.5% quantile of the normal distribution, used because a published standard error comes from
/// many samples.
const NORMAL_QUANTILE: f64 = 1.96;

/// Verdict on a published number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The recipe is the published one, and the intervals of both numbers overlap.
    Agrees,
    /// The recipe is the published one, and the intervals do not overlap or a seed diverged.
    Differs,
    /// The recipe is the published one, and the intervals do not overlap, but the published standard deviation has not
    /// been copied, with which they might.
    Undecided,
    /// The recipe is the published one, with fewer seeds than a claim needs.
    TooFewSeeds,
    /// All runs have other settings, or the task differs slightly, so that no claim is possible.
    OtherRecipe,
    /// All runs are those of a suite of another size.
    OtherSize,
    /// There is no record of the experiment.
    NotRun,
    /// The number is verified by a command and not by records.
    Elsewhere,
    /// The source prints the number, which has not been copied.
    Unread,
}

/// All verdicts, in the order of table columns.
pub const VERDICTS: [Verdict; 9] = [
    Verdict::Agrees,
    Verdict::Differs,
    Verdict::Undecided,
    Verdict::TooFewSeeds,
    Verdict::OtherRecipe,
    Verdict::OtherSize,
    Verdict::NotRun,
    Verdict::Elsewhere,
    Verdict::Unread,
];

impl Verdict {
    /// Returns the kebab-case name, as on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::TooFewSeeds => "too-few-seeds",
            Self::OtherRecipe => "other-recipe",
            Self::OtherSize => "other-size",
            Self::NotRun => "not-run",
            Self::Elsewhere => "elsewhere",
            Self::Unread => "unread",
        }
    }

    /// Returns the name of the verdict for use in tables.
    pub fn label(self) -> String {
        self.id().replace('-', " ")
    }
}

/// Returns the range of values that a published number represents, given its rounding and its spread over seeds; `None`
/// if the number has not been copied.
///
/// With a standard deviation over a known number of seeds this is Student's 95% interval; over an unknown number,
/// one deviation; with a standard error, 1.96 of them; otherwise all values that round to the number.
pub fn published_interval(
    table: &PublishedTable,
    row: &PublishedRow,
    column: &PublishedColumn,
    printed: &Printed,
) -> Option<(f64, f64)> {
    let value = printed.value?;
    let spread = match (row.deviations.get(&column.name), row.standard_errors.get(&column.name)) {
        (Some(deviation), _) => deviation * table.seeds.and_then(half_width_factor).unwrap_or(1.0),
        (None, Some(error)) => NORMAL_QUANTILE * error,
        (None, None) => 0.0,
    };
    let half = printed.rounding() + spread;
    Some(if table.metric_of(column).is_percent() {
        ((value - half).max(0.0), (value + half).min(100.0))
    } else {
        (value - half, value + half)
    })
}

/// Gives the verdict on a number from the first of its runs. METHODOLOGY.md states the rule. `spread_known` is whether the
/// published interval includes the uncertainty of the number, or none is printed.
pub(super) fn judge(table: &PublishedTable, number: &NumberResult, spread_known: bool) -> Verdict {
    let Some(published) = number.published_interval else { return Verdict::Unread };
    let Some(run) = number.runs.first() else {
        return match (&table.instead, number.other_sizes.is_empty()) {
            (_, false) => Verdict::OtherSize,
            (Some(_), true) => Verdict::Elsewhere,
            (None, true) => Verdict::NotRun,
        };
    };
    if !run.differences.is_empty() || !table.unlike.is_empty() {
        return Verdict::OtherRecipe;
    }
    if run.seeds() + run.diverged < LEAST_SEEDS {
        return Verdict::TooFewSeeds;
    }
    match run.interval {
        _ if run.diverged > 0 => Verdict::Differs,
        Some((low, high)) if low <= published.1 && published.0 <= high => Verdict::Agrees,
        _ if spread_known => Verdict::Differs,
        _ => Verdict::Undecided,
    }
}
