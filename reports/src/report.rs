//! Writes a whole report: computes it once, renders every format, puts the files in place.

use std::io;
use std::path::{Path, PathBuf};

use polars::prelude::PolarsError;

use crate::model::Report;
use crate::record::RunRecord;
use crate::render::{FORMATS, OutFile};
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
    /// Aggregated evaluations.
    pub csv: PathBuf,
    /// All evaluations.
    pub parquet: PathBuf,
    /// The most important sentences, one per workload.
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
    /// A record that cannot cross JSON.
    #[error("cell {key} cannot be written as JSON: {source}")]
    Record {
        /// The cell.
        key: String,
        /// What serde said.
        source: serde_json::Error,
    },
}

/// [`write_report_with`] the default settings.
///
/// # Errors
/// As [`write_report_with`].
pub fn write_report(
    records: &[RunRecord],
    out_dir: &Path,
    meta: &ReportMeta,
) -> Result<ReportSummary, ReportError> {
    write_report_with(records, out_dir, meta, &Settings::default())
}

/// Writes `report.html`, `report.md`, `report.csv`, `ranks.csv`, `pairs.csv`, `cells.csv`,
/// `report.parquet` and `figures/*.svg` to `out_dir`, which is made if it does not exist.
///
/// The files depend on `records`, `meta` and `settings` alone: the same input gives the same bytes, in whatever
/// order the records come. Each file is replaced as a whole.
///
/// # Errors
/// [`ReportError`]; nothing is written unless all formats could be rendered.
pub fn write_report_with(
    records: &[RunRecord],
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
        html: out_dir.join("report.html"),
        markdown: out_dir.join("report.md"),
        csv: out_dir.join("report.csv"),
        parquet: out_dir.join("report.parquet"),
        sentences: report.sentences,
    })
}

fn render_all(report: &Report) -> Result<Vec<OutFile>, ReportError> {
    let mut files = Vec::new();
    for format in FORMATS {
        files.extend((format.render)(report)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Cell, suite};
    use polars::prelude::*;
    use std::collections::BTreeMap;
    use std::fs;

    fn meta() -> ReportMeta {
        ReportMeta {
            title: "quick".into(),
            command: "pe-bench run quick".into(),
            skipped: vec!["text/cope: no corpus".into()],
        }
    }

    /// Every file below `dir`, by relative path.
    fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![dir.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(dir).unwrap().to_owned();
                    found.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    #[test]
    fn the_same_records_in_any_order_give_the_same_bytes() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut records = suite();
        // Needs 17 digits: must not depend on whether the record has been on disk.
        records[0].evals[0].nll = 0.1 + 0.2;
        write_report(&records, one.path(), &meta()).unwrap();
        records.reverse();
        for record in &records {
            record.write(two.path()).unwrap();
        }
        let read = crate::read_dir(two.path()).unwrap();
        fs::remove_dir_all(two.path().join("cells")).unwrap();
        write_report(&read, two.path(), &meta()).unwrap();
        let (a, b) = (files(one.path()), files(two.path()));
        assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
        for (name, bytes) in &a {
            assert!(*bytes == b[name], "{} differs", name.display());
        }
        for name in [
            "report.html",
            "report.md",
            "report.csv",
            "ranks.csv",
            "pairs.csv",
            "cells.csv",
            "report.parquet",
        ] {
            assert!(a.contains_key(Path::new(name)), "{name}");
        }
        assert!(a.keys().any(|name| name.starts_with("figures")));
        assert!(!a.keys().any(|name| name.to_string_lossy().contains(".tmp")));
    }

    #[test]
    fn the_tables_on_disk_are_the_tables() {
        let dir = tempfile::tempdir().unwrap();
        let records = suite();
        let summary = write_report(&records, dir.path(), &meta()).unwrap();
        let report = Report::new(&records, &meta()).unwrap();
        let parquet =
            ParquetReader::new(fs::File::open(&summary.parquet).unwrap()).finish().unwrap();
        assert!(parquet.equals_missing(&report.evals));
        let csv = CsvReader::new(fs::File::open(&summary.csv).unwrap()).finish().unwrap();
        assert_eq!(csv.shape(), report.aggregate.shape());
        let mean = csv.column("exact_match_mean").unwrap().f64().unwrap().sum();
        let expected = report.aggregate.column("exact_match_mean").unwrap().f64().unwrap().sum();
        assert_eq!(mean, expected);
        let cells = fs::read_to_string(dir.path().join("cells.csv")).unwrap();
        assert_eq!(cells.lines().count(), records.len() + 1);
        assert_eq!(summary.sentences, report.sentences);
    }

    #[test]
    fn nothing_and_one_cell_are_reports_too() {
        let dir = tempfile::tempdir().unwrap();
        let summary = write_report(&[], dir.path(), &meta()).unwrap();
        assert_eq!(summary.sentences, [crate::sentences::NOTHING]);
        let one = [Cell::new("w", "rope", 0).record()];
        let summary = write_report(&one, dir.path(), &meta()).unwrap();
        assert!(summary.sentences[0].contains("nothing to compare"));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = write_report(&suite(), &file.join("out"), &meta()).unwrap_err();
        assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
    }
}
