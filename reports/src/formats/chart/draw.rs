//! Parts of an SVG drawing.

use super::style::MarkStyle;
use crate::document::plot::{Axis, Point, Series};
use crate::document::scale::Scale;
use crate::text::html as escape;
use records::number::joined;

pub(super) const WIDTH: f64 = 480.0;
pub(super) const TOP: f64 = 40.0;
/// Baseline of the labels above a plot: those of the vertical axis and of vertical rules.
const ABOVE: f64 = TOP - 8.0;
/// Left end of the title and of the label of the vertical axis.
const START: f64 = 8.0;
/// Left end of plots with a vertical axis.
pub(super) const LEFT: f64 = 50.0;
/// Height of plots with a vertical axis.
pub(super) const HEIGHT: f64 = 300.0;
/// Room below plots for the labels of ticks and of the horizontal axis.
pub(super) const BOTTOM: f64 = 40.0;
/// Size of labels and of the title in pixels.
const FONT: f64 = 12.0;
const TITLE: f64 = 13.0;
/// Upper estimate of the width of a character of a label, and of the bold title, in units of the size.
const CHARACTER: f64 = 6.7 / FONT;
const BOLD: f64 = 7.8 / TITLE;

/// Appends formatted text to a string; `fmt::Write` for `String` cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($argument)*);
    }};
}
pub(super) use put;

/// Returns the size at which text of a number of characters is at most `width` wide.
fn fitting(text: &str, most: f64, character: f64, width: f64) -> f64 {
    let fitting = width / (character * text.chars().count().max(1) as f64);
    (fitting.min(most) * 10.0).floor() / 10.0
}

/// Returns the attributes of a text that is exactly `width` pixels wide in any font: the size alone is right for the fonts
/// that were measured.
fn exact(width: f64) -> String {
    format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", short(width))
}

pub(super) fn open(title: &str, alt: &str, height: f64) -> String {
    let size = fitting(title, TITLE, BOLD, WIDTH - 2.0 * START);
    let width = if size < TITLE { exact(WIDTH - 2.0 * START) } else { String::new() };
    let (title, alt) = (escape(title), escape(alt));
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}. {alt}\">\
         <rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>\
         <text class=\"title\" font-size=\"{size}\"{width} x=\"{START}\" y=\"18\">{title}</text>"
    )
}

/// Begins the group of a series, with its name as hover text.
pub(super) fn group(series: &Series) -> String {
    let Series { look, label, .. } = series;
    let (classes, name) = (MarkStyle::of(*look).classes(), escape(label));
    format!("<g class=\"s {classes}\"><title>{name}</title>")
}

/// Draws a series in the background: its line alone, with its name and `values` as hover text.
pub(super) fn quiet(series: &Series, values: &str, line: &str) -> String {
    let (name, values) = (escape(&series.label), escape(values));
    format!("<g class=\"s o\"><title>{name}: {values}</title>{line}</g>")
}

/// Drawing area of a plot with a vertical axis: from `LEFT` to `right`, less `margin` on both sides, and from `TOP` to `floor`.
pub(super) struct PlotArea<'a> {
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    pub(super) margin: f64,
    pub(super) right: f64,
    pub(super) floor: f64,
}

impl PlotArea<'_> {
    pub(super) fn x(&self, value: f64) -> f64 {
        let width = self.right - LEFT - 2.0 * self.margin;
        LEFT + self.margin + self.x.scale.place(value) * width
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.floor - self.y.scale.place(value) * (self.floor - TOP)
    }

    /// Draws both axes; `has_grid`: with vertical lines.
    pub(super) fn axes(&self, out: &mut String, has_grid: bool) {
        let (left, right) = (short(LEFT), short(self.right));
        let line =
            |(value, _): &(f64, String)| format!("M{left} {}H{right}", short(self.y(*value)));
        let lines = joined(self.y.scale.ticks.iter().map(line), "");
        put!(out, "<path class=\"grid\" d=\"{lines}\"/>");
        for (value, label) in &self.y.scale.ticks {
            put!(out, "{}", text(LEFT - 6.0, self.y(*value) + 4.0, "end", label));
        }
        put!(out, "{}", text(START, ABOVE, "start", &self.y.label));
        ticks(out, &self.x.scale, |value| self.x(value), self.floor, has_grid);
        let middle = f64::midpoint(LEFT, self.right);
        put!(out, "{}", axis_label(middle, self.floor, &self.x.label));
    }

    /// Returns where the room right of the label of the vertical axis begins.
    pub(super) fn right_of_label(&self) -> f64 {
        START + widest(std::iter::once(self.y.label.as_str())) + 8.0
    }

    /// Draws a line through points, which are values of both axes, moved to the right by `shift`.
    pub(super) fn path(
        &self,
        class: &str,
        points: impl Iterator<Item = (f64, f64)>,
        shift: f64,
    ) -> String {
        path(class, points.map(|(x, y)| (self.x(x) + shift, self.y(y))))
    }
}

