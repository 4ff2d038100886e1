//! Record files: `<results folder>/cells/<key>.json`, written atomically, read strictly.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::json_layout::join_innermost;
use crate::record::{RunRecord, SCHEMA};

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
        "{} is not a valid run record: {reason}; delete the file and run the suite again to redo this cell",
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
    let mut text = String::new();
    canonical(config, &mut text);
    let digest = Sha256::digest(text.as_bytes());
    hex(&digest[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        // Sorted here and not left to the map type: a dependency may switch serde_json to maps
        // that keep the order of insertion.
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
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
        let text = serde_json::to_string_pretty(self)
            .map_err(|source| RecordError::Unwritable { key: self.key.clone(), source })?;
        Ok(join_innermost(&text))
    }

    /// Reads one record.
    ///
    /// # Errors
    /// [`RecordError::NewerSchema`], [`RecordError::Damaged`] or [`RecordError::Io`], each naming
    /// the file; nothing is ever changed on disk.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|e| RecordError::io("read", path, e))?;
        Self::parse(&bytes, path)
    }

    /// Reads the content of a record's file; errors name it as `path`.
    ///
    /// # Errors
    /// [`RecordError::NewerSchema`] or [`RecordError::Damaged`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, RecordError> {
        let damaged = |reason: String| RecordError::Damaged { path: path.to_owned(), reason };
        // The schema is looked at first: a newer record has fields that the strict parser rejects.
        let value: Value = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        match value.get("schema").and_then(Value::as_u64) {
            Some(found) if found > NEWEST => {
                Err(RecordError::NewerSchema { path: path.to_owned(), found, supported: SCHEMA })
            }
            Some(1..=NEWEST) => {
                let mut text = serde_json::Deserializer::from_slice(bytes);
                serde_path_to_error::deserialize(&mut text)
                    .map_err(|e| damaged(format!("field `{}`: {}", e.path(), e.inner())))
            }
            Some(found) => {
                Err(damaged(format!("there is no record schema {found}, the first is 1")))
            }
            None => Err(damaged("it has no number `schema`, which every record has".to_owned())),
        }
    }
}

/// Writes `bytes` to `path` so that a reader sees the old file, or the new one, and nothing between.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
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
/// The first record that cannot be read, as [`RunRecord::read`] tells it; a file whose name is not
/// its record's key is [`RecordError::Damaged`], because its cell would be counted twice.
pub fn read_dir(dir: &Path) -> Result<Vec<RunRecord>, RecordError> {
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
    paths
        .into_iter()
        .map(|path| {
            let record = RunRecord::read(&path)?;
            if path.file_stem().is_some_and(|stem| *stem == *record.key) {
                Ok(record)
            } else {
                Err(RecordError::Damaged {
                    reason: format!(
                        "it holds the cell {}, not the one it is named after",
                        record.key
                    ),
                    path,
                })
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
