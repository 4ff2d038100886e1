//! Pieces of figures: series, points and their texts.

use crate::document::plot::{Point, Series};
use analysis::Report;
use records::Metric;
use stats::Estimate;

/// Returns a series with the colour and display name of an encoding.
pub(super) fn series_of(report: &Report, encoding: &str, points: Vec<Point>) -> Series {
    let known = report.encoding(encoding);
    let label = known.map_or(encoding, |e| &e.display).to_owned();
    Series { look: known.map_or(0, |e| e.look), label, points }
}

/// Formats the hover text of a point: `97.1 % [92.0 to 100.0] n=3`.
pub(super) fn note(metric: Metric, estimate: &Estimate) -> String {
    let interval =
        estimate.ci95.map_or_else(String::new, |ci| format!(" [{}]", metric.show_interval(ci)));
    format!("{}{interval} n={}", metric.show(estimate.mean), estimate.n)
}

/// Returns a series of one point, whose place along the axis of encodings is unused.
pub(super) fn dot(
    report: &Report,
    encoding: &str,
    value: f64,
    bar: Option<(f64, f64)>,
    note: String,
) -> Series {
    series_of(report, encoding, vec![Point { x: 0.0, y: value, bar, note }])
}

/// Returns mean and interval on the scale of the axis; perplexity is stored as its logarithm.
pub(super) fn drawn(metric: Metric, estimate: &Estimate) -> (f64, Option<(f64, f64)>) {
    if metric.higher_is_better() {
        // A t interval does not know that a share ends at 0 and 1.
        let cut = |(low, high): (f64, f64)| (low.max(0.0), high.min(1.0));
        (estimate.mean, estimate.ci95.map(cut))
    } else {
        (estimate.mean.exp(), estimate.ci95.map(|(low, high)| (low.exp(), high.exp())))
    }
}
