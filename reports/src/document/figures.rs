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

/// Number of figures up to which each has a PNG file. Rasterizing takes longer than the rest of a report; every
/// figure has an SVG file.
const MOST_PIXELS: usize = 200;
/// Number of PNG files of a report with more than [`MOST_PIXELS`] figures.
const FEWER_PIXELS: usize = 40;

/// Note on the marks of all figures.
pub(crate) const LEGEND: &str = "Figures: means over seeds; bars, and the bands of interactive figures, are 95 % \
    confidence intervals, clipped at the frame. An encoding has the same colour, mark and dash in every figure and every report.";

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
    let most = if figures.len() > MOST_PIXELS { FEWER_PIXELS } else { MOST_PIXELS };
    let important =
        |f: &Figure| matches!(f.subject, Subject::Overall | Subject::Headline | Subject::Size);
    let all = figures.len() <= MOST_PIXELS;
    let drawn = figures.iter_mut().filter(|f| all || important(f)).take(most);
    drawn.for_each(|figure| figure.pixels = true);
    let mut taken = BTreeSet::new();
    for figure in &mut figures {
        figure.file = unique_slug(&figure.title, &mut taken);
    }
    figures
}

#[cfg(test)]
mod tests;
