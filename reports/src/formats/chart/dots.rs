//! Dots along a horizontal axis, in groups.

use super::draw::{
    BOTTOM, RuleRoom, TOP, WIDTH, group, label, open, point as mark, put, rules, text, ticks,
    widest,
};
use crate::document::plot::Dots;

/// Draws groups of dots; each group has a heading and one row for each series.
pub(super) fn dots(title: &str, chart: &Dots) -> String {
    const ROW: f64 = 18.0;
    const HEAD: f64 = 22.0;
    let (groups, scale) = (&chart.groups, &chart.value.scale);
    let labels = groups.iter().flat_map(|(_, series)| series.iter().map(|s| s.label.as_str()));
    let left = widest(labels).clamp(30.0, 190.0) + 18.0;
    let right = WIDTH - 24.0;
    let rows: usize = groups.iter().map(|(_, series)| series.len()).sum();
    let floor = TOP + HEAD * groups.len() as f64 + ROW * rows as f64;
    let x = |value: f64| left + scale.place(value) * (right - left);
    let mut out = open(title, floor + BOTTOM);
    ticks(&mut out, scale, x, floor, true);
    let middle = f64::midpoint(left, right);
    put!(out, "{}", text(middle, floor + 33.0, "middle", &chart.value.label));
    rules(&mut out, &chart.rules, x, &RuleRoom { left, right, labels_from: 0.0, floor });
    let mut y = TOP;
    for (heading, series) in groups {
        y += HEAD;
        put!(out, "{}", text(8.0, y - 7.0, "start", &label(heading, WIDTH - 16.0)));
        for series in series {
            y += ROW;
            let middle = y - ROW / 2.0;
            put!(out, "{}", group(series));
            let shown = label(&series.label, left - 16.0);
            put!(out, "{}", text(left - 8.0, middle + 4.0, "end", &shown));
            for point in series.points.iter().filter(|p| p.y.is_finite()) {
                if let Some((low, high)) = point.bar {
                    put!(
                        out,
                        "<line class=\"bar\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>",
                        x(low),
                        x(high)
                    );
                }
                put!(out, "{}", mark(series.look, x(point.y), middle, &point.note));
            }
            put!(out, "</g>");
        }
    }
    out.push_str("</svg>");
    out
}
