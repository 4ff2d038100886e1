//! `figures/*.svg`: every figure of the page as a file of its own.

use crate::model::Report;
use crate::render::{OutFile, chart, figures};
use crate::report::ReportError;

#[expect(clippy::unnecessary_wraps, reason = "the signature of a format")]
pub(super) fn render(report: &Report) -> Result<Vec<OutFile>, ReportError> {
    Ok(figures::figures(report)
        .into_iter()
        .map(|figure| OutFile::text(figure.path(), chart::standalone(&figure.svg)))
        .collect())
}
