//! Fetches a corpus into the cache folder: verified first, then moved into place in one step.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::cache::folder_in;
use super::carrier::Tools;
use super::error::CorpusError;
use super::known::CorpusMeta;
use crate::data::{TextDocument, documents_text, read_text};
use crate::files::{FileError, hex, sha256_hex, write_in};

/// Age beyond which a working folder is a remnant of a killed fetch.
const STALE: Duration = Duration::from_hours(24);

/// Returns the verified file in `cache`, or the one that is installed with the program, and fetches it if both are missing or
/// damaged.
pub(super) fn fetch_into(
    meta: &CorpusMeta,
    cache: &Path,
    tools: &Tools,
) -> Result<PathBuf, CorpusError> {
    let folder = folder_in(cache);
    let cached = folder.join(meta.file_name());
    let installed = tools.installed.as_ref().map(|dir| folder_in(dir).join(meta.file_name()));
    let is_right =
        |path: &PathBuf| fs::read(path).is_ok_and(|bytes| sha256_hex(&bytes) == meta.stored_sha256);
    if let Some(path) = [Some(cached.clone()), installed].into_iter().flatten().find(is_right) {
        return Ok(path);
    }
    let work = work_folder(&folder, meta.id)?;
    let result = fetch_through(meta, &work, tools, &cached);
    // Remnants are harmless, and a failure to remove them must not hide the result.
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
    let fetched = meta.carrier.fetch(work, tools)?;
    let first = fetched.first().map_or_else(|| work.to_path_buf(), |(_, path)| path.clone());
    let mut documents = Vec::with_capacity(fetched.len());
    let mut hasher = Sha256::new();
    for (name, path) in fetched {
        let text = read_text(&path)?;
        hasher.update(text.as_bytes());
        documents.push(TextDocument { name, text });
    }
    CorpusError::check_hash(&first, hex(&hasher.finalize()), meta.sha256)?;
    let stored = match &mut documents[..] {
        [only] if meta.is_one_text() => std::mem::take(&mut only.text),
        all => documents_text(all),
    };
    let whole = work.join(meta.file_name());
    // The text is right; this verifies the names of the documents.
    CorpusError::check_hash(&whole, sha256_hex(stored.as_bytes()), meta.stored_sha256)?;
    write_in(work, &meta.file_name(), stored)
        .and_then(|()| {
            fs::rename(&whole, cached).map_err(FileError::of("move the text to", cached))
        })
        .map_err(FileError::in_cache)?;
    Ok(())
}

/// Creates a folder in `parent`, a folder of the cache, for one fetch, which no other process or thread uses, and removes
/// those of fetches that were killed long ago.
///
/// # Errors
/// A folder cannot be created.
pub fn work_folder(parent: &Path, id: &str) -> Result<PathBuf, FileError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let failed = |path: &Path, cause| FileError::of("create the folder", path)(cause).in_cache();
    fs::create_dir_all(parent).map_err(|cause| failed(parent, cause))?;
    remove_stale(parent);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{id}.pkg.{}.{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(failed(&path, cause)),
        }
    }
}

/// Removes old working folders. Failures are harmless and ignored.
fn remove_stale(folder: &Path) {
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
