//! Writes a whole report: computes it once, renders every format, puts the files in place.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;
use rayon::prelude::*;

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
    /// A format that there is not.
    #[error("there is no report format `{name}`; choose among {known}")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
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
    let Rendered { sentences, files } = render_report(records, meta, settings, &[])?;
    write_files(&files, out_dir)?;
    Ok(ReportSummary {
        html: out_dir.join("index.html"),
        markdown: out_dir.join("report.md"),
        tables: out_dir.join("tables"),
        data: out_dir.join("data.parquet"),
        sentences,
    })
}

/// A report that is not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The most important sentences, at most three.
    pub sentences: Vec<String>,
    /// Its files.
    pub files: Vec<OutFile>,
}

/// The files of the formats with these names ([`crate::render::Format::name`]); without names, of all formats.
///
/// # Errors
/// [`ReportError`]; a name that no format has is [`ReportError::UnknownFormat`].
pub fn render_report<'a>(
    records: impl Into<Cow<'a, [RunRecord]>>,
    meta: &ReportMeta,
    settings: &Settings,
    formats: &[String],
) -> Result<Rendered, ReportError> {
    let known = || FORMATS.iter().map(|format| format.name());
    if let Some(name) = formats.iter().find(|name| !known().any(|one| one == name.as_str())) {
        let (name, known) = (name.clone(), known().collect::<Vec<_>>().join(", "));
        return Err(ReportError::UnknownFormat { name, known });
    }
    let report = Report::with(records, meta, settings)?;
    let contents = Contents::of(&report)?;
    let wanted = |name: &str| formats.is_empty() || formats.iter().any(|one| one == name);
    let formats = FORMATS.par_iter().filter(|format| wanted(format.name()));
    // Gathered before the first error is looked for, so that it is always the same one.
    let rendered: Vec<_> = formats.map(|format| format.render(&contents)).collect();
    let mut files = Vec::new();
    for found in rendered {
        files.extend(found?);
    }
    let Report { sentences, cells, .. } = report;
    // One thread takes more than a second to free a hundred thousand records.
    cells.into_par_iter().for_each(drop);
    Ok(Rendered { sentences, files })
}

/// Writes files into a folder, which is made if it does not exist, each as a whole.
///
/// # Errors
/// [`ReportError::Io`] of the first file that cannot be written.
pub fn write_files(files: &[OutFile], out_dir: &Path) -> Result<(), ReportError> {
    // Side by side: most of the time is waiting for the disk.
    let written: Vec<_> = files
        .par_iter()
        .map(|OutFile { path, bytes }| {
            let path = out_dir.join(path);
            let folder = path.parent().unwrap_or(out_dir);
            std::fs::create_dir_all(folder)
                .and_then(|()| write_atomically(&path, bytes))
                .map_err(|source| ReportError::Io { path: path.clone(), source })
        })
        .collect();
    written.into_iter().collect()
}

#[cfg(test)]
mod tests;
