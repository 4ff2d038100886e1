//! Presence of corpora on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::cache::{cache_dir, folder_in, installed_dir};
use super::error::CorpusError;
use super::known::CorpusMeta;
use crate::data::named_documents;
use crate::files::{FileError, hex, sha256_hex};

/// Presence of a corpus on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorpusState {
    /// The corpus is not fetched.
    Absent,
    /// The corpus is fetched; its file has not been verified.
    Present {
        /// Path of the file.
        path: PathBuf,
        /// Size of the file.
        bytes: u64,
    },
}

/// Looks for a corpus in the cache folder, and among what is installed with the program, without reading or fetching it.
pub fn state(meta: &CorpusMeta) -> CorpusState {
    let folders = [Some(cache_dir()), installed_dir()];
    folders
        .into_iter()
        .flatten()
        .find_map(|folder| present(meta, &folder))
        .unwrap_or(CorpusState::Absent)
}

fn present(meta: &CorpusMeta, folder: &Path) -> Option<CorpusState> {
    let path = folder_in(folder).join(meta.file_name());
    let bytes = fs::metadata(&path).ok()?.len();
    Some(CorpusState::Present { path, bytes })
}

/// Verifies the hashes of a fetched corpus, that of the file and that of the text.
///
/// # Errors
/// [`CorpusError::Absent`]; [`CorpusError::HashMismatch`] for a damaged file, which the next fetch replaces.
pub fn verify(meta: &'static CorpusMeta) -> Result<PathBuf, CorpusError> {
    let CorpusState::Present { path, .. } = state(meta) else {
        return Err(CorpusError::Absent { id: meta.id });
    };
    let bytes = fs::read(&path).map_err(FileError::of("read", &path))?;
    CorpusError::check_hash(&path, sha256_hex(&bytes), meta.stored_sha256)?;
    if !meta.is_one_text() {
        let mut hasher = Sha256::new();
        for document in named_documents(&path)? {
            hasher.update(document.text.as_bytes());
        }
        CorpusError::check_hash(&path, hex(&hasher.finalize()), meta.sha256)?;
    }
    Ok(path)
}
