//! Scatter charts with one mark for each encoding and a legend at the right.

use super::draw::{
    BOTTOM, HEIGHT, PlotArea, TOP, WIDTH, bars, finite, fitted, group, level, marker, open,
    point as mark, put, text, widest,
};
use crate::document::plot::Scatter;

const ROW: f64 = 16.0;

/// Draws the chart. The legend is sorted from the best value to the worst.
pub(super) fn scatter(title: &str, alt: &str, chart: &Scatter) -> String {
    let rows = chart.series.len() as f64;
    let width = widest(chart.series.iter().map(|s| s.label.as_str())).clamp(30.0, 170.0);
    let (right, height) = (WIDTH - width - 34.0, HEIGHT.max(TOP + BOTTOM + ROW * (rows + 1.0)));
    let floor = height - BOTTOM;
    let area = PlotArea { x: &chart.x, y: &chart.y, margin: 10.0, right, floor };
    let mut out = open(title, alt, height);
    area.axes(&mut out, true);
    if let Some((value, label)) = &chart.level {
        let y = area.y(*value);
        put!(out, "{}", level("rule", y, right));
        put!(out, "{}", text(right - 2.0, y - 4.0, "end", label));
    }
    if chart.front.len() > 1 {
        put!(out, "{}", area.path("rule", chart.front.iter().copied(), 0.0));
    }
    let mut order: Vec<_> = chart.series.iter().filter(|s| !s.points.is_empty()).collect();
    order.sort_by(|a, b| area.y(a.points[0].y).total_cmp(&area.y(b.points[0].y)));
    for (row, series) in order.into_iter().enumerate() {
        put!(out, "{}", group(series));
        let ends = finite(series).filter_map(|point| Some((area.x(point.x), point.bar?)));
        let ends = ends.map(|(x, (low, high))| [(x, area.y(low)), (x, area.y(high))]);
        put!(out, "{}", bars(ends));
        for point in finite(series) {
            put!(out, "{}", mark(series.look, area.x(point.x), area.y(point.y), &point.note));
        }
        let middle = TOP + 8.0 + ROW * row as f64;
        put!(out, "{}", marker(series.look, right + 18.0, middle));
        let room = WIDTH - right - 30.0;
        put!(out, "{}</g>", fitted(right + 28.0, middle + 4.0, "start", &series.label, room));
    }
    out.push_str("</svg>");
    out
}
