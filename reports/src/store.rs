//! Record files: `<results folder>/cells/<key>.json`, written atomically, read strictly.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::json_layout::join_innermost;
use crate::record::{RunRecord, SCHEMA};

mod scan;

const NEWEST: u64 = SCHEMA as u64;

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
        /// The newest schema that this program reads, [`SCHEMA`].
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
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

/// 16 hex digits of the SHA-256 of `config` as canonical JSON (keys sorted at every depth, no
/// spaces), so that the order in which settings are written does not matter and every value does.
pub fn cell_key(config: &Value) -> String {
    cell_key_without(config, &[])
}

/// [`cell_key`] of a configuration without these outermost fields.
pub(crate) fn cell_key_without(config: &Value, fields: &[&str]) -> String {
    let mut text = Vec::new();
    match config {
        Value::Object(map) => {
            object(map.iter().filter(|(key, _)| !fields.contains(&key.as_str())), &mut text);
        }
        other => canonical(other, &mut text),
    }
    hex(&Sha256::digest(&text)[..8])
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => object(map.iter(), out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                canonical(item, out);
            }
            out.push(b']');
        }
        scalar => append(scalar, out),
    }
}

/// Sorted here and not left to the map type: a dependency may switch serde_json to maps that keep the order of
/// insertion.
fn object<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut Vec<u8>) {
    let mut fields: Vec<_> = fields.collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    out.push(b'{');
    for (index, (key, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        append(key, out);
        out.push(b':');
        canonical(value, out);
    }
    out.push(b'}');
}

/// Text and numbers have a JSON form, and memory takes it.
fn append<T: Serialize + ?Sized>(scalar: &T, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, scalar);
}

fn is_key(key: &str) -> bool {
    key.len() == 16 && key.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl RunRecord {
    /// Writes the record to `dir/cells/<key>.json` and returns that path.
    ///
    /// The file appears whole or not at all: it is written beside its place, synced, and renamed. An
    /// older record of the same cell is replaced.
    ///
    /// # Errors
    /// [`RecordError::BadKey`] and [`RecordError::Unwritable`] before anything is touched;
    /// [`RecordError::Io`] when the file system refuses, in which case no temporary file is left.
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

    /// The record as its file has it.
    ///
    /// # Errors
    /// [`RecordError::Unwritable`].
    pub fn text(&self) -> Result<String, RecordError> {
        let text = Sealed::of(self)
            .and_then(|sealed| serde_json::to_string_pretty(&sealed))
            .map_err(|source| RecordError::Unwritable { key: self.key.clone(), source })?;
        Ok(join_innermost(&text))
    }

    /// The record as it would be read from its file: with as many digits as are written.
    ///
    /// # Errors
    /// [`RecordError::Unwritable`] when it has no JSON form.
    pub fn as_written(&self) -> Result<Self, RecordError> {
        serde_json::to_string(self)
            .and_then(|text| serde_json::from_str(&text))
            .map_err(|source| RecordError::Unwritable { key: self.key.clone(), source })
    }

    /// Reads one record.
    ///
    /// # Errors
    /// [`RecordError::NewerSchema`], [`RecordError::Damaged`] or [`RecordError::Io`], each naming
    /// the file; nothing is ever changed on disk.
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
        // Nearly every file is whole; of the others it takes another look to say what is wrong.
        if let Some(record) = scan::read(bytes) {
            return Ok(record);
        }
        Self::parse_carefully(path, bytes)
    }

    fn parse_carefully(path: &Path, bytes: &[u8]) -> Result<Self, RecordError> {
        let damaged = |reason: String| RecordError::Damaged { path: path.to_owned(), reason };
        // The schema is looked at first: a newer record has fields that the strict parser rejects.
        let mut value: Value = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        match value.get("schema").and_then(Value::as_u64) {
            Some(found) if found > NEWEST => {
                Err(RecordError::NewerSchema { path: path.to_owned(), found, supported: SCHEMA })
            }
            Some(1..=NEWEST) => {
                let sealed = check_seal(&mut value);
                // What names a field says more than the checksum does.
                let record = serde_path_to_error::deserialize(value)
                    .map_err(|e| damaged(format!("field `{}`: {}", e.path(), e.inner())))?;
                sealed.map_err(damaged)?;
                Ok(record)
            }
            Some(found) => {
                Err(damaged(format!("there is no record schema {found}, the first is 1")))
            }
            None => Err(damaged("it has no number `schema`, which every record has".to_owned())),
        }
    }
}

