//! All tasks together: the aggregate score of each encoding with its interval, chance marked.

use super::lengths::CHANCE;
use super::series::dot;
use crate::document::plot::{Axis, Dots, Figure, Plot};
use crate::document::scale::Scale;
use analysis::{Overall, Report, YARDSTICK};
use records::number::{listed, percent, points, value_and_interval};

/// The figure of the aggregate; `None` where there is none of at least two encodings.
pub(crate) fn figure(report: &Report) -> Option<Figure> {
    let overall = report.overall.as_ref().filter(|overall| overall.scores.len() > 1)?;
    let series = overall.scores.iter().map(|score| {
        let value = value_and_interval(percent(score.value), score.ci95, points);
        let note = format!("{value}, {} runs", score.runs);
        dot(report, &score.encoding, score.value, score.ci95, note)
    });
    // A score below chance is below 0.
    let ends = overall.scores.iter().map(|s| s.ci95.map_or(s.value, |(low, _)| low));
    let low = ends.fold(0.0, f64::min);
    let plot = Plot::Dots(Dots {
        value: Axis::new(Overall::NAME, Scale { low, ..Scale::percent() }),
        rules: vec![(0.0, CHANCE.to_owned())],
        groups: vec![(String::new(), series.collect())],
    });
    let title = format!("All tasks: {}", Overall::NAME);
    let scored = overall.scored.iter().map(|name| format!("`{name}`"));
    let caption = format!(
        "Exact match on {}, on a scale from guessing (0%) to all answers right (100%): the interquartile mean over \
         all runs, with its 95% stratified bootstrap interval.",
        listed(&scored.collect::<Vec<_>>(), "and")
    );
    Some(Figure::new(title, caption, plot))
}

/// The same figure with the best encodings and RoPE alone.
pub(crate) fn leaders(report: &Report, most: usize) -> Option<Figure> {
    let mut figure = figure(report)?;
    let scores = &report.overall.as_ref()?.scores;
    if let Plot::Dots(Dots { groups, .. }) = &mut figure.plot {
        for (_, series) in groups {
            let mut at = 0..;
            series.retain(|_| {
                at.next().is_some_and(|at| at < most || scores[at].encoding == YARDSTICK)
            });
        }
    }
    figure.title =
        format!("The best {most} of {} encodings, and RoPE: {}", scores.len(), Overall::NAME);
    Some(figure)
}
