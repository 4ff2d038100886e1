//! A table of shares in colours, with their values.

use super::draw::{TOP, WIDTH, fitted, open, put, short, widest};
use super::heat::colour;
use super::style::MarkStyle;
use crate::document::plot::{MatrixCell, MatrixRow, ShareMatrix};

const ROW: f64 = 16.0;
/// Sine and cosine of the angle of the names of columns, 75 degrees.
const RISE: f64 = 0.97;
const RUN: f64 = 0.26;
/// Share from which text on a cell is dark.
const LIGHT: f64 = 0.5;

/// Draws the table, names of columns above it.
pub(super) fn matrix(title: &str, alt: &str, chart: &ShareMatrix) -> String {
    let left = widest(chart.rows.iter().map(|row| row.label.as_str())).clamp(30.0, 170.0) + 22.0;
    let names = widest(chart.columns.iter().map(String::as_str)).clamp(30.0, 140.0);
    // The name of the last column ends right of it.
    let right = WIDTH - RUN * names - 4.0;
    let width = (right - left) / chart.columns.len().max(1) as f64;
    let top = TOP + RISE * names;
    let mut out = open(title, alt, top + ROW * chart.rows.len() as f64 + 10.0);
    for (index, name) in chart.columns.iter().enumerate() {
        let x = left + (index as f64 + 0.6) * width;
        let (x, y) = (short(x), short(top - 4.0));
        let name = fitted(0.0, 0.0, "start", name, names);
        put!(out, "<g transform=\"translate({x} {y})rotate(-75)\">{name}</g>");
    }
    for (index, row) in chart.rows.iter().enumerate() {
        put!(out, "{}", line(row, left, top + index as f64 * ROW, width));
    }
    out.push_str("</svg>");
    out
}

/// Draws a row whose cells begin at `left` and `top`.
fn line(row: &MatrixRow, left: f64, top: f64, width: f64) -> String {
    let mut out = match row.look {
        Some(look) => {
            format!("<g class=\"s {}\">", MarkStyle::of(look).classes())
        }
        None => "<g>".to_owned(),
    };
    let middle = top + ROW / 2.0 + 4.0;
    put!(out, "{}", fitted(left - 6.0, middle, "end", &row.label, left - 12.0));
    for (index, cell) in row.cells.iter().enumerate() {
        let Some(MatrixCell { share, is_hatched }) = cell.filter(|cell| cell.share.is_finite())
        else {
            continue;
        };
        let x = left + index as f64 * width;
        put!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
            short(x),
            short(top),
            short(width - 1.0),
            short(ROW - 1.0),
            colour(share)
        );
        let ink = if share < LIGHT { "pale" } else { "dark" };
        if is_hatched {
            let (bottom, third) = (top + ROW - 1.0, (width - 1.0) / 3.0);
            let strokes = [0.0, 1.0, 2.0].map(|at| {
                format!("M{:.1} {bottom:.1}l{third:.1} {:.1}", x + at * third, 1.0 - ROW)
            });
            put!(out, "<path class=\"hatch {ink}\" d=\"{}\"/>", strokes.concat());
        }
        put!(
            out,
            "<text class=\"{ink}\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{:.0}</text>",
            short(x + (width - 1.0) / 2.0),
            short(middle),
            100.0 * share
        );
    }
    put!(out, "</g>");
    out
}
