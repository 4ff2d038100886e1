//! The figures of a report.

mod cost;
mod figure;
mod lengths;
mod overall;
pub(crate) mod plot;
pub(crate) mod scale;
mod size;
mod slices;
mod tasks;
mod training;

use std::collections::BTreeSet;

use rayon::prelude::*;

pub(crate) use self::figure::{Figure, Subject};
pub(crate) use self::plot::Plot;
use crate::analysis::{Report, Workload};
use crate::record::Metric;
use crate::text::unique_slug;

/// Note on the marks of all figures.
pub(crate) const LEGEND: &str = "Figures: means over seeds; bars are 95 % confidence intervals, clipped at the frame. An encoding has the same colour, mark and dash in every figure and every report.";

/// Returns all figures by workload and subject, then those of several workloads.
pub(crate) fn figures(report: &Report) -> Vec<Figure> {
    let of_workload = |workload: &Workload| {
        let mut figures = lengths::figures(report, workload, workload.headline, Subject::Headline);
        if workload.headline == Metric::ExactMatch {
            let second = Metric::TokenAccuracy;
            figures.extend(lengths::figures(report, workload, second, Subject::Second));
        }
        figures.extend(slices::figures(report, workload));
        figures.extend(training::figures(report, workload));
        figures.extend(cost::figures(report, workload));
        figures
    };
    let mut figures: Vec<Figure> = report.workloads.par_iter().flat_map_iter(of_workload).collect();
    figures.extend(overall::figure(report));
    figures.extend(tasks::figures(report));
    figures.extend(size::figures(report));
    let mut taken = BTreeSet::new();
    for figure in &mut figures {
        figure.file = unique_slug(&figure.title, &mut taken);
    }
    figures
}

#[cfg(test)]
mod tests;
