//! `figures/*.svg`: every figure as a file, for papers.

use rayon::prelude::*;

use super::chart;
use super::contents::{Contents, Format, FormatError, OutFile};

pub(super) struct Svg;

impl Format for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }

    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, FormatError> {
        let files = contents.figures.par_iter();
        Ok(files.map(|figure| OutFile::text(figure.path("svg"), chart::svg(figure))).collect())
    }
}
