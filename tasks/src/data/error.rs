//! Errors while texts are read.

use std::path::PathBuf;

use thiserror::Error;

use crate::files::FileError;

/// Reason why a text on this machine could not be read.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file or folder could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The path leads to a folder, a pipe or a device.
    #[error("{path} is not a regular file: copy its content into a file and give its path", path = .path.display())]
    NotAFile {
        /// Path that was given.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{path} is empty, expected a text", path = .path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not UTF-8.
    #[error("cannot read {path}: {reason}", path = .path.display())]
    NotUtf8 {
        /// Path of the file.
        path: PathBuf,
        /// Why it is not, with the remedy.
        reason: String,
    },
    /// A line is not a JSON object with the requested string.
    #[error("{path}, line {line}: {why}; each line must be a JSON object with a string under `{field}`", path = .path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Name of the requested field.
        field: String,
        /// Description of the observed fault.
        why: String,
    },
    /// The file is damaged or not a Parquet file.
    #[error("{path} cannot be read as Parquet ({why}): copy or download the file again", path = .path.display())]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// Description of the observed fault.
        why: String,
    },
    /// The file is a Parquet file, and the program is built without their reader.
    #[error(
        "{path} is a Parquet file, which this program cannot read: build it with the feature `parquet` of pe-zoo-tasks",
        path = .path.display()
    )]
    NoParquet {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file has no column of strings with this name.
    #[error("{path}: {why}; columns of strings: {known}; set `field` to one of them", path = .path.display())]
    Column {
        /// Path of the file.
        path: PathBuf,
        /// Fault of the requested column.
        why: String,
        /// Columns of strings, or `none`.
        known: String,
    },
    /// A field is given for a file without fields.
    #[error("`field` is `{field}`, but {path} is plain text, which has no fields: leave out `field`", path = .path.display())]
    FieldOfText {
        /// Path of the file.
        path: PathBuf,
        /// Name of the requested field.
        field: String,
    },
    /// The folder has no readable file.
    #[error(
        "{path} has no data: expected files that end in {expected}, or folders `train` and `validation` with such files",
        path = .path.display()
    )]
    NoData {
        /// Path of the folder.
        path: PathBuf,
        /// Endings of readable files.
        expected: String,
    },
    /// A folder has named parts and a file outside of them.
    #[error(
        "{path} has a training part, but `{name}` belongs to no part: name it train, validation or test, or remove it",
        path = .path.display()
    )]
    Stray {
        /// Path of the folder.
        path: PathBuf,
        /// The file or folder within it.
        name: String,
    },
    /// A folder has a training part without a validation part.
    #[error(
        "{path} has a training part, but no part is named validation, valid, val or dev: add a validation part",
        path = .path.display()
    )]
    NoValidation {
        /// Path of the folder.
        path: PathBuf,
    },
    /// Documents are divided by year, and the name of one has none.
    #[error(
        "the name of document `{name}` must begin with a year, because documents are divided by year"
    )]
    NoYear {
        /// Name of the document.
        name: String,
    },
}
