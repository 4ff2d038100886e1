//! The formats: a new one is a file here and a line in [`FORMATS`].

mod chart;
mod csv;
mod figures;
mod html;
mod markdown;
mod parquet;
mod scale;
mod svg;

use crate::model::Report;
use crate::report::ReportError;

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

/// A way to show a report.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Renders the report to files; depends on nothing but the report.
    pub render: fn(&Report) -> Result<Vec<OutFile>, ReportError>,
}

/// Every format that [`crate::write_report`] writes.
pub const FORMATS: &[Format] = &[
    Format { name: "html", render: html::render },
    Format { name: "markdown", render: markdown::render },
    Format { name: "csv", render: csv::render },
    Format { name: "parquet", render: parquet::render },
    Format { name: "svg", render: svg::render },
];
