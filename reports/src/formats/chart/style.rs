//! Colours of figures and pages, in one place.
//!
//! Marks after Okabe and Ito 2008 ("Color Universal Design"), which colour-blind readers can tell
//! apart, made lighter for dark screens; beyond eight, dashes and shapes tell.

use std::fmt::Write as _;

/// Number of colours; beyond it they repeat with another dash.
pub(crate) const COLOURS: usize = 8;

struct Palette {
    background: &'static str,
    ink: &'static str,
    soft: &'static str,
    grid: &'static str,
    marks: [&'static str; COLOURS],
}

const LIGHT: Palette = Palette {
    background: "#ffffff",
    ink: "#1b1f24",
    soft: "#57606a",
    grid: "#e4e7eb",
    marks: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#3fa0dc", "#9c8600", "#4d4d4d"],
};

const DARK: Palette = Palette {
    background: "#14171b",
    ink: "#e8eaed",
    soft: "#a3abb5",
    grid: "#2d333b",
    marks: ["#5aa9f0", "#ff7f3f", "#2fc79b", "#e79bc6", "#f5b83d", "#8fd0ff", "#e3d34a", "#c9ccd1"],
};

const SHAPES: &str = include_str!("figure.css");

/// The style sheet of an SVG file. No variables: programs that turn SVG into PDF do not know them.
pub(super) fn of_files() -> String {
    let mut out = SHAPES.to_owned();
    out.push_str(&rules(&LIGHT));
    let _ = writeln!(out, "@media (prefers-color-scheme:dark){{\n{}}}", rules(&DARK));
    out
}

fn rules(palette: &Palette) -> String {
    let Palette { background, ink, soft, grid, marks } = palette;
    let mut out = format!(
        ".chart text{{fill:{soft}}}\n.chart .title,.chart .s text,.chart .map text{{fill:{ink}}}\n\
         .chart .bg{{fill:{background}}}\n.chart .grid,.chart .frame{{stroke:{grid}}}\n\
         .chart .rule{{stroke:{soft}}}\n.chart .m{{stroke:{background}}}\n"
    );
    for (slot, mark) in marks.iter().enumerate() {
        let _ = writeln!(
            out,
            ".chart .c{slot} .line,.chart .c{slot} .bar,.chart .c{slot} .lead{{stroke:{mark}}}\n\
             .chart .c{slot} .m{{fill:{mark}}}"
        );
    }
    out
}

/// Colours as CSS variables of a page: `--bg`, `--ink`, `--soft`, `--grid`, `--c0` to `--c7`.
pub(crate) fn of_pages() -> String {
    let variables = |palette: &Palette| {
        let mut out = format!(
            ":root{{--bg:{};--ink:{};--soft:{};--grid:{}",
            palette.background, palette.ink, palette.soft, palette.grid
        );
        for (slot, mark) in palette.marks.iter().enumerate() {
            let _ = write!(out, ";--c{slot}:{mark}");
        }
        out.push('}');
        out
    };
    format!("{}\n@media (prefers-color-scheme:dark){{{}}}\n", variables(&LIGHT), variables(&DARK))
}
