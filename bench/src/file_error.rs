//! Errors of the file system.

use std::io;
use std::path::{Path, PathBuf};

/// Operation on a file or folder that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// The operation as a verb: `read`, `write` ...
    pub action: &'static str,
    /// Path of the file or folder.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

impl FileError {
    /// Function that makes the error of an operation on `path`, for `map_err`.
    pub(crate) fn of(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self { action, path: path.to_owned(), source }
    }
}
