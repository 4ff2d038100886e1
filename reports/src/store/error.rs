//! Errors of reading and writing record files.

use std::io;
use std::path::{Path, PathBuf};

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system said no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write` ...
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A record written by a newer version of this program.
    #[error(
        "{} has record schema {found}, this program reads up to {supported}; nothing was changed: \
         use the newer program that wrote it, or another results folder",
        path.display()
    )]
    NewerSchema {
        /// The record.
        path: PathBuf,
        /// Its schema.
        found: u64,
        /// The newest schema that this program reads, [`crate::SCHEMA`].
        supported: u32,
    },
    /// A file that is not a whole and valid record.
    #[error(
        "{} is damaged or no run record: {reason}; put back a good copy, or run the suite with \
         --retry damaged, which keeps the file beside a new one",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the field's path where it is known.
        reason: String,
    },
    /// A key that [`cell_key`] cannot have made, and that must not become a file name.
    #[error(
        "cell key `{key}` is not 16 lower-case hexadecimal digits; make it with `reports::cell_key`"
    )]
    BadKey {
        /// The key.
        key: String,
    },
    /// The record has no JSON form.
    #[error("cell {key} cannot be written as JSON: {source}")]
    Unwritable {
        /// The record's key.
        key: String,
        /// What serde said.
        source: serde_json::Error,
    },
}

impl RecordError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
