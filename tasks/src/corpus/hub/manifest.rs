//! Downloaded files and the manifest of their hashes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::HubError;
use super::name::DataSet;
use crate::files::{FileError, write_in};
use crate::hash::hex;

/// Name of the manifest. It begins with a dot, so that it is not read as data.
const MANIFEST: &str = ".brought.json";
/// Folder of the files; its name is not that of a part.
const FILES: &str = "files";
/// Size of the buffer for hashing.
const CHUNK: usize = 1 << 16;

/// List of the files of a downloaded data set.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// Requested name.
    pub(super) set: String,
    /// Commit of the requested revision.
    pub(super) commit: String,
    /// File or folder that is read; `None`: all files.
    pub(super) read: Option<String>,
    /// SHA-256 of each file by path.
    pub(super) files: BTreeMap<String, String>,
}

impl Manifest {
    pub(super) fn write(&self, folder: &Path) -> Result<(), FileError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| FileError::of("write", &folder.join(MANIFEST))(e.into()))?;
        write_in(folder, MANIFEST, text)
    }
}

/// Path of a file of a data set in its folder.
pub(super) fn file_in(folder: &Path, file: &str) -> PathBuf {
    folder.join(FILES).join(file)
}

/// Reads the manifest in a folder.
fn read_manifest(set: &DataSet, folder: &Path) -> Result<Manifest, HubError> {
    let path = folder.join(MANIFEST);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(_) if !folder.exists() => return Err(HubError::Absent { set: set.to_string() }),
        Err(error) => return Err(HubError::Damaged { path, why: error.to_string() }),
    };
    let why = match serde_json::from_str::<Manifest>(&text) {
        Ok(manifest) if manifest.set == set.to_string() => return Ok(manifest),
        Ok(other) => format!("its manifest is that of {}", other.set),
        Err(error) => error.to_string(),
    };
    Err(HubError::Damaged { path, why })
}

/// Returns the file or folder that is read, without verification.
pub(super) fn read_in(set: &DataSet, folder: &Path) -> Result<PathBuf, HubError> {
    Ok(match &read_manifest(set, folder)?.read {
        Some(read) if read.is_empty() => folder.join(FILES),
        Some(read) => file_in(folder, read),
        // The parent folder, within which no name is that of a part.
        None => folder.to_path_buf(),
    })
}

/// Returns the file or folder that is read after verifying all hashes.
pub(super) fn find(set: &DataSet, folder: &Path) -> Result<PathBuf, HubError> {
    let manifest = read_manifest(set, folder)?;
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

/// Returns the SHA-256 and the size of a file.
pub(super) fn sha256_of(path: &Path) -> Result<(String, u64), FileError> {
    let failed = FileError::of("read", path);
    let mut file = fs::File::open(path).map_err(&failed)?;
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk).map_err(&failed)? {
            0 => return Ok((hex(&hasher.finalize()), bytes)),
            read => {
                hasher.update(&chunk[..read]);
                bytes += read as u64;
            }
        }
    }
}