/// A record as it is written.
#[derive(Serialize)]
struct Sealed<'a> {
    #[serde(flatten)]
    record: &'a RunRecord,
    /// See [`seal`]; a field of the file, and of no record.
    sha256: String,
}

impl<'a> Sealed<'a> {
    fn of(record: &'a RunRecord) -> Result<Self, serde_json::Error> {
        // What a reader will see: JSON may give a number of 16 digits and more back one digit off.
        let read = serde_json::from_str(&serde_json::to_string(record)?)?;
        Ok(Self { record, sha256: seal(&read) })
    }
}

/// The checksum is of what the file says and not of its bytes: layout and ends of lines may change.
fn seal(value: &Value) -> String {
    let mut text = Vec::new();
    canonical(value, &mut text);
    hex(&Sha256::digest(&text))
}

/// Takes the checksum out of a record's JSON. Files from before there was one have none.
fn check_seal(value: &mut Value) -> Result<(), String> {
    let Some(written) = value.as_object_mut().and_then(|fields| fields.remove("sha256")) else {
        return Ok(());
    };
    if written == seal(value) {
        return Ok(());
    }
    Err("its checksum does not match: something in it was changed after it was written".to_owned())
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

/// Removes what killed writes of `path` left beside it. Only for who alone writes that file.
pub fn remove_leftovers(path: &Path) {
    let Some(folder) = path.parent() else { return };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (begin, end) = (format!(".{name}."), ".tmp");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if file.starts_with(&begin) && file.ends_with(end) {
            // A leftover is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes `bytes` to `path` so that a reader sees the old file, or the new one, and nothing between; also
/// after a loss of power.
///
/// # Errors
/// What the file system says; the old file is then still there, and no other.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Several threads of several processes may write the same cell.
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(
        ".{name}.{}.{}.tmp",
        std::process::id(),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    ));
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The first error is the one to tell; a failed clean-up would only hide it.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    // The rename is durable once the folder is; some systems cannot sync a folder, and the record
    // is whole either way.
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Reads every record of a results folder, `dir/cells/*.json`, in the order of their keys.
///
/// A folder without `cells` has no records yet: the result is empty. Temporary files of a write
/// that was killed (their names begin with a dot) are no records and are passed over.
///
/// # Errors
/// The first of [`read_each`].
pub fn read_dir(dir: &Path) -> Result<Vec<RunRecord>, RecordError> {
    read_each(dir)?.into_iter().collect()
}

/// As [`read_dir`], but a record that cannot be read stands beside the others and not for all.
///
/// A file whose name is not its record's key is [`RecordError::Damaged`], because its cell would be
/// counted twice.
///
/// # Errors
/// [`RecordError::Io`] if the folder cannot be listed.
pub fn read_each(dir: &Path) -> Result<Vec<Result<RunRecord, RecordError>>, RecordError> {
    let cells = dir.join("cells");
    let entries = match fs::read_dir(&cells) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RecordError::io("list", &cells, error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| RecordError::io("list", &cells, e))?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths.into_par_iter().map(read_named).collect())
}

/// Reads a record and holds it against its file's name.
fn read_named(path: PathBuf) -> Result<RunRecord, RecordError> {
    let record = RunRecord::read(&path)?;
    if path.file_stem().is_some_and(|stem| *stem == *record.key) {
        return Ok(record);
    }
    let reason = format!("it holds the cell {}, not the one it is named after", record.key);
    Err(RecordError::Damaged { path, reason })
}

#[cfg(test)]
mod tests;
