//! Figures of training: loss and validation by step, steps to solve.

use super::lengths::{CHANCE, scale_of};
use super::series::{dot, series_of};
use crate::document::plot::{Axis, Dots, Figure, Lines, Marks, Plot, Point, Series};
use crate::document::scale::Scale;
use analysis::run_metrics::MedianRange;
use analysis::{Curve, Report, Workload};
use records::Metric;
use records::number::three_digits;

pub(crate) fn figures(report: &Report, workload: &Workload) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(loss(report, workload));
    figures.extend(validation(report, workload, None, &workload.validation));
    figures.extend(
        workload
            .split_validation
            .iter()
            .filter_map(|own| validation(report, workload, Some(&own.split), &own.curves)),
    );
    figures.extend(solving(report, workload));
    figures
}

/// Plots training curves. `map` converts stored values to the scale of the axis, `show` formats
/// them.
fn lines(
    report: &Report,
    curves: &[Curve],
    map: impl Fn(f64) -> f64,
    show: impl Fn(f64) -> String,
) -> Vec<Series> {
    curves
        .iter()
        .map(|curve| {
            let points = curve
                .points
                .iter()
                .map(|p| Point {
                    x: p.step as f64,
                    y: map(p.value.mean),
                    bar: p.value.ci95.map(|(low, high)| (map(low), map(high))),
                    note: format!("{} at step {}, n={}", show(p.value.mean), p.step, p.value.n),
                })
                .collect();
            series_of(report, &curve.encoding, points)
        })
        .collect()
}

fn loss(report: &Report, workload: &Workload) -> Option<Figure> {
    let series = lines(report, &workload.training, |loss| loss, three_digits);
    if series.is_empty() {
        return None;
    }
    let points = || series.iter().flat_map(|s| &s.points);
    let steps: Vec<f64> = points().map(|p| p.x).collect();
    let losses: Vec<f64> = points().map(|p| p.y).collect();
    let x = Axis::new("step", Scale::linear(&steps));
    let y = Axis::new("loss in nats", Scale::around(&losses));
    let plot = Plot::Lines(Lines::new(x, y, Marks::Few, series));
    let caption = "Loss per scored token: mean over the steps since the previous point and over the seeds that are \
         still training.";
    let title = format!("{}: training loss", workload.name);
    Some(Figure::new(title, caption, plot))
}

/// Draws the headline metric in validations by training step: of the training distribution, or of another split.
fn validation(
    report: &Report,
    workload: &Workload,
    split: Option<&str>,
    curves: &[Curve],
) -> Option<Figure> {
    let metric = workload.headline;
    let drawn = |x: f64| if metric == Metric::Perplexity { x.exp() } else { x.clamp(0.0, 1.0) };
    let series = lines(report, curves, drawn, |x| metric.show(x));
    if series.is_empty() {
        return None;
    }
    let steps: Vec<f64> = series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
    let x = Scale::linear(&steps);
    // The level of guessing is that of the training distribution.
    let chance = workload.chance.filter(|_| metric == Metric::ExactMatch && split.is_none());
    let level = chance.map(|y| (vec![(x.low, y), (x.high, y)], CHANCE.to_owned()));
    let y = Axis::new(metric.name(), scale_of(metric, &series));
    let plot =
        Plot::Lines(Lines { level, ..Lines::new(Axis::new("step", x), y, Marks::Few, series) });
    let caption = "At the trained length, on samples that neither training nor evaluations see; mean over the seeds \
         that are still training.";
    let on = split.map_or_else(String::new, |split| format!(" on {split}"));
    let title = format!("{}: validation{on}", workload.name);
    Some(Figure::new(title, caption, plot))
}

/// Draws the steps to solve; `None` if they are known for no seed of any encoding.
fn solving(report: &Report, workload: &Workload) -> Option<Figure> {
    let series: Vec<Series> = workload
        .run_metrics
        .iter()
        .filter_map(|metrics| {
            let MedianRange { median, range, n } = metrics.solve_steps?;
            let note = format!("{median} steps [{}, {}] n={n}", range.0, range.1);
            let bar = (n > 1).then_some(range);
            Some(dot(report, &metrics.encoding, median, bar, note))
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let ends: Vec<f64> = series
        .iter()
        .flat_map(|s| &s.points)
        .flat_map(|p| [p.y, p.bar.map_or(p.y, |(_, high)| high), 0.0])
        .collect();
    let plot = Plot::Dots(Dots {
        value: Axis::new("steps to solve", Scale::linear(&ends)),
        rules: Vec::new(),
        groups: vec![(String::new(), series)],
    });
    let caption = "Step at which training counts as solved, according to the validations or, in cells without \
         validations, to the training loss: median over the seeds that solved training. Bars: minimum to maximum. An \
         encoding with which no seed solved training has no row.";
    let title = format!("{}: steps to solve", workload.name);
    Some(Figure::new(title, caption, plot))
}
