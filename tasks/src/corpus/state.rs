//! What of a corpus is on this machine.

use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::fetch::folder_in;
use super::{CorpusError, CorpusMeta, cache_dir, hex, sha256_hex};
use crate::data::read_documents;

/// Whether a corpus is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has not been fetched.
    Absent,
    /// It is kept in this file (not verified by looking).
    Present {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
}

/// Looks for a corpus in the cache folder; reads nothing and fetches nothing.
pub fn state(meta: &CorpusMeta) -> State {
    let path = folder_in(&cache_dir()).join(meta.file_name());
    match fs::metadata(&path) {
        Ok(found) => State::Present { path, bytes: found.len() },
        Err(_) => State::Absent,
    }
}

/// Reads a corpus that has been fetched and checks its hashes, those of the file and of the text.
///
/// # Errors
/// [`CorpusError::Absent`]; [`CorpusError::HashMismatch`] for a damaged file, which the next fetch replaces.
pub fn verify(meta: &'static CorpusMeta) -> Result<PathBuf, CorpusError> {
    let State::Present { path, .. } = state(meta) else {
        return Err(CorpusError::Absent { id: meta.id });
    };
    let bytes = fs::read(&path).map_err(|e| CorpusError::io("read", &path, e))?;
    let differs = |expected: &'static str, got: String| {
        Err(CorpusError::HashMismatch { path: path.clone(), expected, got })
    };
    let got = sha256_hex(&bytes);
    if got != meta.stored_sha256 {
        return differs(meta.stored_sha256, got);
    }
    if !meta.is_one_text() {
        let mut hasher = Sha256::new();
        for document in read_documents(&path)? {
            hasher.update(document.text.as_bytes());
        }
        let got = hex(&hasher.finalize());
        if got != meta.sha256 {
            return differs(meta.sha256, got);
        }
    }
    Ok(path)
}
