//! Line charts, with the names of the lines at their right ends.

use super::draw::{
    BOTTOM, HEIGHT, LEFT, PlotArea, RuleRoom, TOP, WIDTH, bar, group, label, open, point as mark,
    put, rules, text, widest,
};
use crate::document::plot::{FEW_MARKS, Lines, Marks, Point, Series};

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
    let points = || finite(series);
    put!(out, "{}", group(series));
    put!(out, "{}", area.path("line", points().map(|p| (p.x, p.y)), shift));
    let few = marks == Marks::Few;
    let every = if few { points().count().div_ceil(FEW_MARKS).max(1) } else { 1 };
    // Markers of several lines stand at different places.
    for point in points().skip(series.look % every).step_by(every) {
        let (x, y) = (area.x(point.x) + shift, area.y(point.y));
        if let Some((low, high)) = point.bar.filter(|_| !few) {
            put!(out, "{}", bar(x, area.y(low), area.y(high)));
        }
        put!(out, "{}", mark(series.look, x, y, &point.note));
    }
    let label_x = area.right + 18.0;
    if let Some(end) = points().last() {
        put!(
            out,
            "<line class=\"lead\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{label_y:.1}\"/>",
            area.x(end.x) + shift + 5.0,
            area.y(end.y),
            label_x - 3.0
        );
    }
    let shown = label(&series.label, WIDTH - label_x);
    put!(out, "{}</g>", text(label_x, label_y + 4.0, "start", &shown));
}

fn finite(series: &Series) -> impl Iterator<Item = &Point> {
    series.points.iter().filter(|p| p.y.is_finite())
}

/// Draws the chart. Series without a finite value are left out.
pub(super) fn lines(title: &str, chart: &Lines) -> String {
    let shown: Vec<(&Series, f64)> =
        chart.series.iter().filter_map(|series| Some((series, finite(series).last()?.y))).collect();
    let count = shown.len() as f64;
    let label_width = widest(shown.iter().map(|(s, _)| s.label.as_str())).clamp(30.0, 170.0);
    let height = HEIGHT.max(TOP + BOTTOM + LABEL_GAP * (count + 1.0));
    let (right, floor) = (WIDTH - label_width - 26.0, height - BOTTOM);
    let area = PlotArea { x: &chart.x, y: &chart.y, margin: 8.0, right, floor };
    let mut out = open(title, height);
    area.axes(&mut out, false);
    rules_of(&mut out, &area, chart);
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
