//! Colours, markers and dashes of figures and pages, in one place.
//!
//! Colours after Okabe and Ito 2008 ("Color Universal Design"), which colour-blind readers can tell apart, made
//! lighter for dark screens. Markers and dashes tell encodings apart in grey print.

use std::fmt::{Display, Write as _};

use analysis::NEUTRAL;
use records::number::joined;

/// Number of colours.
const COLOURS: usize = 8;

/// Markers as SVG paths around the origin: circle, square, diamond, triangles up and down, cross, x, star, hexagon.
const MARKERS: [&str; 9] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-5 5 0 0 5-5 0z",
    "M0-4.5 4.5 3.5-4.5 3.5z",
    "M0 4.5 4.5-3.5-4.5-3.5z",
    "M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "M-4.6-2.2-2.2-4.6 0-2.4 2.2-4.6 4.6-2.2 2.4 0 4.6 2.2 2.2 4.6 0 2.4-2.2 4.6-4.6 2.2-2.4 0z",
    "M0-5.6 1.3-1.8 5.3-1.7 2.1.7 3.3 4.5 0 2.2-3.3 4.5-2.1.7-5.3-1.7-1.3-1.8z",
    "M0-4.8 4.2-2.4v4.8L0 4.8-4.2 2.4v-4.8z",
];

/// Number of dashes: solid, dashed, dotted.
const DASHES: usize = 3;

/// Indices of the colour and the dash of a look, and its marker.
pub(crate) struct MarkStyle {
    colour: usize,
    dash: usize,
    marker: &'static str,
}

impl MarkStyle {
    pub(crate) fn of(look: usize) -> Self {
        Self {
            colour: look % COLOURS,
            dash: look / MARKERS.len() % DASHES,
            marker: MARKERS[if look == NEUTRAL { 0 } else { look % MARKERS.len() }],
        }
    }

    /// Returns the classes for the rules of [`of_files`] and [`of_pages`].
    pub(crate) fn classes(&self) -> String {
        format!("c{} d{}", self.colour, self.dash)
    }

    /// Returns the marker as an SVG path.
    pub(crate) fn path(&self) -> &'static str {
        self.marker
    }
}

/// Names of the CSS variables of a page with the colours of its theme: background, ink, soft ink, grid, marks.
const NAMES: [&str; 4 + COLOURS] =
    ["bg", "ink", "soft", "grid", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
/// Colours of a theme, in the order of [`NAMES`].
type Palette = [&'static str; NAMES.len()];

const LIGHT: Palette = [
    "#ffffff", "#1b1f24", "#57606a", "#e4e7eb", "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#3fa0dc", "#9c8600", "#4d4d4d",
];
const DARK: Palette = [
    "#14171b", "#e8eaed", "#a3abb5", "#2d333b", "#5aa9f0", "#ff7f3f", "#2fc79b", "#e79bc6",
    "#f5b83d", "#8fd0ff", "#e3d34a", "#c9ccd1",
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
    let [background, ink, soft, grid, marks @ ..] = palette;
    let mut out = format!(
        ".chart text{{fill:{soft}}}\n.chart .title,.chart .s text,.chart .map text{{fill:{ink}}}\n\
         .chart .bg{{fill:{background}}}\n.chart .grid,.chart .frame{{stroke:{grid}}}\n\
         .chart .rule{{stroke:{soft}}}\n.chart .m{{stroke:{background}}}\n"
    );
    for (look, mark) in marks.iter().enumerate() {
        let _ = writeln!(
            out,
            ".chart .c{look} .line,.chart .c{look} .bar,.chart .c{look} .lead{{stroke:{mark}}}\n\
             .chart .c{look} .m{{fill:{mark}}}"
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
        "{}\n@media screen and (prefers-color-scheme:dark){{{}}}\n{SHAPES}{}",
        variables(&LIGHT),
        variables(&DARK),
        rules(&NAMES.map(|name| format!("var(--{name})")))
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use analysis::{FIXED_LOOKS, LOOK_COUNT};

    fn looks(looks: impl Iterator<Item = usize>) -> Vec<(usize, usize, &'static str)> {
        looks.map(MarkStyle::of).map(|look| (look.colour, look.dash, look.path())).collect()
    }

    #[test]
    fn no_two_looks_are_alike() {
        let all = looks((0..LOOK_COUNT).filter(|look| *look != NEUTRAL));
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), LOOK_COUNT - 1);
    }

    #[test]
    fn built_in_encodings_are_told_apart_without_colour() {
        let distinct = MARKERS.len() * DASHES;
        let fixed = (0..FIXED_LOOKS.len().min(distinct)).filter(|look| *look != NEUTRAL);
        let grey: BTreeSet<_> = looks(fixed.clone()).into_iter().map(|(_, d, m)| (d, m)).collect();
        assert_eq!(grey.len(), fixed.count());
    }
}
