//! Atomic writing of files.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
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
    write_with(path, bytes, File::sync_all)?;
    // The rename is durable once the folder is synced. Some systems cannot sync a folder; the record
    // is complete in both cases.
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Replaces a file as [`write_atomically`] does, but without waiting for the disk: after a loss of power it may be empty.
/// For files that can be made again, of which a report has thousands.
///
/// # Errors
/// As [`write_atomically`].
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, bytes, |_| Ok(()))
}

/// Writes a temporary file, calls `sync`, and renames it to `path`.
fn write_with(
    path: &Path,
    bytes: &[u8],
    sync: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
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
            sync(&file)
        })
        .and_then(|()| fs::rename(&temporary, path));
    // The first error is reported; an error of the clean-up would hide it.
    written.inspect_err(|_| drop(fs::remove_file(&temporary)))
}
