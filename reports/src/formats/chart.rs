//! Figures as SVG.
//!
//! The crate plotters is not used: it writes every colour as an attribute and measures fonts to place text. The marks
//! drawn here have CSS classes, so that one style sheet serves light and dark screens, and text remains text.

mod dots;
mod draw;
mod heat;
mod lines;
mod matrix;
mod panels;
mod scatter;
mod style;

use rayon::prelude::*;

pub(crate) use self::style::{MarkStyle, of_pages};
use super::contents::{Contents, OutFile};
use crate::document::Figure;
use crate::document::plot::Plot;

/// Renders every figure that has a file.
pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let figures = contents.document.figures();
    let file = |figure: &Figure| Some(OutFile::text(figure.path()?, svg(figure)));
    figures.into_par_iter().filter_map(file).collect()
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
        Plot::Matrix(plot) => matrix::matrix(title, plot),
        Plot::Panels(plots) => panels::panels(title, plots),
    }
}

#[cfg(test)]
mod tests;
