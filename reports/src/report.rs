//! Writing of reports: analyses the records once, renders every format, writes the files.

use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::document::{Table, figures, tables};
use crate::formats::{Contents, FORMATS, FormatError, OutFile, headline, svg};
use analysis::frame::Frames;
use analysis::{AnalysisError, Report, ReportMeta};
use records::RunRecord;
use records::settings::Settings;
use records::store::write_unsynced;

/// A written report: its first page and its main table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportSummary {
    /// Path of the page, `index.html`.
    pub html: PathBuf,
    /// Table with a row for each encoding.
    pub table: Table,
}

/// Error of writing a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The records cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A format cannot be rendered.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A file cannot be written.
    #[error("cannot write {}: {source}; choose another folder or make room", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
}

/// Writes `index.html`, `pages/`, `report.md`, `report.tex`, `tables/*.csv`, `tables/*.tex`, `data.parquet` and
/// `figures/*.svg` to `out_dir`, which is made if it does not exist.
///
/// The files depend on `records`, `meta` and `settings` alone: the same input gives the same bytes, in
/// whatever order the records come. Each file is replaced as a whole. A record that was never read from a
/// file may hold more digits than its file would: see [`RunRecord::as_written`].
///
/// # Errors
/// [`ReportError`]; nothing is written unless all formats could be rendered.
pub fn write_report(
    records: impl AsRef<[RunRecord]>,
    out_dir: &Path,
    meta: &ReportMeta,
    settings: &Settings,
) -> Result<ReportSummary, ReportError> {
    let frames = Frames::of(records.as_ref()).map_err(AnalysisError::from)?;
    let Rendered { table, files, .. } = render_report(frames, meta, settings, &[])?;
    write_files(&files, out_dir)?;
    Ok(ReportSummary { html: out_dir.join("index.html"), table })
}

/// A rendered report that is not written to disk yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// Table with a row for each encoding: scores, and over several workloads their aggregate.
    pub table: Table,
    /// Figures, abstract and table for a README as Markdown, with paths relative to the report; empty for a report
    /// without an aggregate over workloads.
    pub headline: String,
    /// Files of all requested formats.
    pub files: Vec<OutFile>,
}

/// Renders a report of frames in the formats with these names ([`FORMATS`]); without names, in all
/// formats.
///
/// # Errors
/// [`ReportError`]; a name that no format has is [`FormatError::Unknown`].
pub fn render_report(
    frames: Frames,
    meta: &ReportMeta,
    settings: &Settings,
    formats: &[String],
) -> Result<Rendered, ReportError> {
    let known = || FORMATS.iter().map(|(name, _)| *name);
    if let Some(name) = formats.iter().find(|name| !known().any(|one| one == name.as_str())) {
        let (name, known) = (name.clone(), known().collect::<Vec<_>>().join(", "));
        return Err(FormatError::Unknown { name, known }.into());
    }
    let report = Report::with(frames, meta, settings)?;
    let contents = Contents::of(&report, formats)?;
    let wanted = FORMATS.par_iter().filter(|(name, _)| contents.has(name));
    // All results are collected before the first error is returned, so that it is always the same one.
    let rendered: Vec<_> = wanted.map(|(_, render)| render(&contents)).collect();
    let mut files = Vec::new();
    for found in rendered {
        files.extend(found?);
    }
    let table = Some(tables::headline(&report)).filter(|table| !table.rows.is_empty());
    let table = table.unwrap_or_else(|| tables::summary(&report));
    Ok(Rendered { table, headline: headline(&contents), files })
}

/// Draws the aggregate of the best encodings of a report, and that of RoPE, as an SVG file; `None` without an aggregate over
/// workloads.
pub fn leaders_svg(report: &Report, most: usize) -> Option<String> {
    figures::overall::leaders(report, most).as_ref().map(svg)
}

/// Writes files into a folder, which is created if it does not exist; each file is replaced as a whole. A file that has
/// these bytes already is not touched.
///
/// # Errors
/// [`ReportError::Io`] of the first file that cannot be written.
pub fn write_files(files: &[OutFile], out_dir: &Path) -> Result<(), ReportError> {
    let written: Vec<_> = files
        .par_iter()
        .map(|OutFile { path, bytes }| {
            let path = out_dir.join(path);
            let folder = path.parent().unwrap_or(out_dir);
            // Replacing a file costs more than reading it, and whatever copies a report sees what changed.
            if std::fs::read(&path).is_ok_and(|old| old == *bytes) {
                return Ok(());
            }
            std::fs::create_dir_all(folder)
                .and_then(|()| write_unsynced(&path, bytes))
                .map_err(|source| ReportError::Io { path: path.clone(), source })
        })
        .collect();
    written.into_iter().collect()
}

#[cfg(test)]
mod tests;
