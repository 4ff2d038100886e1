//! Figures as SVG: for papers, and the source of the PNG files.
//!
//! Why not plotters: it writes every colour as an attribute, and places text by measuring fonts.
//! Here marks have CSS classes, so that one style sheet serves light and dark screens, and text is text.

mod dots;
mod heat;
mod lines;
mod scatter;
pub(super) mod style;

use crate::figure::{Figure, Plot};
use crate::text::html as escape;

const WIDTH: f64 = 480.0;
const TOP: f64 = 34.0;
/// Width of a character, on the wide side for 12 px sans-serif.
const CHARACTER: f64 = 6.7;

/// The figure as a file: with its own style sheet, and a width for viewers that need one.
pub(super) fn svg(figure: &Figure) -> String {
    chart_of(&figure.title, &figure.plot)
}

/// The same for a figure that is in no report.
pub(crate) fn chart_of(title: &str, plot: &Plot) -> String {
    let svg = match plot {
        Plot::Lines(plot) => lines::lines(title, plot),
        Plot::Dots(plot) => dots::dots(title, plot),
        Plot::Scatter(plot) => scatter::scatter(title, plot),
        Plot::Heat(plot) => heat::heat(title, plot),
    };
    standalone(&svg)
}

fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('>').unwrap_or((svg, ""));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\"", 1);
    format!("{open}><style>{}</style>{rest}\n", style::of_files())
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
         <text class=\"title\" x=\"8\" y=\"18\">{short}</text>\n"
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

/// A series' name where there is room for `width` pixels.
fn label(text: &str, width: f64) -> String {
    let most = (width / CHARACTER).ceil().max(2.0) as usize;
    if text.chars().count() > most {
        text.chars().take(most - 1).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = escape(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>")
}

#[cfg(test)]
mod tests;
