//! Small line charts of shares, with one legend.

use super::draw::{
    TOP, WIDTH, finite, fitted, group, marker, open, path, point as mark, put, short, text,
};
use crate::document::plot::{Lines, Series};

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
pub(super) fn panels(title: &str, alt: &str, charts: &[(String, Lines)]) -> String {
    let width = (WIDTH - LEFT - GAP * ACROSS as f64) / ACROSS as f64;
    let mut named: Vec<&Series> = charts.iter().flat_map(|(_, lines)| &lines.series).collect();
    named.sort_by_key(|series| series.look);
    named.dedup_by_key(|series| series.look);
    let below = TOP + charts.len().div_ceil(ACROSS) as f64 * (HEAD + PANEL + FOOT);
    let mut out = open(title, alt, below + named.len().div_ceil(NAMES) as f64 * ROW + 14.0);
    for (index, (name, lines)) in charts.iter().enumerate() {
        let left = LEFT + (index % ACROSS) as f64 * (width + GAP);
        let top = TOP + (index / ACROSS) as f64 * (HEAD + PANEL + FOOT) + HEAD;
        let x = |value: f64| left + 6.0 + lines.x.scale.place(value) * (width - 12.0);
        let y = |value: f64| top + PANEL - lines.y.scale.place(value) * PANEL;
        let place = |(at, value): (f64, f64)| (x(at), y(value));
        put!(out, "<g class=\"map\">{}", fitted(left, top - 6.0, "start", name, width));
        put!(
            out,
            "<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{PANEL}\"/></g>",
            short(left),
            short(top),
            short(width)
        );
        let ticks = &lines.x.scale.ticks;
        for (value, name) in ticks.first().into_iter().chain(ticks.last()) {
            put!(out, "{}", text(x(*value), top + PANEL + 13.0, "middle", name));
        }
        if index % ACROSS == 0 {
            put!(out, "{}", text(left - 5.0, top + PANEL, "end", "0%"));
            put!(out, "{}", text(left - 5.0, top + 9.0, "end", "100%"));
        }
        for (value, _) in &lines.rules {
            let (at, floor) = (short(x(*value)), short(top + PANEL));
            put!(out, "<path class=\"grid\" d=\"M{at} {}V{floor}\"/>", short(top));
        }
        if let Some((points, _)) = &lines.level {
            put!(out, "{}", path("rule", points.iter().copied().map(place)));
        }
        for series in &lines.series {
            put!(out, "{}", group(series));
            put!(out, "{}", path("line", finite(series).map(|p| place((p.x, p.y)))));
            for point in finite(series) {
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
        put!(out, "{}</g>", fitted(x + 9.0, y + 4.0, "start", &series.label, column - 14.0));
    }
    out.push_str("</svg>");
    out
}
