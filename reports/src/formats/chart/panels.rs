//! Small line charts of shares, with one legend.

use super::draw::{TOP, WIDTH, group, label, marker, open, point as mark, put, text};
use crate::document::plot::{Lines, Series};
use records::number::joined;

const ACROSS: usize = 3;
const LEFT: f64 = 44.0;
const GAP: f64 = 16.0;
const HEAD: f64 = 22.0;
const PANEL: f64 = 84.0;
const FOOT: f64 = 18.0;
/// Height of a line of the legend, and number of its columns.
const ROW: f64 = 18.0;
const NAMES: usize = 3;

/// Draws the charts, three in a row, and the legend below them.
pub(super) fn panels(title: &str, charts: &[(String, Lines)]) -> String {
    let width = (WIDTH - LEFT - GAP * ACROSS as f64) / ACROSS as f64;
    let mut named: Vec<&Series> = charts.iter().flat_map(|(_, lines)| &lines.series).collect();
    named.sort_by_key(|series| series.look);
    named.dedup_by_key(|series| series.look);
    let below = TOP + charts.len().div_ceil(ACROSS) as f64 * (HEAD + PANEL + FOOT);
    let mut out = open(title, below + named.len().div_ceil(NAMES) as f64 * ROW + 14.0);
    for (index, (name, lines)) in charts.iter().enumerate() {
        let left = LEFT + (index % ACROSS) as f64 * (width + GAP);
        let top = TOP + (index / ACROSS) as f64 * (HEAD + PANEL + FOOT) + HEAD;
        let x = |value: f64| left + 6.0 + lines.x.scale.place(value) * (width - 12.0);
        let y = |value: f64| top + PANEL - lines.y.scale.place(value) * PANEL;
        let path = |class: &str, points: &mut dyn Iterator<Item = (f64, f64)>| {
            let points = points.map(|(at, value)| format!("{:.1} {:.1}", x(at), y(value)));
            format!("<path class=\"{class}\" d=\"M{}\"/>", joined(points, "L"))
        };
        put!(out, "<g class=\"map\">{}", text(left, top - 6.0, "start", &label(name, width)));
        put!(
            out,
            "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{PANEL}\"/></g>"
        );
        let ticks = &lines.x.scale.ticks;
        for (value, name) in ticks.first().into_iter().chain(ticks.last()) {
            put!(out, "{}", text(x(*value), top + PANEL + 13.0, "middle", &format!("{name} x")));
        }
        if index % ACROSS == 0 {
            put!(out, "{}", text(left - 5.0, top + PANEL, "end", "0 %"));
            put!(out, "{}", text(left - 5.0, top + 9.0, "end", "100 %"));
        }
        if let Some((points, _)) = &lines.level {
            put!(out, "{}", path("rule", &mut points.iter().copied()));
        }
        for series in &lines.series {
            let points = || series.points.iter().filter(|p| p.y.is_finite());
            put!(out, "{}", group(series));
            put!(out, "{}", path("line", &mut points().map(|p| (p.x, p.y))));
            for point in points() {
                put!(out, "{}", mark(series.look, x(point.x), y(point.y), &point.note));
            }
            put!(out, "</g>");
        }
    }
    let column = (WIDTH - LEFT) / NAMES as f64;
    for (index, series) in named.into_iter().enumerate() {
        let x = LEFT + (index % NAMES) as f64 * column;
        let y = below + 10.0 + (index / NAMES) as f64 * ROW;
        put!(out, "{}{}", group(series), marker(series.look, x, y));
        put!(out, "{}</g>", text(x + 9.0, y + 4.0, "start", &label(&series.label, column - 14.0)));
    }
    out.push_str("</svg>");
    out
}
