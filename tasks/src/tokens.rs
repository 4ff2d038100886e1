//! Texts as tokens, in memory or mapped from a file in the cache folder.
//!
//! A cached file is named by the hash of text, borders and tokenizer and of the format's version. It is written beside its
//! place, read back, and moved into it in one step; one that is damaged is found by its hashes and made again. Files are
//! never changed once they are in place, so several processes can map one.

mod cache;
mod encode;
mod file;
mod map;

use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) use cache::open_or_encode;
pub use cache::{CacheError, Origin};
#[cfg(test)]
pub(crate) use encode::Encoded;
pub(crate) use encode::{Span, sizes};
use file::Mapped;

/// Tokens of all documents, one behind the other.
#[derive(Debug)]
pub(crate) enum Tokens {
    /// In memory.
    Memory(Vec<u32>),
    /// In a mapped file.
    Mapped(Mapped),
}

impl Tokens {
    /// A copy of some of them.
    pub(crate) fn copy(&self, range: Range<usize>) -> Vec<u32> {
        match self {
            Self::Memory(tokens) => tokens[range].to_vec(),
            Self::Mapped(mapped) => mapped.copy(range),
        }
    }
}

/// Writes a file in one step: beside its place first, with a name of its own, then moved. Folders are made.
///
/// The error is what failed, on which path, and why.
pub(crate) fn replace_file(
    path: &Path,
    bytes: &[u8],
) -> Result<(), (&'static str, PathBuf, std::io::Error)> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|e| ("create the folder", folder.to_path_buf(), e))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.{}.{number}", std::process::id()));
    let written =
        std::fs::write(&beside, bytes).map_err(|e| ("write", beside.clone(), e)).and_then(|()| {
            std::fs::rename(&beside, path).map_err(|e| ("put in place", path.to_path_buf(), e))
        });
    if written.is_err() {
        // What was begun is worth nothing, and a failure to remove it must not hide the first.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests;