/// Returns a coordinate with one decimal at most, without zeros that say nothing.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    match text.split_once("0.") {
        Some((sign @ ("" | "-"), digits)) => format!("{sign}.{digits}"),
        _ => if text == "-0" { "0" } else { text }.to_owned(),
    }
}

/// Draws a line through places in pixels, as steps from place to place.
pub(super) fn path(class: &str, places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut steps = String::new();
    // Of rounded places, so that steps do not add up errors.
    let mut last: Option<(f64, f64)> = None;
    for (x, y) in places.map(|(x, y)| ((10.0 * x).round(), (10.0 * y).round())) {
        let (command, from) = last.map_or(("M", (0.0, 0.0)), |last| ("l", last));
        let (across, down) = (short((x - from.0) / 10.0), short((y - from.1) / 10.0));
        let gap = if down.starts_with('-') { "" } else { " " };
        put!(steps, "{command}{across}{gap}{down}");
        last = Some((x, y));
    }
    format!("<path class=\"{class}\" d=\"{steps}\"/>")
}

/// Draws the mark of a point, which shows its value, interval and n under the pointer.
pub(super) fn point(look: usize, x: f64, y: f64, note: &str) -> String {
    let (marker, note) = (MarkStyle::of(look).marker, escape(note));
    let (x, y) = (short(x), short(y));
    format!("<use href=\"#_{marker}\" x=\"{x}\" y=\"{y}\"><title>{note}</title></use>")
}

/// Draws a filled mark; the look determines its shape and colour.
pub(super) fn marker(look: usize, x: f64, y: f64) -> String {
    let (marker, x, y) = (MarkStyle::of(look).marker, short(x), short(y));
    format!("<use href=\"#_{marker}\" x=\"{x}\" y=\"{y}\"/>")
}

/// Returns the width of the widest label in pixels.
pub(super) fn widest<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels.map(|l| l.chars().count()).max().unwrap_or(0) as f64 * CHARACTER * FONT
}

/// Draws the intervals of points as one path.
pub(super) fn bars(ends: impl Iterator<Item = [(f64, f64); 2]>) -> String {
    let line = |[(x1, y1), (x2, y2)]: [(f64, f64); 2]| {
        if (x1 - x2).abs() < f64::EPSILON {
            format!("M{} {}V{}", short(x1), short(y1), short(y2))
        } else {
            format!("M{} {}H{}", short(x1), short(y1), short(x2))
        }
    };
    let lines: String = ends.map(line).collect();
    if lines.is_empty() { lines } else { format!("<path class=\"bar\" d=\"{lines}\"/>") }
}

/// Returns a vertical line from the top of the plot to its floor.
pub(super) fn upright(class: &str, x: f64, floor: f64) -> String {
    format!("<path class=\"{class}\" d=\"M{} {TOP}V{}\"/>", short(x), short(floor))
}

/// Returns a horizontal line from the axis to the right end of the plot.
pub(super) fn level(class: &str, y: f64, right: f64) -> String {
    format!("<path class=\"{class}\" d=\"M{LEFT} {}H{}\"/>", short(y), short(right))
}

