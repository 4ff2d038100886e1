//! Input and output of formats: the contents of a report, and files.

use polars::prelude::PolarsError;

use crate::analysis::Report;
use crate::document::figures::{Figure, Subject, figures};
use crate::document::text;
use crate::reproduction::{PublishedError, Reproduction, reproduction};

/// Error of rendering a report.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Polars failed to build or write a table.
    #[error("the tables of the report cannot be made: {0}")]
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

/// Input of a format: the report with its texts and the published numbers.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The analysis of the records.
    pub report: &'a Report,
    /// The most important results, at most three sentences.
    pub(crate) overview: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) figures: Vec<Figure>,
    /// Published numbers compared with those of the records.
    pub(crate) reproduction: Reproduction,
    /// Names of the formats that are rendered; empty: all. Files of others are not referred to.
    pub(crate) formats: &'a [String],
}

impl<'a> Contents<'a> {
    /// Gathers the report with its sentences, its figures and the published numbers, for all formats.
    ///
    /// # Errors
    /// [`FormatError::Published`] when records cannot be compared with published numbers.
    pub fn of(report: &'a Report) -> Result<Self, FormatError> {
        let (reproduction, figures) =
            rayon::join(|| reproduction(&report.frames), || figures(report));
        Ok(Self {
            report,
            overview: text::overview(report),
            warnings: text::warnings(report),
            figures,
            reproduction: reproduction?,
            formats: &[],
        })
    }

    /// Reports whether the files of a format are rendered.
    pub(crate) fn has(&self, format: &str) -> bool {
        self.formats.is_empty() || self.formats.iter().any(|name| name == format)
    }

    /// Returns the path of the file of a figure; `None` if SVG files are not written.
    pub(crate) fn drawing(&self, figure: &Figure) -> Option<String> {
        self.has("svg").then(|| figure.path())
    }

    /// Returns the figure of the first screen: all tasks together, or the headline metric of the first workload.
    pub(crate) fn front(&self) -> Option<&Figure> {
        let of = |subject| self.figures.iter().find(|figure| figure.subject == subject);
        of(Subject::Overall).or_else(|| of(Subject::Headline))
    }
}

/// Function that renders a report to files; the result depends only on its contents.
///
/// # Errors
/// [`FormatError`] if the report cannot be represented in the format.
pub type Render = fn(&Contents<'_>) -> Result<Vec<OutFile>, FormatError>;
