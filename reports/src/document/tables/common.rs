//! Cells and notes that several tables share.

use crate::analysis::{Report, Workload};
use crate::document::table::TableCell;
use crate::record::Metric;
use crate::stats::{Estimate, sorted_median};

/// Marks an encoding without a seed in common with the best.
pub(super) const NO_COMMON_SEED: &str = "†";
/// Marks an encoding that is not ranked.
pub(super) const UNRANKED: &str = "‡";

/// Explains the intervals of tables that show means and medians.
pub(super) const INTERVALS: &str = "Mean with its 95 % confidence interval (Student's t over n seeds, and over the \
    questions where records hold the answers); median with its 95 % bootstrap interval, which is too narrow for few seeds (its coverage is 1/2 with 2 seeds, \
    3/4 with 3).";

impl TableCell {
    /// Cell with the name of an encoding, at the head of its row.
    pub(crate) fn of_encoding(report: &Report, name: &str) -> Self {
        let slot = report.encoding(name).map(|encoding| encoding.slot);
        Self { encoding: slot, ..Self::from(report.display(name)) }
    }

    /// Links the cell to the records from which it was computed.
    pub(super) fn with_cells(self, report: &Report, workload: &Workload, encoding: &str) -> Self {
        Self { cells: report.anchor(workload, encoding), ..self }
    }
}

/// Cell with a mean, and its interval and n in smaller print: `97.1 %`, `[92.0 to 100.0] n=3`.
pub(super) fn with_interval(metric: Metric, estimate: &Estimate) -> TableCell {
    // An interval without width says no more than the mean.
    let interval = estimate
        .ci95
        .filter(|(low, high)| metric.show(*low) != metric.show(*high))
        .map_or_else(String::new, |ci| format!("[{}] ", metric.show_interval(ci)));
    TableCell {
        text: metric.show(estimate.mean),
        detail: format!("{interval}n={}", estimate.n),
        ..TableCell::default()
    }
}

/// Cell with a median, and its bootstrap interval in smaller print.
pub(super) fn median(metric: Metric, estimate: &Estimate) -> TableCell {
    let interval = estimate
        .bootstrap
        .map(|b| b.median95)
        .filter(|(low, high)| metric.show(*low) != metric.show(*high))
        .map_or_else(String::new, |ends| format!("[{}]", metric.show_interval(ends)));
    TableCell { text: metric.show(estimate.median), detail: interval, ..TableCell::default() }
}

pub(super) fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> TableCell {
    value.map_or_else(|| TableCell::from("–"), |value| show(value).into())
}

/// Cell with the median of values over several workloads, and their range in smaller print; a dash without values.
pub(super) fn spread(mut values: Vec<f64>, show: impl Fn(f64) -> String) -> TableCell {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else { return "–".into() };
    let detail = if values.len() > 1 && show(*low) != show(*high) {
        format!("[{} to {}]", show(*low), show(*high))
    } else {
        String::new()
    };
    TableCell { text: show(sorted_median(&values)), detail, ..TableCell::default() }
}

/// A ratio with two decimals.
pub(super) fn ratio(value: f64) -> String {
    format!("{value:.2}")
}
