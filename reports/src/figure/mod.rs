//! Which figures a report has, in which order, and what they show.

mod cost;
mod lengths;
pub(crate) mod plot;
pub(crate) mod scale;
mod size;
mod slices;
mod training;

use std::collections::BTreeSet;

pub(crate) use plot::Plot;

use crate::model::{Report, Workload};
use crate::standing::Metric;
use crate::stats::Estimate;
use crate::text::slug;

/// What a figure is about: where it stands on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The headline metric by length.
    Headline,
    /// The second metric by length.
    Second,
    /// The headline metric by what the samples have: distance, variables, position.
    Slices,
    /// The same by two such things.
    Grid,
    /// Loss, validation, time to solve.
    Training,
    /// The headline metric against costs.
    Cost,
    /// The headline metric by the number of training samples, over workloads.
    Size,
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// Name of its workload; `None`: it is about several.
    pub(crate) workload: Option<String>,
    pub(crate) subject: Subject,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) plot: Plot,
    /// Unique in the report, without an extension.
    pub(crate) file: String,
    /// Whether there is a PNG file of it beside the SVG file.
    pub(crate) pixels: bool,
}

/// With more figures than this only those that say most have PNG files: pixels cost more than all the rest of a
/// report, and every figure has its SVG file.
const MOST_PIXELS: usize = 200;
/// So many have them then.
const FEWER_PIXELS: usize = 40;

impl Figure {
    fn of(
        workload: &Workload,
        subject: Subject,
        title: String,
        caption: String,
        plot: Plot,
    ) -> Self {
        let workload = Some(workload.name.clone());
        Self { workload, subject, title, caption, plot, file: String::new(), pixels: false }
    }

    /// Its file of this kind, `svg` or `png`, relative to the report.
    pub(crate) fn path(&self, kind: &str) -> String {
        format!("figures/{}.{kind}", self.file)
    }
}

/// All figures: by workload and subject, then those about several workloads.
pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    let mut figures = Vec::new();
    for workload in &report.workloads {
        figures.extend(lengths::figures(report, workload, workload.headline, Subject::Headline));
        if workload.headline == Metric::ExactMatch {
            let second = Metric::TokenAccuracy;
            figures.extend(lengths::figures(report, workload, second, Subject::Second));
        }
        figures.extend(slices::figures(report, workload));
        figures.extend(training::figures(report, workload));
        figures.extend(cost::figures(report, workload));
    }
    figures.extend(size::figures(report));
    let mut most = if figures.len() > MOST_PIXELS { FEWER_PIXELS } else { MOST_PIXELS };
    let important = |f: &Figure| matches!(f.subject, Subject::Headline | Subject::Size);
    let all = figures.len() <= MOST_PIXELS;
    for figure in figures.iter_mut().filter(|f| all || important(f)) {
        figure.pixels = most > 0;
        most = most.saturating_sub(1);
    }
    let mut taken = BTreeSet::new();
    for figure in &mut figures {
        let base = slug(&figure.title);
        let mut file = base.clone();
        // Names that differ only in signs must not share a file.
        let mut number = 2;
        while file.is_empty() || !taken.insert(file.clone()) {
            file = format!("{base}-{number}");
            number += 1;
        }
        figure.file = file;
    }
    figures
}

/// `97.1 % [92.0 to 100.0] n=3`, for hovering over a point.
fn note(metric: Metric, estimate: &Estimate) -> String {
    let interval =
        estimate.ci95.map_or_else(String::new, |ci| format!(" [{}]", metric.show_interval(ci)));
    format!("{}{interval} n={}", metric.show(estimate.mean), estimate.n)
}

/// Mean and interval as they are drawn: perplexity is held as its logarithm.
fn drawn(metric: Metric, estimate: &Estimate) -> (f64, Option<(f64, f64)>) {
    if metric.higher_is_better() {
        // A t interval does not know that a share ends at 0 and 1.
        let cut = |(low, high): (f64, f64)| (low.max(0.0), high.min(1.0));
        (estimate.mean, estimate.ci95.map(cut))
    } else {
        (estimate.mean.exp(), estimate.ci95.map(|(low, high)| (low.exp(), high.exp())))
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
