//! Dots along a horizontal axis, in groups.

use super::draw::{
    BOTTOM, RuleRoom, TOP, WIDTH, axis_label, bars, fitted, group, open, point as mark, put, rules,
    ticks, widest,
};
use crate::document::plot::Dots;

/// Draws groups of dots; each group has a heading, if it is named, and one row for each series.
pub(super) fn dots(title: &str, alt: &str, chart: &Dots) -> String {
    const ROW: f64 = 18.0;
    const HEAD: f64 = 22.0;
    let (groups, scale) = (&chart.groups, &chart.value.scale);
    let labels = groups.iter().flat_map(|(_, series)| series.iter().map(|s| s.label.as_str()));
    let left = widest(labels).clamp(30.0, 220.0) + 18.0;
    let right = WIDTH - 24.0;
    let rows: usize = groups.iter().map(|(_, series)| series.len()).sum();
    let heads = groups.iter().filter(|(heading, _)| !heading.is_empty()).count();
    let floor = TOP + HEAD * heads as f64 + ROW * rows as f64;
    let x = |value: f64| left + scale.place(value) * (right - left);
    let mut out = open(title, alt, floor + BOTTOM);
    ticks(&mut out, scale, x, floor, true);
    let middle = f64::midpoint(left, right);
    put!(out, "{}", axis_label(middle, floor, &chart.value.label));
    rules(&mut out, &chart.rules, x, &RuleRoom { left, right, labels_from: 0.0, floor });
    let mut y = TOP;
    for (heading, series) in groups {
        if !heading.is_empty() {
            y += HEAD;
            put!(out, "{}", fitted(8.0, y - 7.0, "start", heading, WIDTH - 16.0));
        }
        for series in series {
            y += ROW;
            let middle = y - ROW / 2.0;
            put!(out, "{}", group(series));
            put!(out, "{}", fitted(left - 8.0, middle + 4.0, "end", &series.label, left - 16.0));
            let points = || series.points.iter().filter(|p| p.y.is_finite());
            let ends = points().filter_map(|p| p.bar);
            put!(out, "{}", bars(ends.map(|(low, high)| [(x(low), middle), (x(high), middle)])));
            for point in points() {
                put!(out, "{}", mark(series.look, x(point.y), middle, &point.note));
            }
            put!(out, "</g>");
        }
    }
    out.push_str("</svg>");
    out
}
