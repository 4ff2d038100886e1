//! Atomic writing of files.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Removes temporary files of interrupted writes of `path`. To be called only by the sole writer of that file.
pub fn remove_leftovers(path: &Path) {
    let Some(folder) = path.parent() else { return };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (begin, end) = (format!(".{name}."), ".tmp");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if file.starts_with(&begin) && file.ends_with(end) {
            // A leftover file does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes `bytes` to `path` atomically: a reader sees either the old or the new file, also after a loss of power.
///
/// # Errors
/// The error of the file system; the old file is then unchanged and no temporary file is left.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, File::sync_all)?;
    // The rename is durable once the folder is synced. Some systems cannot sync a folder; the record
    // is complete in both cases.
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Writes `bytes` to `path`: a reader sees either the old or the new file. After a loss of power the file may be
/// incomplete; [`write_atomically`] prevents that, and takes longer.
///
/// # Errors
/// The error of the file system; the old file is then unchanged and no temporary file is left.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, |_| Ok(()))
}

/// Writes a temporary file, applies `sync` to it and renames it to `path`.
fn replace(
    path: &Path,
    bytes: &[u8],
    sync: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    // Several threads of several processes may write the same cell. Processes in different containers may have the same
    // id, so the name has a random number too.
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    static OWN: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(
        ".{name}.{}.{:016x}.{}.tmp",
        std::process::id(),
        *OWN,
        COUNTER.fetch_add(1, Ordering::Relaxed)
    ));
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            sync(&file)
        })
        .and_then(|()| fs::rename(&temporary, path));
    // The first error is reported; an error of the clean-up would hide it.
    written.inspect_err(|_| drop(fs::remove_file(&temporary)))
}
