//! Writes a whole report: computes it once, renders every format, puts the files in place.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;

use crate::model::Report;
use crate::record::RunRecord;
use crate::render::{Contents, FORMATS, OutFile};
use crate::reproduction::PublishedError;
use crate::settings::Settings;
use crate::store::write_atomically;

/// What the caller knows and the records do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportMeta {
    /// Heading.
    pub title: String,
    /// The command that made the results.
    pub command: String,
    /// Cells or workloads that have no record, with the reason.
    pub skipped: Vec<String>,
}

/// Where the report is, and what it says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportSummary {
    /// The page.
    pub html: PathBuf,
    /// The same for a terminal or a repository.
    pub markdown: PathBuf,
    /// The folder of tables.
    pub tables: PathBuf,
    /// All evaluations of all cells.
    pub data: PathBuf,
    /// The most important sentences, at most three.
    pub sentences: Vec<String>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be written.
    #[error("cannot write {}: {source}; choose another folder or make room", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Polars could not build or write a table.
    #[error("the tables of the report cannot be made: {0}")]
    Frame(#[from] PolarsError),
    /// A record with a metric that this program does not know.
    #[error(
        "cell {key} has the headline metric `{headline}`, expected `exact-match` or `perplexity`; \
         correct the task's `headline` and run the cell again"
    )]
    UnknownHeadline {
        /// The cell.
        key: String,
        /// Its metric.
        headline: String,
    },
    /// A setting that cannot work.
    #[error("the report's setting `{field}` is {value}, expected {expected}; correct it")]
    Setting {
        /// Its name.
        field: &'static str,
        /// What was given.
        value: f64,
        /// What would do.
        expected: &'static str,
    },
    /// Published numbers that cannot be read.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// A figure that has no JSON form.
    #[error(
        "the figure `{figure}` cannot be put on the page: {source}; this is a fault of the program"
    )]
    Figure {
        /// Its title.
        figure: String,
        /// What serde said.
        source: serde_json::Error,
    },
    /// A figure that has no pixels.
    #[error("the figure `{figure}` cannot be made a PNG file: {reason}")]
    Picture {
        /// Its title.
        figure: String,
        /// What stands in the way.
        reason: String,
    },
}

/// [`write_report_with`] the default settings.
///
/// # Errors
/// As [`write_report_with`].
pub fn write_report<'a>(
    records: impl Into<Cow<'a, [RunRecord]>>,
    out_dir: &Path,
    meta: &ReportMeta,
) -> Result<ReportSummary, ReportError> {
    write_report_with(records, out_dir, meta, &Settings::default())
}

/// Writes `index.html`, `report.md`, `tables/*.csv`, `tables/*.tex`, `data.parquet`, `figures/*.svg` and
/// `figures/*.png` to `out_dir`, which is made if it does not exist. Records that are handed over and not
/// lent are not copied.
///
/// The files depend on `records`, `meta` and `settings` alone: the same input gives the same bytes, in
/// whatever order the records come. Each file is replaced as a whole. A record that was never read from a
/// file may hold more digits than its file would: see [`RunRecord::as_written`].
///
/// # Errors
/// [`ReportError`]; nothing is written unless all formats could be rendered.
pub fn write_report_with<'a>(
    records: impl Into<Cow<'a, [RunRecord]>>,
    out_dir: &Path,
    meta: &ReportMeta,
    settings: &Settings,
) -> Result<ReportSummary, ReportError> {
    let report = Report::with(records, meta, settings)?;
    for OutFile { path, bytes } in render_all(&report)? {
        let path = out_dir.join(path);
        let folder = path.parent().unwrap_or(out_dir);
        std::fs::create_dir_all(folder)
            .and_then(|()| write_atomically(&path, &bytes))
            .map_err(|source| ReportError::Io { path: path.clone(), source })?;
    }
    Ok(ReportSummary {
        html: out_dir.join("index.html"),
        markdown: out_dir.join("report.md"),
        tables: out_dir.join("tables"),
        data: out_dir.join("data.parquet"),
        sentences: report.sentences,
    })
}

fn render_all(report: &Report) -> Result<Vec<OutFile>, ReportError> {
    let contents = Contents::of(report)?;
    let mut files = Vec::new();
    for format in FORMATS {
        files.extend(format.render(&contents)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
