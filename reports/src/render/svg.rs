//! `figures/*.svg`: every figure as a file, for papers.

use super::{Contents, Format, OutFile, chart};
use crate::report::ReportError;

pub(super) struct Svg;

impl Format for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }

    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, ReportError> {
        let files = contents.figures.iter();
        Ok(files.map(|figure| OutFile::text(figure.path("svg"), chart::svg(figure))).collect())
    }
}
