//! The formats: a new one is a file here that implements [`Format`], and a line in [`FORMATS`].

mod chart;
mod csv;
mod html;
mod markdown;
mod parquet;
mod png;
mod svg;
mod tex;

pub(crate) use chart::chart_of;
pub(crate) use chart::style::{COLOURS, of_pages};

use crate::figure::{Figure, figures};
use crate::model::Report;
use crate::report::ReportError;
use crate::reproduction::{Reproduction, reproduction};

/// A file of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutFile {
    /// Relative to the report's folder, `/` between folders.
    pub path: String,
    /// Content.
    pub bytes: Vec<u8>,
}

impl OutFile {
    pub(crate) fn text(path: impl Into<String>, text: String) -> Self {
        Self { path: path.into(), bytes: text.into_bytes() }
    }
}

/// What every format shows.
#[derive(Debug)]
pub struct Contents<'a> {
    /// Numbers and words.
    pub report: &'a Report,
    pub(crate) figures: Vec<Figure>,
    /// Published numbers beside those of the records.
    pub(crate) reproduction: Reproduction,
}

impl<'a> Contents<'a> {
    /// The report with its figures and what is published.
    ///
    /// # Errors
    /// [`ReportError::Published`] when the published numbers cannot be read.
    pub fn of(report: &'a Report) -> Result<Self, ReportError> {
        let (reproduction, figures) =
            rayon::join(|| reproduction(&report.cells), || figures(report));
        Ok(Self { report, figures, reproduction: reproduction? })
    }
}

/// A way to show a report.
pub trait Format: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Renders the report to files; depends on nothing but its contents.
    ///
    /// # Errors
    /// [`ReportError`], when the format cannot hold what the report says.
    fn render(&self, contents: &Contents<'_>) -> Result<Vec<OutFile>, ReportError>;
}

/// Every format that [`crate::write_report`] writes.
pub const FORMATS: &[&dyn Format] = &[
    &html::Html,
    &markdown::Markdown,
    &csv::Csv,
    &tex::Tex,
    &parquet::Parquet,
    &svg::Svg,
    &png::Png,
];

#[cfg(test)]
mod hostile;
