//! Colours, markers and dashes of figures and pages, in one place.
//!
//! Encodings of a family share a colour. Colours after Okabe and Ito 2008 ("Color Universal Design"), which colour-blind readers
//! can tell apart, made lighter for dark screens. Markers and dashes tell encodings apart in grey print.

use std::fmt::{Display, Write as _};

use analysis::COLOURS;
use records::number::joined;

/// Markers as SVG paths around the origin: circle, square, diamond, triangles up and down, cross, x, star, hexagon. Only the
/// first step may be from the origin, so that style sheets can move them.
const MARKERS: [&str; analysis::MARKERS] = [
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-3.5-3.5h7v7h-7z",
    "m0-5 5 5-5 5-5-5z",
    "m0-4.5 4.5 8h-9z",
    "m0 4.5 4.5-8h-9z",
    "m-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "m-4.6-2.2 2.4-2.4 2.2 2.2 2.2-2.2 2.4 2.4-2.2 2.2 2.2 2.2-2.4 2.4-2.2-2.2-2.2 2.2-2.4-2.4 2.2-2.2z",
    "m0-5.6 1.3 3.8 4 .1-3.2 2.4 1.2 3.8-3.3-2.3-3.3 2.3 1.2-3.8-3.2-2.4 4-.1z",
    "m0-4.8 4.2 2.4v4.8l-4.2 2.4-4.2-2.4v-4.8z",
];

/// Colour, dash (solid, dashed, dotted) and marker of a look, as indices.
pub(crate) struct MarkStyle {
    pub(crate) colour: usize,
    pub(crate) dash: usize,
    pub(crate) marker: usize,
}

impl MarkStyle {
    pub(crate) fn of(look: usize) -> Self {
        Self {
            colour: analysis::colour(look),
            dash: analysis::dash(look),
            marker: analysis::marker(look),
        }
    }

    /// Returns the classes for the rules of [`of_files`] and [`of_pages`].
    pub(crate) fn classes(&self) -> String {
        let dash = if self.dash == 0 { String::new() } else { format!(" d{}", self.dash) };
        format!("c{}{dash}", self.colour)
    }
}

/// Returns the markers as elements that charts refer to.
pub(super) fn marker_elements() -> String {
    let marker = |(index, path): (usize, &&str)| format!("<path id=\"_{index}\" d=\"{path}\"/>");
    format!("<defs>{}</defs>", MARKERS.iter().enumerate().map(marker).collect::<String>())
}

/// Returns the rules of markers beside names: the same shapes around the middle of a box of 12 pixels.
fn marker_rules() -> String {
    let rule =
        |(index, path): (usize, &&str)| format!(".m{index}{{clip-path:path(\"M6 6{path}\")}}\n");
    MARKERS.iter().enumerate().map(rule).collect()
}

/// Returns the markers for all charts of a page.
pub(crate) fn marks() -> String {
    format!("<svg class=\"marks\" aria-hidden=\"true\">{}</svg>\n", marker_elements())
}

