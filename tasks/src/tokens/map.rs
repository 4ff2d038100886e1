//! A file as a slice of bytes: the only unsafe code of this crate.
#![expect(unsafe_code, reason = "mapping a file; why it is sound stands at the one block")]

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

/// Maps a file of the token cache to be read.
pub(super) fn map(path: &Path) -> std::io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the slice must not change while it is borrowed. Files of the token cache are complete when they get their
    // name, and this program never writes to or shortens one that has it: a new one is moved over it, and a mapping
    // keeps the old file. Somebody else who changes files in this folder while a run reads them breaks this.
    unsafe { Mmap::map(&file) }
}
