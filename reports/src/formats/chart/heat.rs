//! Heat maps of shares, one for each encoding, on one colour scale.

use std::collections::BTreeMap;

use super::draw::{TOP, WIDTH, fitted, open, put, short, text, widest};
use crate::document::plot::Heat;
use crate::text::html as escape;
use records::number::joined;

const ACROSS: usize = 3;
const LEFT: f64 = 44.0;
const GAP: f64 = 16.0;
const HEAD: f64 = 20.0;
const FOOT: f64 = 20.0;
const BAR: f64 = 120.0;

/// Colours of the cividis map at 0, 1/8 ... 1 (Nuñez, Anderton, Renslow 2018, PLOS ONE 13(7): e0199239). Its
/// lightness rises evenly, also for colour-blind readers and in grey print.
const COLOURS: [[f64; 3]; 9] = [
    [0.0, 34.0, 78.0],
    [33.0, 58.0, 110.0],
    [67.0, 79.0, 107.0],
    [97.0, 101.0, 111.0],
    [125.0, 124.0, 120.0],
    [155.0, 149.0, 119.0],
    [188.0, 175.0, 111.0],
    [222.0, 204.0, 92.0],
    [254.0, 232.0, 56.0],
];

/// Number of colours; more could not be told apart.
const SHADES: f64 = 100.0;

/// Returns the colour of a share as `#rrggbb`.
pub(super) fn colour(share: f64) -> String {
    let share = (share.clamp(0.0, 1.0) * SHADES).round() / SHADES;
    let step = share * (COLOURS.len() - 1) as f64;
    let from = (step.floor() as usize).min(COLOURS.len() - 2);
    let between = step - from as f64;
    let [r, g, b] = [0, 1, 2].map(|i| {
        let (low, high) = (COLOURS[from][i], COLOURS[from + 1][i]);
        (low + between * (high - low)).round() as u8
    });
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Draws the maps; rows rise upwards.
pub(super) fn heat(title: &str, alt: &str, chart: &Heat) -> String {
    let across = ACROSS.min(chart.maps.len()).max(1);
    let width = (WIDTH - LEFT - GAP * across as f64) / across as f64;
    let cell_w = width / chart.columns.len().max(1) as f64;
    let cell_h = (width / chart.rows.len().max(1) as f64).clamp(3.0, 14.0);
    let map_h = cell_h * chart.rows.len() as f64;
    let down = chart.maps.len().div_ceil(across);
    let height = TOP + down as f64 * (HEAD + map_h + FOOT) + 50.0;
    let mut out = open(title, alt, height);
    for (index, map) in chart.maps.iter().enumerate() {
        let left = LEFT + (index % across) as f64 * (width + GAP);
        let top = TOP + (index / across) as f64 * (HEAD + map_h + FOOT) + HEAD;
        put!(out, "<g class=\"map\"><title>{}</title>", escape(&map.label));
        put!(out, "{}", fitted(left, top - 6.0, "start", &map.label, width));
        put!(
            out,
            "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{map_h:.1}\"/>"
        );
        // In units of cells, one path for each colour: a fifth of the size of rectangles.
        put!(
            out,
            "<g transform=\"translate({} {})scale({cell_w:.3} {:.3})\">",
            short(left),
            short(top + map_h),
            -cell_h
        );
        put!(out, "{}</g>", cells(&map.values));
        let ends = |values: &[u64]| (values.first().copied(), values.last().copied());
        if let (Some(first), Some(last)) = ends(&chart.columns) {
            put!(out, "{}", text(left, top + map_h + 13.0, "start", &first.to_string()));
            put!(out, "{}", text(left + width, top + map_h + 13.0, "end", &last.to_string()));
        }
        if let (0, (Some(first), Some(last))) = (index % across, ends(&chart.rows)) {
            put!(out, "{}", text(left - 5.0, top + map_h, "end", &first.to_string()));
            put!(out, "{}", text(left - 5.0, top + 9.0, "end", &last.to_string()));
        }
        put!(out, "</g>");
    }
    let foot = height - 36.0;
    let names = format!("across: {}; up: {}", chart.x_label, chart.y_label);
    put!(out, "{}", fitted(8.0, height - 8.0, "start", &names, WIDTH - 16.0));
    for step in 0..24 {
        let share = f64::from(step) / 23.0;
        let x = LEFT + share * (BAR - BAR / 24.0);
        put!(
            out,
            "<rect x=\"{x:.1}\" y=\"{foot:.1}\" width=\"{:.1}\" height=\"9\" fill=\"{}\"/>",
            BAR / 24.0 + 0.3,
            colour(share)
        );
    }
    put!(out, "{}", text(LEFT - 5.0, foot + 9.0, "end", "0%"));
    put!(out, "{}", text(LEFT + BAR + 5.0, foot + 9.0, "start", "100%"));
    debug_assert!(widest(["0%"].into_iter()) < LEFT);
    out.push_str("</svg>");
    out
}

/// Returns the cells of a map, each 1 by 1, as one path for each colour: neighbours of one colour are one step. Cells
/// overlap slightly, so that no background shows between them.
fn cells(values: &[Vec<Option<f64>>]) -> String {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for (row, values) in values.iter().enumerate() {
        let colours: Vec<Option<String>> = values.iter().map(|value| value.map(colour)).collect();
        let mut column = 0;
        for run in colours.chunk_by(|a, b| a == b) {
            if let Some(colour) = &run[0] {
                let steps = paths.entry(colour.clone()).or_default();
                put!(steps, "M{column} {row}h{}.05v1.05h-{}.05z", run.len(), run.len());
            }
            column += run.len();
        }
    }
    let path = |(colour, d): (&String, &String)| format!("<path fill=\"{colour}\" d=\"{d}\"/>");
    joined(paths.iter().map(path), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_run_from_dark_blue_to_yellow() {
        assert_eq!((&*colour(0.0), &*colour(1.0)), ("#00224e", "#fee838"));
        assert_eq!(colour(0.5), "#7d7c78");
        assert_eq!(colour(7.0), colour(1.0));
    }
}