/// Names of the CSS variables of a page with the colours of its theme: background, ink, soft ink, grid, lines in the
/// background, the best value of a table of colours, marks.
const NAMES: [&str; 6 + COLOURS] =
    ["bg", "ink", "soft", "grid", "quiet", "hot", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
/// Colours of a theme, in the order of [`NAMES`].
type Palette = [&'static str; NAMES.len()];

const LIGHT: Palette = [
    "#ffffff", "#1b1f24", "#57606a", "#e4e7eb", "#8f959c", "#8fc7f0", "#0072b2", "#d55e00",
    "#00895f", "#b8559a", "#9a7d00", "#6a3fc0", "#7a4b1e", "#4d4d4d",
];
const DARK: Palette = [
    "#14171b", "#e8eaed", "#a3abb5", "#2d333b", "#6b737d", "#14598f", "#5aa9f0", "#ff7f3f",
    "#2fc79b", "#f08cc0", "#f2cc3d", "#b39dff", "#c9a27e", "#c9ccd1",
];

const SHAPES: &str = include_str!("figure.css");

/// Returns the style sheet of an SVG file. It has no CSS variables, because programs that convert SVG to PDF do not
/// support them.
pub(super) fn of_files() -> String {
    let mut out = SHAPES.to_owned();
    out.push_str(&rules(&LIGHT));
    let _ = writeln!(out, "@media (prefers-color-scheme:dark){{\n{}}}", rules(&DARK));
    out
}

fn rules<S: Display>(palette: &[S; NAMES.len()]) -> String {
    let [background, ink, soft, grid, quiet, _, marks @ ..] = palette;
    let mut out = format!(
        ".chart text{{fill:{soft}}}\n.chart>text{{paint-order:stroke;stroke:{background};stroke-width:3px}}\n.chart .title,.chart .s text,.chart .map text{{fill:{ink}}}\n\
         .chart .bg{{fill:{background}}}\n.chart .grid,.chart .frame{{stroke:{grid}}}\n\
         .chart .rule{{stroke:{soft}}}\n.chart use{{stroke:{background}}}\n.chart .o .line{{stroke:{quiet}}}\n\
         .chart .o:hover .line{{stroke:{ink}}}\n"
    );
    for (look, mark) in marks.iter().enumerate() {
        let _ = writeln!(
            out,
            ".chart .c{look} :is(.line,.bar,.lead){{stroke:{mark}}}\n.chart .c{look} use{{fill:{mark}}}"
        );
    }
    out
}

/// Returns the colours as CSS variables of a page, `--bg`, `--ink`, `--soft`, `--grid`, `--c0` to `--c7`, and the
/// rules of its figures. Printed pages are light.
pub(crate) fn of_pages() -> String {
    let variables = |palette: &Palette| {
        let settings = NAMES.iter().zip(palette).map(|(name, colour)| format!("--{name}:{colour}"));
        format!(":root{{{}}}", joined(settings, ";"))
    };
    format!(
        "{}\n@media screen and (prefers-color-scheme:dark){{{}}}\n{}{SHAPES}{}",
        variables(&LIGHT),
        variables(&DARK),
        marker_rules(),
        rules(&NAMES.map(|name| format!("var(--{name})")))
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use analysis::{LOOK_COUNT, NEUTRAL, PAIR_COUNT};

    fn looks(looks: impl Iterator<Item = usize>) -> Vec<(usize, usize, usize)> {
        looks.map(MarkStyle::of).map(|look| (look.colour, look.dash, look.marker)).collect()
    }

    /// Contrast of two colours after WCAG 2.
    fn contrast(a: &str, b: &str) -> f64 {
        let light = |colour: &str| {
            let part = |from: usize| {
                let byte = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
                let share = f64::from(byte) / 255.0;
                if share <= 0.03928 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (a, b) = (light(a), light(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_mark_and_line_stands_out_from_its_background() {
        for [background, _, _, _, quiet, _, marks @ ..] in [LIGHT, DARK] {
            for mark in marks.iter().chain([&quiet]) {
                let ratio = contrast(mark, background);
                assert!(ratio >= 3.0, "{mark} on {background}: {ratio:.2}");
            }
        }
    }

    #[test]
    fn families_have_colours_that_differ() {
        let bytes = |colour: &str| {
            [1, 3, 5]
                .map(|from| f64::from(u8::from_str_radix(&colour[from..from + 2], 16).unwrap()))
        };
        for [_, _, _, _, _, _, marks @ ..] in [LIGHT, DARK] {
            for (at, one) in marks.iter().enumerate() {
                for other in &marks[..at] {
                    let (a, b) = (bytes(one), bytes(other));
                    let distance =
                        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(distance > 60.0, "{one} and {other}: {distance:.0}");
                }
            }
        }
    }

    #[test]
    fn looks_differ_in_colour_or_marker() {
        let pairs = (0..COLOURS * MARKERS.len()).map(MarkStyle::of);
        let pairs: BTreeSet<_> = pairs.map(|look| (look.colour, look.marker)).collect();
        // The neutral look has the marker of another one.
        assert!(
            pairs.len() >= COLOURS * MARKERS.len() - 1 && PAIR_COUNT == COLOURS * MARKERS.len()
        );
    }

    #[test]
    fn no_two_looks_are_alike() {
        let all = looks((0..LOOK_COUNT).filter(|look| *look != NEUTRAL));
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), LOOK_COUNT - 1);
    }
}
