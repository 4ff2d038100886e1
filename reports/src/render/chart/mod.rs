//! A small SVG writer: lines with error bars, and dots.
//!
//! Why not plotters: it writes every colour as an attribute, and places text by measuring fonts.
//! Here marks have CSS classes, so that one style sheet serves light and dark pages, and text is text.

mod dots;
mod lines;

pub(super) use dots::dots;
pub(super) use lines::{Lines, lines};

pub(super) const CSS: &str = include_str!("../chart.css");

const WIDTH: f64 = 480.0;
const TOP: f64 = 34.0;
/// Width of a character, on the wide side for 12 px sans-serif.
const CHARACTER: f64 = 6.7;

/// A point with an optional error bar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) bar: Option<(f64, f64)>,
}

/// One encoding's points; `slot` chooses colour, dash and marker.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) slot: usize,
    pub(super) label: String,
    pub(super) points: Vec<Point>,
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// The figure as a file: with its own style sheet, and a width for viewers that need one.
pub(super) fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('>').unwrap_or((svg, ""));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\"", 1);
    format!("{open}><style>{CSS}</style>{rest}\n")
}

/// Writes into the string; `fmt::Write` for `String` cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {{
        use std::fmt::Write as _;
        let _ = writeln!($out, $($argument)*);
    }};
}
use put;

fn open(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n\
         <rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"8\" y=\"18\">{title}</text>\n"
    )
}

fn classes(slot: usize) -> String {
    format!("s c{} d{}", slot % 8, (slot / 8) % 3)
}

/// A filled mark whose shape, beside its colour, tells the slot.
fn marker(slot: usize, x: f64, y: f64) -> String {
    let d = match slot % 5 {
        0 => return format!("<circle class=\"m\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"),
        1 => "-3.5,-3.5 3.5,-3.5 3.5,3.5 -3.5,3.5",
        2 => "0,-5 5,0 0,5 -5,0",
        3 => "0,-4.5 4.5,3.5 -4.5,3.5",
        _ => "0,4.5 4.5,-3.5 -4.5,-3.5",
    };
    format!("<polygon class=\"m\" transform=\"translate({x:.1} {y:.1})\" points=\"{d}\"/>")
}

/// Widest label in pixels.
fn widest<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels.map(|l| l.chars().count()).max().unwrap_or(0) as f64 * CHARACTER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::scale::Scale;

    #[test]
    fn a_file_has_namespace_and_style_and_the_page_form_has_neither() {
        let svg = dots("t", &Scale::percent(), &[]);
        assert!(!svg.contains("http") && !svg.contains("<style>"));
        let file = standalone(&svg);
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(file.contains(".chart .s") && file.trim_end().ends_with("</svg>"));
    }
}
