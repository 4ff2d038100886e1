//! State of a cell, from its record file.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use records::RunRecord;
use records::store::RecordError;

use super::retry::RetryPolicy;

/// Result of looking up a cell in the results folder.
#[derive(Debug)]
pub enum CellStatus {
    /// The cell has to be run.
    Open,
    /// The cell has a record that is kept.
    Kept(Box<RunRecord>),
    /// The cell has a record that cannot be read; it is not run.
    Unreadable(RecordError),
}

/// State of a cell, with the bytes of its record file.
#[derive(Debug)]
pub struct CellFile {
    /// Status of the cell.
    pub status: CellStatus,
    /// Bytes of the file; `None` without a file. They change when another sweep ends the cell.
    pub(super) bytes: Option<Vec<u8>>,
}

impl CellFile {
    /// Whether the cell does not have to be run.
    pub fn is_settled(&self) -> bool {
        !matches!(self.status, CellStatus::Open)
    }

    /// The record, if one is kept.
    pub fn kept(&self) -> Option<&RunRecord> {
        match &self.status {
            CellStatus::Kept(record) => Some(record),
            CellStatus::Open | CellStatus::Unreadable(_) => None,
        }
    }
}

/// Reads the record file of the cell `key`.
pub(super) fn look_up(path: &Path, key: &str, retry: &RetryPolicy) -> CellFile {
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return CellFile { status: CellStatus::Open, bytes: None };
        }
        Err(source) => {
            let error = RecordError::Io { action: "read", path: path.to_owned(), source };
            return CellFile { status: CellStatus::Unreadable(error), bytes: None };
        }
    };
    let parsed = RunRecord::parse(path, &bytes).and_then(|record| {
        if record.key == key {
            return Ok(record);
        }
        let reason =
            format!("it contains the cell {}, but its name is the key of another cell", record.key);
        Err(RecordError::Damaged { path: path.to_owned(), reason })
    });
    let status = match parsed {
        Ok(record) if retry.includes(&record) => CellStatus::Open,
        Ok(record) => CellStatus::Kept(Box::new(record)),
        Err(RecordError::Damaged { .. }) if retry.includes_damaged() => CellStatus::Open,
        Err(error) => CellStatus::Unreadable(error),
    };
    CellFile { status, bytes: Some(bytes) }
}

/// Reads a regular file; other kinds of file, such as pipes, might block.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    fs::read(path)
}
