//! Figures as SVG.
//!
//! The crate plotters is not used: it writes every colour as an attribute and measures fonts to place text. The marks
//! drawn here have CSS classes, so that one style sheet serves light and dark screens, and text remains text.

mod alt;
mod dots;
mod draw;
mod heat;
mod lines;
mod matrix;
mod panels;
mod scatter;
mod style;

use rayon::prelude::*;

pub(crate) use self::style::{MarkStyle, marks, of_pages};
use super::contents::{Contents, OutFile};
use crate::document::Figure;
use crate::document::plot::Plot;

/// Renders every figure that has a file.
pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let figures = contents.document.figures();
    let file = |figure: &Figure| Some(OutFile::text(figure.path()?, svg(figure)));
    figures.into_par_iter().filter_map(file).collect()
}

/// Renders a figure as an SVG file with an embedded style sheet, its markers and an explicit width.
pub(crate) fn svg(figure: &Figure) -> String {
    let svg = chart_of(&figure.title, &figure.plot);
    let (open, rest) = svg.split_once('>').unwrap_or((&svg, ""));
    let open = open.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\"", 1);
    let (style, markers) = (style::of_files(), style::marker_elements());
    format!("{open}><style>{style}</style>{markers}{rest}\n")
}

/// Draws a plot with a title as an `svg` element for a page with the rules of [`of_pages`] and [`marks`].
pub(crate) fn chart_of(title: &str, plot: &Plot) -> String {
    let alt = alt::alt(plot);
    match plot {
        Plot::Lines(plot) => lines::lines(title, &alt, plot),
        Plot::Dots(plot) => dots::dots(title, &alt, plot),
        Plot::Scatter(plot) => scatter::scatter(title, &alt, plot),
        Plot::Heat(plot) => heat::heat(title, &alt, plot),
        Plot::Matrix(plot) => matrix::matrix(title, &alt, plot),
        Plot::Panels(plots) => panels::panels(title, &alt, plots),
    }
}

#[cfg(test)]
mod tests;
