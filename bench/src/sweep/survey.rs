//! What is there of a cell before it is run.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use reports::{RecordError, RunRecord};

use super::plan::Plan;
use super::redo::Redo;

/// What is there of a cell.
#[derive(Debug)]
pub enum Standing {
    /// Nothing that counts: it is to be run.
    Open,
    /// A record that is kept.
    Kept(Box<RunRecord>),
    /// A record that cannot be read; it is left as it is, and so is the cell.
    Unreadable(RecordError),
}

/// What is there of a cell, and the file that says so.
#[derive(Debug)]
pub struct Surveyed {
    /// What is there.
    pub standing: Standing,
    /// The file's bytes; `None`: there is no file. If they change, another sweep was here.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Surveyed {
    /// Whether nothing is to be done.
    pub fn is_settled(&self) -> bool {
        !matches!(self.standing, Standing::Open)
    }

    /// The record, if one is kept.
    pub fn kept(&self) -> Option<&RunRecord> {
        match &self.standing {
            Standing::Kept(record) => Some(record),
            Standing::Open | Standing::Unreadable(_) => None,
        }
    }
}

impl Plan {
    /// Where the record of a cell lies, or will lie.
    pub(super) fn record_path(&self, results: &std::path::Path, index: usize) -> PathBuf {
        results.join("cells").join(format!("{}.json", self.keys[index]))
    }

    /// Looks at what is there of every cell. Nothing is changed on disk.
    pub fn survey(&self, results: &std::path::Path, redo: &Redo) -> Vec<Surveyed> {
        (0..self.cells.len()).map(|index| self.look(results, index, redo)).collect()
    }

    /// Looks at what is there of one cell.
    pub(super) fn look(&self, results: &std::path::Path, index: usize, redo: &Redo) -> Surveyed {
        let path = self.record_path(results, index);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Surveyed { standing: Standing::Open, bytes: None };
            }
            Err(source) => {
                let error = RecordError::Io { action: "read", path, source };
                return Surveyed { standing: Standing::Unreadable(error), bytes: None };
            }
        };
        let key = &self.keys[index];
        let parsed = RunRecord::parse(&path, &bytes).and_then(|record| {
            if record.key == *key {
                return Ok(record);
            }
            let reason = format!("it holds the cell {}, not the one it is named after", record.key);
            Err(RecordError::Damaged { path: path.clone(), reason })
        });
        let standing = match parsed {
            Ok(record) if redo.asks_for(&record.status) => Standing::Open,
            Ok(mut record) => {
                // Names are how a suite shows a cell; they are no part of what was run.
                let cell = &self.cells[index].cell;
                record.workload.clone_from(&cell.workload);
                record.encoding.name.clone_from(&cell.name);
                record.grid.clone_from(&cell.grid);
                Standing::Kept(Box::new(record))
            }
            Err(RecordError::Damaged { .. }) if redo.asks_for_damaged() => Standing::Open,
            Err(error) => Standing::Unreadable(error),
        };
        Surveyed { standing, bytes: Some(bytes) }
    }
}

/// Reads a regular file; another kind of file, as a pipe, might never end.
fn read_file(path: &std::path::Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "no regular file"));
    }
    fs::read(path)
}
