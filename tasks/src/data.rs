//! Texts as documents in training, validation and test parts, read from files and folders.
//!
//! | input | documents | parts |
//! | --- | --- | --- |
//! | a text file (any extension except those below) | one | by number |
//! | `.jsonl`, `.ndjson` | one for each line: the string under `field`, `text` by default | by number |
//! | `.parquet` | one for each row: the column `field`, `text` by default | by number |
//! | `enwik8`, 100,000,000 bytes | one for each part | first 90, next 5, last 5 million bytes |
//! | a folder whose files or folders are named `train`, `validation` (or `valid`, `val`, `dev`) and `test` | as above, for each file | by these names |
//! | the same from WikiText (folder `wikitext-...`, or files `wiki.*.raw`, `wiki.*.tokens`) | one for each article | by these names |
//! | any other folder: all of its data files, at any depth, paths sorted | as above, for each file | by number |
//!
//! *By number*: of ten or more documents, numbered from 0 in order, those whose number ends in 0 to 7 are training, 8 is
//! validation, 9 is test. Fewer than ten are each split at nine tenths of their characters into training and validation.
//! *By year* (corpus `sotu`): the same rule for the last digit of the year at the start of a document's name.
//!
//! Text files are UTF-8; a byte-order mark at the beginning of one is no character of its text.
//!
//! Data files in a folder are those that end in `.txt`, `.text`, `.raw`, `.tokens`, `.jsonl`, `.ndjson` or
//! `.parquet` (with the feature `parquet`); others, and names that begin with a dot, are ignored.

mod error;
mod files;
mod layout;
#[cfg(feature = "parquet")]
mod parquet;
mod parts;
mod rows;

use std::path::Path;

pub use error::DataError;
pub(crate) use files::{files_below, read_text};
pub use parts::{Borders, Part, Parts, SplitRule, TextDocument};
pub(crate) use rows::{documents_text, named_documents};

/// Reads a file or folder as described in the table of this module.
///
/// # Errors
/// [`DataError`], with the file, its fault and a remedy.
pub fn read(path: &Path, field: Option<&str>) -> Result<Parts, DataError> {
    if path.is_dir() {
        return layout::read_folder(path, field);
    }
    if let Some(cuts) = layout::fixed_cuts(path) {
        if let Some(field) = field {
            return Err(DataError::FieldOfText { path: path.into(), field: field.to_owned() });
        }
        return Ok(parts::cut_at(&read_text(path)?, cuts));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    SplitRule::ByNumber.parts(rows::documents(path, &name, field)?)
}

#[cfg(all(test, feature = "parquet"))]
mod tests;
