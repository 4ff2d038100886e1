//! Figures as SVG.
//!
//! The crate plotters is not used: it writes every colour as an attribute and measures fonts to place text. The marks
//! drawn here have CSS classes, so that one style sheet serves light and dark screens, and text remains text.

mod dots;
mod draw;
mod heat;
mod lines;
mod scatter;
mod style;

use rayon::prelude::*;

pub(crate) use self::style::{MarkStyle, of_pages};
use super::contents::{Contents, FormatError, OutFile};
use crate::document::figures::{Figure, Plot};

/// Renders every figure as a file `figures/*.svg`, for papers.
pub(super) fn render(contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
    let file = |figure: &Figure| Ok(OutFile::text(figure.path(), svg(figure)));
    contents.figures.par_iter().map(file).collect()
}

/// Renders a figure as an SVG file with an embedded style sheet and an explicit width.
pub(super) fn svg(figure: &Figure) -> String {
    let svg = chart_of(&figure.title, &figure.plot);
    let (open, rest) = svg.split_once('>').unwrap_or((&svg, ""));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\"", 1);
    format!("{open}><style>{}</style>{rest}\n", style::of_files())
}

/// Draws a plot with a title as an `svg` element for a page with the rules of [`of_pages`].
pub(crate) fn chart_of(title: &str, plot: &Plot) -> String {
    match plot {
        Plot::Lines(plot) => lines::lines(title, plot),
        Plot::Dots(plot) => dots::dots(title, plot),
        Plot::Scatter(plot) => scatter::scatter(title, plot),
        Plot::Heat(plot) => heat::heat(title, plot),
    }
}

#[cfg(test)]
mod tests;
