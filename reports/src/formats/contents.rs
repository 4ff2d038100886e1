//! Input and output of formats: the contents of a report, and files.

use polars::prelude::PolarsError;

use crate::document::{self, Document};
use crate::reproduction;
use analysis::Report;
use analysis::reproduction::{PublishedError, reproduction as compare_with_papers};

/// Error of rendering a report.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Polars failed to build or write a table.
    #[error("the tables of the report cannot be built: {0}")]
    Frame(#[from] PolarsError),
    /// No format has this name.
    #[error("there is no report format `{name}`; choose among {known}")]
    Unknown {
        /// Name that was asked for.
        name: String,
        /// Names of all formats.
        known: String,
    },
    /// Records could not be compared with published numbers.
    #[error(transparent)]
    Published(#[from] PublishedError),
}

/// A file of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutFile {
    /// Path relative to the folder of the report, with `/` between folders.
    pub path: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

impl OutFile {
    pub(crate) fn text(path: impl Into<String>, text: String) -> Self {
        Self { path: path.into(), bytes: text.into_bytes() }
    }
}

/// Input of a format: the report as numbers and as a document.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The analysis of the records.
    pub report: &'a Report,
    /// Text, tables and figures of the report.
    pub(crate) document: Document,
    /// Names of the formats that are rendered; empty: all. Files of others are not referred to.
    pub(crate) formats: &'a [String],
}

impl<'a> Contents<'a> {
    /// Makes the document of a report, with the published numbers.
    ///
    /// # Errors
    /// [`FormatError::Published`] when records cannot be compared with published numbers, [`FormatError::Frame`] when polars
    /// cannot read the cells.
    pub fn of(report: &'a Report, formats: &'a [String]) -> Result<Self, FormatError> {
        let published = reproduction::section(&compare_with_papers(&report.frames)?);
        Ok(Self { report, document: document::report(report, published)?, formats })
    }

    /// Reports whether the files of a format are rendered.
    pub(crate) fn has(&self, format: &str) -> bool {
        self.formats.is_empty() || self.formats.iter().any(|name| name == format)
    }
}

/// Function that renders a report to files; the result depends only on its contents.
///
/// # Errors
/// [`FormatError`] if the report cannot be represented in the format.
pub type Render = fn(&Contents<'_>) -> Result<Vec<OutFile>, FormatError>;
