//! Brings a corpus into the cache folder: verified first, put in place in one step.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{CorpusError, CorpusMeta, Tools, hex, sha256_hex, tools};
use crate::data::{Document, documents_text, read_text};

/// Working folders older than this were left by a fetch that was killed.
const STALE: Duration = Duration::from_hours(24);

/// Folder of the corpora in a cache folder.
pub(super) fn folder_in(cache: &Path) -> PathBuf {
    cache.join("corpora")
}

/// Returns the verified file in `cache`, fetching it if it is not there or damaged.
pub(super) fn fetch_into(
    meta: &CorpusMeta,
    cache: &Path,
    tools: &Tools,
) -> Result<PathBuf, CorpusError> {
    let folder = folder_in(cache);
    let cached = folder.join(meta.file_name());
    if fs::read(&cached).is_ok_and(|bytes| sha256_hex(&bytes) == meta.stored_sha256) {
        return Ok(cached);
    }
    fs::create_dir_all(&folder).map_err(|e| CorpusError::io("create the folder", &folder, e))?;
    remove_stale(&folder);
    // A folder of our own, so that processes that fetch at once do not meet in it.
    let work = unique_folder(&folder, meta.id)?;
    let result = fetch_through(meta, &work, tools, &cached);
    // Left-overs are harmless, and a failure to remove them must not hide the result.
    let _ = fs::remove_dir_all(&work);
    result.map(|()| cached)
}

/// Fetches into the empty folder `work`, verifies, and moves the text to `cached` in one step.
fn fetch_through(
    meta: &CorpusMeta,
    work: &Path,
    tools: &Tools,
    cached: &Path,
) -> Result<(), CorpusError> {
    let brought = meta.carrier.bring(work, tools)?;
    let first = brought.first().map_or_else(|| work.to_path_buf(), |(_, path)| path.clone());
    let mut documents = Vec::with_capacity(brought.len());
    let mut hasher = Sha256::new();
    for (name, path) in brought {
        let text = read_text(&path)?;
        hasher.update(text.as_bytes());
        documents.push(Document { name, text });
    }
    let got = hex(&hasher.finalize());
    if got != meta.sha256 {
        return Err(CorpusError::HashMismatch { path: first, expected: meta.sha256, got });
    }
    let stored = match &mut documents[..] {
        [only] if meta.is_one_text() => std::mem::take(&mut only.text),
        all => documents_text(all),
    };
    let whole = work.join(meta.file_name());
    // The text is right; this is about its names, and about what a full disk makes of it.
    let got = sha256_hex(stored.as_bytes());
    if got != meta.stored_sha256 {
        return Err(CorpusError::HashMismatch { path: whole, expected: meta.stored_sha256, got });
    }
    tools::write(&whole, stored.as_bytes())?;
    fs::rename(&whole, cached).map_err(|e| CorpusError::io("move the text to", cached, e))
}

/// Makes a folder that no other process or thread has: creating one that exists fails, and the next number is tried.
pub(super) fn unique_folder(parent: &Path, id: &str) -> Result<PathBuf, CorpusError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{id}.pkg.{}.{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(CorpusError::io("create the folder", &path, e)),
        }
    }
}

/// Removes the working folders of fetches that were killed long ago; what cannot be removed does no harm.
pub(super) fn remove_stale(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().contains(".pkg.")) {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
