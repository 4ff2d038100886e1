//! Cells and notes shared by several tables.

use crate::document::table::{TableCell, Target};
use analysis::{Report, Workload};
use records::Metric;
use stats::Estimate;

/// Marks an encoding that is not ranked.
pub(super) const UNRANKED: &str = "‡";

/// Note on encodings that have all evaluations and no rank.
pub(super) const TOO_FEW_SEEDS: &str = "Rank –: too few seeds. A rank needs 3 seeds in common with another encoding. \
     The other encodings are ranked without this one.";

/// Marks times that other work disturbed.
pub(super) const DISTURBED: &str = "†";

/// Returns the mark of a time, after a space; nothing if it was not disturbed.
pub(super) fn mark(disturbed: bool) -> String {
    if disturbed { format!(" {DISTURBED}") } else { String::new() }
}

/// Returns the note on the mark of times, if any was disturbed.
pub(super) fn disturbed_note(disturbed: impl IntoIterator<Item = bool>) -> Option<String> {
    let note = "Measured while other cells or programs ran on the machine, so these times are not comparable.";
    disturbed.into_iter().any(|is| is).then(|| format!("{DISTURBED} {note}"))
}

/// Note on the means and medians of tables.
pub(super) const MEAN: &str = "Mean: over n seeds. In brackets: its 95% confidence interval by Student's t over the \
     seeds and, where records have the answers, over the questions.";
pub(super) const MEDIAN: &str = "Median: with its 95% bootstrap interval, which is too narrow for few seeds. The \
     interval covers the true value in 1/2 of all cases with 2 seeds, and in 3/4 with 3 seeds.";

impl TableCell {
    /// Returns the first cell of an encoding's row: its name, which leads to its section.
    pub(crate) fn of_encoding(report: &Report, name: &str) -> Self {
        let encoding = report.encoding(name);
        Self {
            encoding: encoding.map(|encoding| encoding.look),
            link: encoding.map(|encoding| Target::Encoding(encoding.name.clone())),
            ..Self::from(report.display(name))
        }
    }

    /// Links the cell to the cells of an encoding on a workload, from which its number was computed.
    pub(super) fn with_cells(self, workload: &Workload, encoding: &str) -> Self {
        let (workload, encoding) = (workload.name.clone(), encoding.to_owned());
        Self { link: Some(Target::Cells { workload, encoding }), ..self }
    }
}

/// Returns a cell with a mean, and its interval and n in smaller print: `97.1%`, `[92.0, 100.0] n=3`.
pub(super) fn with_interval(metric: Metric, estimate: &Estimate) -> TableCell {
    let interval = interval(metric, estimate.ci95).map_or_else(String::new, |text| text + " ");
    TableCell::with_detail(metric.show(estimate.mean), format!("{interval}n={}", estimate.n))
}

/// Formats an interval in brackets; `None` without an interval, or if both ends are shown alike.
pub(super) fn interval(metric: Metric, ends: Option<(f64, f64)>) -> Option<String> {
    let wide = ends.filter(|(low, high)| metric.show(*low) != metric.show(*high));
    wide.map(|ends| format!("[{}]", metric.show_interval(ends)))
}

/// Returns a cell with a median, and its bootstrap interval in smaller print.
pub(super) fn median(metric: Metric, estimate: &Estimate) -> TableCell {
    let interval = interval(metric, estimate.bootstrap.map(|b| b.median95));
    TableCell::with_detail(metric.show(estimate.median), interval.unwrap_or_default())
}

/// Returns a cell with the median of values over several workloads, and their range in smaller print; a dash without
/// values.
pub(super) fn spread(mut values: Vec<f64>, show: impl Fn(f64) -> String) -> TableCell {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else { return "–".into() };
    let (low, high) = (show(*low), show(*high));
    let detail = if low == high { String::new() } else { format!("[{low}, {high}]") };
    TableCell::with_detail(show(stats::sorted_median(&values)), detail)
}

/// Formats a ratio with two decimals.
pub(super) fn ratio(value: f64) -> String {
    format!("{value:.2}")
}
