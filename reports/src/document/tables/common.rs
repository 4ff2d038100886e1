//! Cells that several tables have.

use crate::analysis::{Report, Workload};
use crate::document::table::TableCell;
use crate::record::Metric;
use crate::stats::Estimate;
use crate::stats::estimate::sorted_median;

/// Behind the best by no more than noise.
pub(super) const NO_COMMON_SEED: &str = "†";
/// Not ranked.
pub(super) const UNRANKED: &str = "‡";

/// Explains the intervals of tables that show means and medians.
pub(super) const INTERVALS: &str = "Mean with its 95 % interval by Student's t over n seeds; median \
    with its 95 % bootstrap interval, which is too narrow for few seeds (it holds \
    1 of 2 medians with 2, 3 of 4 with 3).";

impl TableCell {
    /// The name of an encoding, at the head of its row.
    pub(crate) fn of_encoding(report: &Report, name: &str) -> Self {
        let slot = report.encoding(name).map(|encoding| encoding.slot);
        Self { encoding: slot, ..Self::from(report.display(name)) }
    }

    /// With the records that it comes from.
    pub(super) fn with_cells(self, report: &Report, workload: &Workload, encoding: &str) -> Self {
        Self { cells: report.anchor(workload, encoding), ..self }
    }
}

/// `97.1 %`, and in detail `[92.0 to 100.0] n=3`.
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

/// `97.1 %`, and in detail `[92.0 to 99.0]`, the bootstrap interval.
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

/// `a`, and in detail `[low to high]`, over several workloads; a dash without any.
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
