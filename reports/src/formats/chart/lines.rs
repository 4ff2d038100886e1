//! Line charts, with the names of the lines at their right ends.

use super::draw::{
    BOTTOM, HEIGHT, LEFT, PlotArea, RuleRoom, TOP, WIDTH, bars, finite, fitted, group, open, path,
    point as mark, put, quiet, rules, text, widest,
};
use crate::document::plot::{FEW_MARKS, Lines, Marks, Point, Series};
use records::number::joined;

/// Minimum distance between the baselines of two labels, in pixels.
const LABEL_GAP: f64 = 14.0;

/// Returns baselines for labels within `top..bottom`, at least `LABEL_GAP` apart and as near to `wanted` as possible.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut places = wanted.to_vec();
    let mut least = top;
    for index in &order {
        places[*index] = places[*index].max(least);
        least = places[*index] + LABEL_GAP;
    }
    let mut most = bottom;
    for index in order.iter().rev() {
        places[*index] = places[*index].min(most);
        most = places[*index] - LABEL_GAP;
    }
    places
}

fn rules_of(out: &mut String, area: &PlotArea<'_>, chart: &Lines) {
    let room = RuleRoom {
        left: LEFT,
        right: area.right,
        labels_from: area.right_of_label(),
        floor: area.floor,
    };
    rules(out, &chart.rules, |value| area.x(value), &room);
    if let Some((points, label)) = &chart.level {
        put!(out, "{}", area.path("rule", points.iter().copied(), 0.0));
        if let Some((_, y)) = points.last() {
            put!(out, "{}", text(area.right - 2.0, area.y(*y) - 4.0, "end", label));
        }
    }
}

/// Draws a line with its marks, and its label at height `label_y`.
fn line(
    out: &mut String,
    area: &PlotArea<'_>,
    marks: Marks,
    series: &Series,
    shift: f64,
    label_y: f64,
) {
    put!(out, "{}", group(series));
    put!(out, "{}", area.path("line", finite(series).map(|p| (p.x, p.y)), shift));
    let few = marks == Marks::Few;
    let every = if few { finite(series).count().div_ceil(FEW_MARKS).max(1) } else { 1 };
    // Markers of several lines stand at different places.
    let marked = || finite(series).skip(series.look % every).step_by(every);
    let place = |point: &Point| (area.x(point.x) + shift, area.y(point.y));
    let ends = marked().filter(|_| !few).filter_map(|point| Some((place(point).0, point.bar?)));
    let ends = ends.map(|(x, (low, high))| [(x, area.y(low)), (x, area.y(high))]);
    put!(out, "{}", bars(ends));
    for point in marked() {
        let (x, y) = place(point);
        put!(out, "{}", mark(series.look, x, y, &point.note));
    }
    let label_x = area.right + 18.0;
    if let Some(end) = finite(series).last() {
        let (x, y) = place(end);
        put!(out, "{}", path("lead", [(x + 5.0, y), (label_x - 3.0, label_y)].into_iter()));
    }
    let room = WIDTH - label_x - 2.0;
    put!(out, "{}</g>", fitted(label_x, label_y + 4.0, "start", &series.label, room));
}

/// Returns the values of a series in the background: all of few points, the last of many.
fn values(marks: Marks, series: &Series) -> String {
    let notes = finite(series).map(|point| point.note.as_str());
    match marks {
        Marks::Points => joined(notes, "; "),
        Marks::Few => notes.last().unwrap_or_default().to_owned(),
    }
}

/// Draws the chart. Series without a finite value are left out; those in the background come first, so that none hides one
/// in colour.
pub(super) fn lines(title: &str, alt: &str, chart: &Lines) -> String {
    let drawn = || chart.series.iter().filter(|series| finite(series).next().is_some());
    let shown: Vec<(&Series, f64)> = drawn()
        .filter(|series| !chart.quiet.contains(&series.look))
        .filter_map(|series| Some((series, finite(series).last()?.y)))
        .collect();
    let count = shown.len() as f64;
    let label_width = widest(shown.iter().map(|(s, _)| s.label.as_str())).clamp(30.0, 170.0);
    let height = HEIGHT.max(TOP + BOTTOM + LABEL_GAP * (count + 1.0));
    let (right, floor) = (WIDTH - label_width - 26.0, height - BOTTOM);
    let area = PlotArea { x: &chart.x, y: &chart.y, margin: 8.0, right, floor };
    let mut out = open(title, alt, height);
    area.axes(&mut out, false);
    rules_of(&mut out, &area, chart);
    for series in drawn().filter(|series| chart.quiet.contains(&series.look)) {
        let line = area.path("line", finite(series).map(|p| (p.x, p.y)), 0.0);
        put!(out, "{}", quiet(series, &values(chart.marks, series), &line));
    }
    let ends: Vec<f64> = shown.iter().map(|(_, end)| area.y(*end)).collect();
    let labels = spread(&ends, TOP + 4.0, area.floor);
    for (index, ((series, _), label_y)) in shown.iter().zip(labels).enumerate() {
        // Bars at the same length stand side by side.
        let shift = if chart.marks == Marks::Points {
            (index as f64 - (count - 1.0) / 2.0) * (14.0 / count).min(3.0)
        } else {
            0.0
        };
        line(&mut out, &area, chart.marks, series, shift, label_y);
    }
    out.push_str("</svg>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_within_the_frame() {
        let places = spread(&[100.0, 101.0, 100.5, 290.0, 20.0], 30.0, 260.0);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|w| w[1] - w[0] >= LABEL_GAP - 1e-9), "{places:?}");
        assert!(sorted[0] >= 30.0 && sorted[4] <= 260.0);
        assert!(places[0] < places[2] && places[2] < places[1], "order is kept: {places:?}");
    }
}
