//! Pieces of figures: series, points and their texts, and which series have colours.

use crate::document::plot::{Figure, Plot, Point, Series};
use analysis::{Report, Workload, YARDSTICK};
use records::Metric;
use stats::Estimate;

/// Number of the best encodings whose lines have colours, besides RoPE and NoPE.
const BEST: usize = 5;
/// Encodings whose lines always have colours.
const ALWAYS: [&str; 2] = [YARDSTICK, "nope"];

/// Returns the encodings whose lines have colours, of `order` from the best to the worst.
pub(super) fn coloured<'a>(order: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let best = order.clone().filter(|name| !ALWAYS.contains(name)).take(BEST);
    best.chain(order.filter(|name| ALWAYS.contains(name))).collect()
}

/// Returns the looks whose lines have colours: by the deciding region of a workload, or by the aggregate without one.
pub(crate) fn coloured_looks(report: &Report, workload: Option<&Workload>) -> Vec<usize> {
    let ranked = workload.and_then(Workload::deciding).map(|ranking| ranking.ranked());
    let names: Vec<&str> = match (&ranked, &report.overall) {
        (Some(ranked), _) => ranked.iter().map(|result| &*result.encoding).collect(),
        (None, Some(overall)) => overall.scores.iter().map(|score| &*score.encoding).collect(),
        (None, None) => Vec::new(),
    };
    let coloured = coloured(names.into_iter()).into_iter();
    coloured.filter_map(|name| Some(report.encoding(name)?.look)).collect()
}

/// Draws the lines of a figure with many in grey but for those of some looks; without any, but for the first ones.
pub(crate) fn quieten(figure: &mut Figure, coloured: &[usize]) {
    let most = BEST + ALWAYS.len();
    let Plot::Lines(lines) = &mut figure.plot else { return };
    if lines.series.len() <= most {
        return;
    }
    let looks = lines.series.iter().map(|series| series.look);
    let first: Vec<usize> = looks.clone().take(most).collect();
    let coloured = if coloured.is_empty() { &first } else { coloured };
    lines.quiet = looks.filter(|look| !coloured.contains(look)).collect();
}

/// Returns a series with the colour and display name of an encoding.
pub(super) fn series_of(report: &Report, encoding: &str, points: Vec<Point>) -> Series {
    let known = report.encoding(encoding);
    let label = known.map_or(encoding, |e| &e.display).to_owned();
    Series { look: known.map_or(0, |e| e.look), label, points }
}

/// Formats the hover text of a point: `97.1% [92.0, 100.0] n=3`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::plot::{Axis, Lines, Marks};
    use crate::document::scale::Scale;

    #[test]
    fn the_best_five_and_two_for_comparison_have_colours() {
        let names = ["a", "rope", "b", "c", "d", "e", "f", "nope", "g"];
        assert_eq!(coloured(names.into_iter()), ["a", "b", "c", "d", "e", "rope", "nope"]);
        let quiet = |lines: usize, looks: &[usize]| {
            let of = |look| Series { look, label: String::new(), points: Vec::new() };
            let axis = || Axis::new("", Scale::percent());
            let plot =
                Lines::new(axis(), axis(), Marks::Few, (0..lines).map(of).collect::<Vec<_>>());
            let mut figure = Figure::new(String::new(), "", Plot::Lines(plot));
            quieten(&mut figure, looks);
            match figure.plot {
                Plot::Lines(lines) => lines.quiet,
                _ => Vec::new(),
            }
        };
        assert_eq!(quiet(9, &[8, 0, 1, 2, 3, 4, 5]), [6, 7]);
        assert_eq!(quiet(9, &[]), [7, 8]);
        assert!(quiet(7, &[0]).is_empty());
    }
}