/// Writes the labels of ticks along a horizontal axis that have room, below `floor`, and the lines of a grid.
pub(super) fn ticks(
    out: &mut String,
    scale: &Scale,
    x: impl Fn(f64) -> f64,
    floor: f64,
    has_grid: bool,
) {
    let mut last = f64::NEG_INFINITY;
    for (value, label) in &scale.ticks {
        let x = x(*value);
        if has_grid {
            put!(out, "{}", upright("grid", x, floor));
        }
        if x - last >= widest(std::iter::once(label.as_str())) + 8.0 {
            put!(out, "{}", text(x, floor + 16.0, "middle", label));
            last = x;
        }
    }
}

/// Room of vertical rules and of their labels above the plot.
pub(super) struct RuleRoom {
    /// Ends of the plot.
    pub(super) left: f64,
    pub(super) right: f64,
    /// Left end of the room for labels.
    pub(super) labels_from: f64,
    /// Lower end of the rules.
    pub(super) floor: f64,
}

/// Writes vertical rules with their labels on the side that has room.
pub(super) fn rules(
    out: &mut String,
    rules: &[(f64, String)],
    x: impl Fn(f64) -> f64,
    room: &RuleRoom,
) {
    let RuleRoom { left, right, labels_from, floor } = *room;
    for (value, label) in rules {
        let x = x(*value);
        put!(out, "{}", upright("rule", x, floor));
        let width = widest(std::iter::once(label.as_str()));
        let (anchor, at) = if x > f64::midpoint(left, right) && x - 4.0 - width > labels_from {
            ("end", x - 4.0)
        } else {
            ("start", (x + 4.0).max(labels_from))
        };
        put!(out, "{}", text(at, ABOVE, anchor, label));
    }
}

pub(super) fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    fitted(x, y, anchor, text, f64::INFINITY)
}

/// Returns the label of a horizontal axis: below its middle, or as near to it as the drawing has room.
pub(super) fn axis_label(middle: f64, floor: f64, label: &str) -> String {
    let room = WIDTH - 2.0 * START;
    let half = widest(std::iter::once(label)).min(room) / 2.0;
    let middle = middle.clamp(START + half, WIDTH - START - half);
    fitted(middle, floor + 33.0, "middle", label, room)
}

/// Returns text that is at most `width` pixels wide: longer text is smaller, and never cut.
pub(super) fn fitted(x: f64, y: f64, anchor: &str, text: &str, width: f64) -> String {
    let size = fitting(text, FONT, CHARACTER, width);
    let size =
        if size < FONT { format!(" font-size=\"{size}\"{}", exact(width)) } else { String::new() };
    // Texts begin at their place without an anchor.
    let anchor = match anchor {
        "start" => String::new(),
        anchor => format!(" text-anchor=\"{anchor}\""),
    };
    let (x, y, text) = (short(x), short(y), escape(text));
    format!("<text x=\"{x}\" y=\"{y}\"{anchor}{size}>{text}</text>")
}

/// Returns the points of a series that can be drawn.
pub(super) fn finite(series: &Series) -> impl Iterator<Item = &Point> {
    series.points.iter().filter(|point| point.x.is_finite() && point.y.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lines_are_short() {
        let numbers = [0.04, -0.04, 0.5, -0.52, 12.0, 12.34, 100.0];
        assert_eq!(numbers.map(short), ["0", "0", ".5", "-.5", "12", "12.3", "100"]);
        let places = [(10.0, 20.04), (10.5, 19.96), (20.5, 25.0)];
        assert_eq!(path("a", places.into_iter()), "<path class=\"a\" d=\"M10 20l.5 0l10 5\"/>");
    }

    #[test]
    fn long_labels_are_small_and_whole() {
        assert_eq!(fitted(1.0, 2.0, "start", "abc", 30.0), "<text x=\"1\" y=\"2\">abc</text>");
        let long = "x".repeat(40);
        assert_eq!(
            fitted(1.0, 2.0, "end", &long, 140.0),
            format!(
                "<text x=\"1\" y=\"2\" text-anchor=\"end\" font-size=\"6.2\" textLength=\"140\" \
                 lengthAdjust=\"spacingAndGlyphs\">{long}</text>"
            )
        );
    }
}
