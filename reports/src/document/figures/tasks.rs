//! Figures over all tasks besides the aggregate: performance profiles and mean ranks.

use super::figure::{Figure, Subject, series_of};
use super::plot::{Axis, Dots, Lines, Marks, Plot, Point, Series};
use super::scale::Scale;
use crate::analysis::{Overall, Report};
use crate::number::{count, p_value, percent};

pub(super) fn figures(report: &Report) -> Vec<Figure> {
    let Some(overall) = &report.overall else { return Vec::new() };
    profiles(report, overall).into_iter().chain(mean_ranks(report, overall)).collect()
}

fn over_tasks(title: &str, caption: String, plot: Plot) -> Figure {
    Figure {
        workload: None,
        subject: Subject::Tasks,
        title: title.to_owned(),
        caption,
        plot,
        file: String::new(),
        pixels: false,
    }
}

/// Share of runs above each score; `None` without scores.
fn profiles(report: &Report, overall: &Overall) -> Option<Figure> {
    let series: Vec<Series> = overall
        .profiles
        .iter()
        .map(|profile| {
            let point = |(score, share): &(f64, crate::stats::over_tasks::TaskEstimate)| Point {
                x: *score,
                y: share.value,
                bar: share.ci95,
                note: format!("{} of runs above {}", percent(share.value), percent(*score)),
            };
            series_of(report, &profile.encoding, profile.points.iter().map(point).collect())
        })
        .collect();
    let plot = Plot::Lines(Lines {
        x: Axis::new("exact match above chance", Scale::percent()),
        y: Axis::new("share of runs", Scale::percent()),
        rules: Vec::new(),
        level: None,
        marks: Marks::Few,
        series,
    });
    let caption = format!(
        "Performance profiles over {}: share of runs (seeds of all tasks) with a higher score than that on the axis. A \
         curve that lies above another everywhere is that of the better encoding. Bands: pointwise 95 % stratified \
         bootstrap intervals.",
        count(overall.scored.len() as u64, "workload")
    );
    (!overall.profiles.is_empty())
        .then(|| over_tasks("All tasks: performance profiles", caption, plot))
}

/// Mean ranks with bars of the critical difference.
fn mean_ranks(report: &Report, overall: &Overall) -> Option<Figure> {
    let ranks = &overall.ranks;
    let half = 0.5 * ranks.critical_difference;
    let series: Vec<Series> = overall
        .ranked
        .iter()
        .zip(&ranks.ranks)
        .map(|(encoding, rank)| {
            let bar = Some((rank - half, rank + half));
            let point = Point { x: 0.0, y: *rank, bar, note: format!("mean rank {rank:.2}") };
            series_of(report, encoding, vec![point])
        })
        .collect();
    let ends: Vec<f64> = ranks.ranks.iter().flat_map(|rank| [rank - half, rank + half]).collect();
    let found = if ranks.differ() {
        "Encodings whose bars do not overlap are significantly different."
    } else {
        "It finds no difference, so that no pair is significantly different, whatever the bars."
    };
    let caption = format!(
        "Mean rank over {} (1 is best); bars are as long as Nemenyi's critical difference, {:.2} ranks. Friedman's test: p \
         {}. {found} Both take the workloads as a random sample of independent tasks; the critical difference assumes many.",
        count(ranks.tasks, "workload"),
        ranks.critical_difference,
        p_value(ranks.p)
    );
    let plot = Plot::Dots(Dots {
        value: Axis::new("mean rank", Scale::linear(&ends)),
        rules: Vec::new(),
        groups: vec![(String::new(), series)],
    });
    (overall.ranked.len() > 2).then(|| over_tasks("All tasks: mean ranks", caption, plot))
}
