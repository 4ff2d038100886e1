//! Why a text that is on this machine could not be read.

use std::path::PathBuf;

use thiserror::Error;

use crate::files::FileError;

/// Why a text that is on this machine could not be read.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file or folder could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The path leads to a folder, a pipe or a device.
    #[error("{path} is not a regular file: copy its content into a file and name that", path = .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file has no text in it.
    #[error("{path} is empty, must be a text to learn from", path = .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is not UTF-8.
    #[error("{path} is not UTF-8 from byte {offset} on: save it as UTF-8", path = .path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first bad byte, from 0.
        offset: usize,
    },
    /// A line is not a JSON object with the string that is asked for.
    #[error("{path}, line {line}: {why}; each line must be a JSON object with a string under `{field}`", path = .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The field that is read.
        field: String,
        /// What was wrong with it.
        why: String,
    },
    /// The file is damaged or not Parquet at all.
    #[error("{path} cannot be read as Parquet ({why}): bring the file here again", path = .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        why: String,
    },
    /// The file has no such column of strings.
    #[error("{path}: {why}; columns of strings: {known}; set `field` to one of them", path = .path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// What was wrong with the column that was asked for.
        why: String,
        /// The columns that can be read, or `none`.
        known: String,
    },
    /// A field is named for a file that has none.
    #[error("`field` is `{field}`, but {path} is plain text, which has no fields: leave it out", path = .path.display())]
    FieldOfText {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        field: String,
    },
    /// A folder without a file that can be read.
    #[error(
        "{path} has no data: expected files that end in {expected}, or folders `train` and `validation` with such files",
        path = .path.display()
    )]
    NoData {
        /// The folder.
        path: PathBuf,
        /// The endings that are read.
        expected: String,
    },
    /// A folder has parts, and a file that belongs to none.
    #[error(
        "{path} has a part for training, but `{name}` belongs to no part: name it train, validation or test, or take it away",
        path = .path.display()
    )]
    Stray {
        /// The folder.
        path: PathBuf,
        /// The file or folder within it.
        name: String,
    },
    /// A folder has a part to learn from and none to evaluate on.
    #[error("{path} has a part for training, but none named validation, valid, val or dev: add one", path = .path.display())]
    NoValidation {
        /// The folder.
        path: PathBuf,
    },
    /// Documents are to be parted by year, and one has none.
    #[error("document `{name}` must begin with a year, by which the documents are parted")]
    NoYear {
        /// The document.
        name: String,
    },
}
