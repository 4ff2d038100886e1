//! Dots along a horizontal axis, in groups.

use super::{Series, TOP, WIDTH, classes, escape, marker, open, put, widest};
use crate::render::scale::Scale;

/// Horizontal dots with error bars: each group has a heading and one row for each series, whose
/// points hold the value in `y` (drawn along the horizontal axis) and nothing in `x`.
pub(in crate::render) fn dots(
    title: &str,
    scale: &Scale,
    groups: &[(String, Vec<Series>)],
) -> String {
    const ROW: f64 = 18.0;
    const HEAD: f64 = 22.0;
    let labels = groups.iter().flat_map(|(_, series)| series.iter().map(|s| s.label.as_str()));
    let left = widest(labels).clamp(30.0, 190.0) + 18.0;
    let right = WIDTH - 24.0;
    let rows: usize = groups.iter().map(|(_, series)| series.len()).sum();
    let floor = TOP + HEAD * groups.len() as f64 + ROW * rows as f64;
    let x = |value: f64| left + scale.place(value) * (right - left);
    let mut out = open(title, floor + 26.0);
    for (value, label) in &scale.ticks {
        let x = x(*value);
        put!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor:.1}\"/>"
        );
        put!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            floor + 16.0
        );
    }
    let mut y = TOP;
    for (heading, series) in groups {
        y += HEAD;
        put!(out, "<text x=\"8\" y=\"{:.1}\">{}</text>", y - 7.0, escape(heading));
        for series in series {
            y += ROW;
            let middle = y - ROW / 2.0;
            let label = escape(&series.label);
            put!(out, "<g class=\"{}\"><title>{label}</title>", classes(series.slot));
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 8.0,
                middle + 4.0
            );
            for point in series.points.iter().filter(|p| p.y.is_finite()) {
                if let Some((low, high)) = point.bar {
                    put!(
                        out,
                        "<line class=\"bar\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>",
                        x(low),
                        x(high)
                    );
                }
                put!(out, "{}", marker(series.slot, x(point.y), middle));
            }
            put!(out, "</g>");
        }
    }
    out.push_str("</svg>");
    out
}
