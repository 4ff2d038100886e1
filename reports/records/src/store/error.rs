//! Errors of reading and writing record files.

use std::io;
use std::path::{Path, PathBuf};

/// Error of reading or writing a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// An operation of the file system failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Operation that failed, as a verb: `read`, `write` ...
        action: &'static str,
        /// Path of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The record was written by a newer version of this program.
    #[error(
        "{} has record schema {found}, but this program reads schemas up to {supported}; use the newer program that \
         wrote the record, or another results folder (no file was changed)",
        path.display()
    )]
    NewerSchema {
        /// Path of the record.
        path: PathBuf,
        /// Schema of the record.
        found: u64,
        /// Newest schema that this program reads, [`crate::SCHEMA`].
        supported: u32,
    },
    /// The file is not a complete and valid record.
    #[error(
        "{} is damaged or not a run record: {reason}; restore a good copy, or {}",
        path.display(),
        remedy(path)
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect, with the field's path where it is known.
        reason: String,
    },
    /// The key does not have the form of a [`cell_key`](super::cell_key) and must not become a file name.
    #[error(
        "cell key `{key}` is not 16 lower-case hexadecimal digits; compute it with `records::store::cell_key`"
    )]
    BadKey {
        /// Key of the cell.
        key: String,
    },
    /// The record cannot be serialized.
    #[error("cell {key} cannot be written as JSON: {source}")]
    Unwritable {
        /// Key of the record.
        key: String,
        /// Error of the serializer.
        source: serde_json::Error,
    },
    /// The records cannot be packed into one file.
    #[error("the records cannot be packed: {reason}")]
    Packing {
        /// Message of the library that writes the file.
        reason: String,
    },
}

/// Advice about a damaged file without a good copy.
fn remedy(path: &Path) -> &'static str {
    let folder = path.parent().and_then(Path::file_name);
    if path.extension().is_some_and(|kind| kind == "parquet") {
        "move the file away; `run` then computes its cells again"
    } else if folder.is_some_and(|name| name == "weights") {
        "run its cell again with --force, which trains from the start"
    } else {
        "run the suite with --retry damaged, which renames the file and runs its cell again"
    }
}

impl RecordError {
    /// Error of an operation on a path.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// Path of the file, if the error is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. } | Self::NewerSchema { path, .. } | Self::Damaged { path, .. } => {
                Some(path)
            }
            Self::BadKey { .. } | Self::Unwritable { .. } | Self::Packing { .. } => None,
        }
    }
}
