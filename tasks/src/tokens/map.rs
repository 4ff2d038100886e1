//! Memory mapping of a file: the only unsafe code of this crate.
#![expect(unsafe_code, reason = "mapping a file; the block states why it is sound")]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

/// Maps a file of the token cache for reading.
pub(super) fn map(path: &Path) -> std::io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the slice must not change while it is borrowed. Files of the token cache are complete before they get
    // their name, and this program never writes to or truncates them afterwards: a new file replaces the name, and a
    // mapping keeps the old file. Another program that modifies files in this folder during a run violates this.
    unsafe { Mmap::map(&file) }
}
