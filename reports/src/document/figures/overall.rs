//! All tasks together: the aggregate score of each encoding with its interval, chance marked.

use super::figure::{Figure, Subject, series_of};
use super::lengths::CHANCE;
use super::plot::{Axis, Dots, Plot, Point, Series};
use super::scale::Scale;
use crate::analysis::{Overall, Report};
use crate::number::{listed, percent, points};

/// The figure of the aggregate; `None` where there is none of at least two encodings.
pub(super) fn figure(report: &Report) -> Option<Figure> {
    let overall = report.overall.as_ref().filter(|overall| overall.scores.len() > 1)?;
    let series: Vec<Series> = overall
        .scores
        .iter()
        .map(|score| {
            let interval = score.ci95.map_or_else(String::new, |(low, high)| {
                format!(" [{} to {}]", points(low), points(high))
            });
            let note = format!("{}{interval}, {} runs", percent(score.value), score.runs);
            let point = Point { x: 0.0, y: score.value, bar: score.ci95, note };
            series_of(report, &score.encoding, vec![point])
        })
        .collect();
    let ends = overall.scores.iter().map(|s| s.ci95.map_or(s.value, |(low, _)| low));
    // A score below chance is below 0.
    let low = ends.fold(0.0, f64::min);
    let tasks = listed(&overall.scored, "and");
    Some(Figure {
        workload: None,
        subject: Subject::Overall,
        title: format!("All tasks: {}", Overall::NAME),
        caption: format!(
            "Exact match on {tasks}, from guessing (0 %) to all answers right (100 %): interquartile mean over all \
             runs, with its 95 % stratified bootstrap interval."
        ),
        plot: Plot::Dots(Dots {
            value: Axis::new(Overall::NAME, Scale { low, ..Scale::percent() }),
            rules: vec![(0.0, CHANCE.to_owned())],
            groups: vec![(String::new(), series)],
        }),
        file: String::new(),
        pixels: false,
    })
}
