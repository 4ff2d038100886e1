//! A figure: subject, title, caption and plot.

use super::plot::{Plot, Point, Series};
use crate::analysis::{Report, Workload};
use crate::record::Metric;
use crate::stats::Estimate;

/// Subject of a figure, which determines its position on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// All encodings over all tasks.
    Overall,
    /// The headline metric by length.
    Headline,
    /// The second metric by length.
    Second,
    /// The headline metric by a property of samples or tokens.
    Slices,
    /// The headline metric by two properties, or by a property and length.
    Grid,
    /// Loss, validation and time to solve.
    Training,
    /// The headline metric against costs.
    Cost,
    /// The headline metric by the number of training samples, over workloads.
    Size,
    /// Profiles and mean ranks over all tasks.
    Tasks,
}

/// A figure of a report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// Name of the workload; `None` for a figure of several workloads.
    pub(crate) workload: Option<String>,
    pub(crate) subject: Subject,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) plot: Plot,
    /// File name without extension, unique in the report.
    pub(crate) file: String,
}

impl Figure {
    /// A figure of several workloads, or of one of them.
    pub(super) fn new(
        workload: Option<&Workload>,
        subject: Subject,
        title: String,
        caption: String,
        plot: Plot,
    ) -> Self {
        let workload = workload.map(|workload| workload.name.clone());
        Self { workload, subject, title, caption, plot, file: String::new() }
    }

    /// Returns the path of the SVG file, relative to the report.
    pub(crate) fn path(&self) -> String {
        format!("figures/{}.svg", self.file)
    }
}

/// Returns a series with the colour and display name of an encoding.
pub(super) fn series_of(report: &Report, encoding: &str, points: Vec<Point>) -> Series {
    let known = report.encoding(encoding);
    let label = known.map_or(encoding, |e| &e.display).to_owned();
    Series { slot: known.map_or(0, |e| e.slot), label, points }
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
