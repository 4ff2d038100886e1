//! Parts of an SVG drawing.

use super::style::MarkStyle;
use crate::document::plot::{Axis, Series};
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
/// Upper estimate of the width of a character in 12 px sans-serif, in pixels.
pub(super) const CHARACTER: f64 = 6.7;

/// Appends formatted text to a string; `fmt::Write` for `String` cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {{
        use std::fmt::Write as _;
        let _ = writeln!($out, $($argument)*);
    }};
}
pub(super) use put;

pub(super) fn open(title: &str, height: f64) -> String {
    // A title that does not fit is cut at the frame; the label for screen readers has all of it.
    let most = ((WIDTH - 16.0) / 7.2) as usize;
    let short = if title.chars().count() > most {
        escape(&title.chars().take(most - 1).chain(['…']).collect::<String>())
    } else {
        escape(title)
    };
    let title = escape(title);
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n\
         <rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"{START}\" y=\"18\">{short}</text>\n"
    )
}

/// Begins the group of a series, with its name as hover text.
pub(super) fn group(series: &Series) -> String {
    let Series { look, label, .. } = series;
    let (classes, name) = (MarkStyle::of(*look).classes(), escape(label));
    format!("<g class=\"s {classes}\" data-look=\"{look}\"><title>{name}</title>")
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
        for (value, label) in &self.y.scale.ticks {
            let y = self.y(*value);
            put!(out, "{}", level("grid", y, self.right));
            put!(out, "{}", text(LEFT - 6.0, y + 4.0, "end", label));
        }
        put!(out, "{}", text(START, ABOVE, "start", &self.y.label));
        ticks(out, &self.x.scale, |value| self.x(value), self.floor, has_grid);
        let middle = f64::midpoint(LEFT, self.right);
        put!(out, "{}", text(middle, self.floor + 33.0, "middle", &self.x.label));
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
        let point = |(x, y): (f64, f64)| format!("{:.1} {:.1}", self.x(x) + shift, self.y(y));
        format!("<path class=\"{class}\" d=\"M{}\"/>", joined(points.map(point), "L"))
    }
}

/// Draws the mark of a point, which shows its value, interval and n under the pointer.
pub(super) fn point(look: usize, x: f64, y: f64, note: &str) -> String {
    let (shape, note) = (MarkStyle::of(look).path(), escape(note));
    format!(
        "<path class=\"m\" transform=\"translate({x:.1} {y:.1})\" d=\"{shape}\"><title>{note}</title></path>"
    )
}

/// Draws a filled mark; the look determines its shape and colour.
pub(super) fn marker(look: usize, x: f64, y: f64) -> String {
    let shape = MarkStyle::of(look).path();
    format!("<path class=\"m\" transform=\"translate({x:.1} {y:.1})\" d=\"{shape}\"/>")
}

/// Returns the width of the widest label in pixels.
pub(super) fn widest<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels.map(|l| l.chars().count()).max().unwrap_or(0) as f64 * CHARACTER
}

/// Shortens the name of a series to `width` pixels.
pub(super) fn label(text: &str, width: f64) -> String {
    let most = (width / CHARACTER).ceil().max(2.0) as usize;
    if text.chars().count() > most {
        text.chars().take(most - 1).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

/// Returns a vertical line from the top of the plot to its floor.
pub(super) fn upright(class: &str, x: f64, floor: f64) -> String {
    format!("<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor:.1}\"/>")
}

/// Returns a horizontal line from the axis to the right end of the plot.
pub(super) fn level(class: &str, y: f64, right: f64) -> String {
    format!("<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>")
}

/// Returns the vertical bar of an interval.
pub(super) fn bar(x: f64, low: f64, high: f64) -> String {
    format!("<line class=\"bar\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>")
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
    let text = escape(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}
