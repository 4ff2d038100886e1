//! Record files: written atomically with a checksum, validated when read.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::atomic::write_atomically;
use super::canonical::{is_key, seal};
use super::error::RecordError;
use super::layout::join_innermost;
use super::scan;
use crate::record::{RunRecord, SCHEMA};

impl RunRecord {
    /// Writes the record to `dir/cells/<key>.json` and returns that path.
    ///
    /// The file is written atomically: to a temporary file, which is synced and renamed. An older record of the same
    /// cell is replaced.
    ///
    /// # Errors
    /// [`RecordError::BadKey`] and [`RecordError::Unwritable`] before any file is changed;
    /// [`RecordError::Io`] for an error of the file system, in which case no temporary file is left.
    pub fn write(&self, dir: &Path) -> Result<PathBuf, RecordError> {
        if !is_key(&self.key) {
            return Err(RecordError::BadKey { key: self.key.clone() });
        }
        let text = self.text()?;
        let cells = dir.join("cells");
        fs::create_dir_all(&cells).map_err(|e| RecordError::io("create", &cells, e))?;
        let path = cells.join(format!("{}.json", self.key));
        write_atomically(&path, text.as_bytes()).map_err(|e| RecordError::io("write", &path, e))?;
        Ok(path)
    }

    /// Serializes the record in the form of its file.
    ///
    /// # Errors
    /// [`RecordError::Unwritable`].
    pub fn text(&self) -> Result<String, RecordError> {
        let text = Sealed::of(self)
            .and_then(|sealed| serde_json::to_string_pretty(&sealed))
            .map_err(|source| self.unwritable(source))?;
        Ok(join_innermost(&text))
    }

    /// Serializes the record with its checksum on one line.
    ///
    /// # Errors
    /// [`RecordError::Unwritable`].
    pub fn line(&self) -> Result<String, RecordError> {
        Sealed::of(self)
            .and_then(|sealed| serde_json::to_string(&sealed))
            .map_err(|source| self.unwritable(source))
    }

    /// Returns the record as it would be read from its file, with as many digits as are written.
    ///
    /// # Errors
    /// [`RecordError::Unwritable`] if it has no JSON form.
    pub fn as_written(&self) -> Result<Self, RecordError> {
        serde_json::to_string(self)
            .and_then(|text| serde_json::from_str(&text))
            .map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: serde_json::Error) -> RecordError {
        RecordError::Unwritable { key: self.key.clone(), source }
    }

    /// Reads one record.
    ///
    /// # Errors
    /// [`RecordError::NewerSchema`], [`RecordError::Damaged`] or [`RecordError::Io`], each with the path of
    /// the file. No file is changed.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|e| RecordError::io("read", path, e))?;
        Self::parse(path, &bytes)
    }

    /// Reads one record from the bytes of its file; `path` is for the error.
    ///
    /// # Errors
    /// [`RecordError::NewerSchema`] or [`RecordError::Damaged`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, RecordError> {
        let bytes = without_mark(bytes);
        // Nearly every file is intact; the slower parser describes the defects of the others.
        let mut record = match scan::read(bytes) {
            Some(record) => record,
            None => Self::parse_carefully(path, bytes)?,
        };
        for eval in &mut record.evals {
            if let (Some(unseen), Some(outcomes)) = (&mut eval.unseen, &eval.outcomes) {
                unseen.take_answers(outcomes);
            }
        }
        Ok(record)
    }

    pub(super) fn parse_carefully(path: &Path, bytes: &[u8]) -> Result<Self, RecordError> {
        let damaged = |reason: String| RecordError::Damaged { path: path.to_owned(), reason };
        // The schema is checked first, because a newer record has fields that the strict parser rejects.
        let mut value: Value = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        match value.get("schema").and_then(Value::as_u64) {
            Some(found) if found > u64::from(SCHEMA) => {
                Err(RecordError::NewerSchema { path: path.to_owned(), found, supported: SCHEMA })
            }
            Some(1..) => {
                let sealed = check_seal(&mut value);
                // An error that names a field is more helpful than a wrong checksum.
                let record = serde_path_to_error::deserialize(value)
                    .map_err(|e| damaged(format!("field `{}`: {}", e.path(), e.inner())))?;
                sealed.map_err(damaged)?;
                Ok(record)
            }
            Some(found) => {
                Err(damaged(format!("record schema {found} does not exist; the first schema is 1")))
            }
            None => {
                Err(damaged("it has no numeric field `schema`, which every record has".to_owned()))
            }
        }
    }
}

/// Bytes of a JSON file without the byte-order mark with which editors on Windows begin it.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// A record with its checksum, as written to a file.
#[derive(Serialize)]
struct Sealed<'a> {
    #[serde(flatten)]
    record: &'a RunRecord,
    /// Checksum of the record; see [`seal`]. Present in files only.
    sha256: String,
}

impl<'a> Sealed<'a> {
    fn of(record: &'a RunRecord) -> Result<Self, serde_json::Error> {
        // As it will be read: a JSON parser may change the last digit of a number of 16 or more digits.
        let read = serde_json::from_str(&serde_json::to_string(record)?)?;
        Ok(Self { record, sha256: seal(&read) })
    }
}

/// Removes the checksum from a record's JSON and verifies it. Older files have none.
fn check_seal(value: &mut Value) -> Result<(), String> {
    let Some(written) = value.as_object_mut().and_then(|fields| fields.remove("sha256")) else {
        return Ok(());
    };
    if written == seal(value) {
        return Ok(());
    }
    Err("its checksum does not match: the file was changed after pe-bench wrote it".to_owned())
}

/// Renames a damaged record to `<name>.damaged`, or `<name>.damaged.2` and so on, and returns that path.
///
/// # Errors
/// [`RecordError::Io`].
pub fn set_aside(path: &Path) -> Result<PathBuf, RecordError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = (2u32..).map(|n| format!("{name}.damaged.{n}"));
    let mut free = std::iter::once(format!("{name}.damaged"))
        .chain(numbered)
        .map(|name| path.with_file_name(name))
        .filter(|aside| !aside.exists());
    let aside = free.next().unwrap_or_else(|| path.with_extension("damaged"));
    fs::rename(path, &aside).map_err(|e| RecordError::io("rename", path, e))?;
    Ok(aside)
}
