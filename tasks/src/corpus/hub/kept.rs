//! What has been brought: files as the data set has them, and a list of their hashes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{DataSet, HubError};
use crate::corpus::{CorpusError, hex, tools};

/// The list. Its name begins with a dot, so that nobody takes it for data.
const MANIFEST: &str = ".brought.json";
/// The folder of the files, whose name speaks of no part.
const FILES: &str = "files";
/// Bytes that are hashed at once.
const CHUNK: usize = 1 << 16;

/// What was brought.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// The name that was asked for.
    pub(super) set: String,
    /// The commit that its revision stood for.
    pub(super) commit: String,
    /// The file or folder that is read; `None`: all files as one.
    pub(super) read: Option<String>,
    /// Hashes by path.
    pub(super) files: BTreeMap<String, String>,
}

impl Manifest {
    pub(super) fn write(&self, folder: &Path) -> Result<(), CorpusError> {
        let path = folder.join(MANIFEST);
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| CorpusError::io("write", &path, e.into()))?;
        tools::write(&path, text.as_bytes())
    }
}

/// Where a file of a data set lies in its folder.
pub(super) fn file_in(folder: &Path, file: &str) -> PathBuf {
    folder.join(FILES).join(file)
}

/// The list in a folder.
fn listed(set: &DataSet, folder: &Path) -> Result<Manifest, HubError> {
    let path = folder.join(MANIFEST);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(_) if !folder.exists() => return Err(HubError::Absent { set: set.to_string() }),
        Err(error) => return Err(HubError::Damaged { path, why: error.to_string() }),
    };
    let why = match serde_json::from_str::<Manifest>(&text) {
        Ok(manifest) if manifest.set == set.to_string() => return Ok(manifest),
        Ok(other) => format!("it is of {}", other.set),
        Err(error) => error.to_string(),
    };
    Err(HubError::Damaged { path, why })
}

/// The file or folder that is read, hashes not looked at.
pub(super) fn read_in(set: &DataSet, folder: &Path) -> Result<PathBuf, HubError> {
    Ok(match &listed(set, folder)?.read {
        Some(read) if read.is_empty() => folder.join(FILES),
        Some(read) => file_in(folder, read),
        // One folder further up, from where names speak of no parts.
        None => folder.to_path_buf(),
    })
}

/// The file or folder that is read, all hashes checked.
pub(super) fn find(set: &DataSet, folder: &Path) -> Result<PathBuf, HubError> {
    let manifest = listed(set, folder)?;
    for (file, expected) in &manifest.files {
        let path = file_in(folder, file);
        match sha256_of(&path) {
            Ok((got, _bytes)) if got == *expected => {}
            Ok((got, _bytes)) => {
                let why = format!("sha256 is {got}, must be {expected}");
                return Err(HubError::Damaged { path, why });
            }
            Err(error) => return Err(HubError::Damaged { path, why: error.to_string() }),
        }
    }
    read_in(set, folder)
}

/// Hash and size of a file of any size.
pub(super) fn sha256_of(path: &Path) -> Result<(String, u64), CorpusError> {
    let failed = |error| CorpusError::io("read", path, error);
    let mut file = fs::File::open(path).map_err(failed)?;
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk).map_err(failed)? {
            0 => return Ok((hex(&hasher.finalize()), bytes)),
            read => {
                hasher.update(&chunk[..read]);
                bytes += read as u64;
            }
        }
    }
}
