//! Text files of users, file errors that name their path, atomic replacement of files, and hashes.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Failure of an operation on a file or folder.
#[derive(Debug, Error)]
#[error("cannot {action} {path}: {cause}{help}", path = .path.display())]
pub struct FileError {
    /// The operation, such as `read`.
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// Error of the operating system. It is part of the message and therefore not a `source`.
    pub cause: std::io::Error,
    /// Advice at the end of the message, with its separator; may be empty.
    pub help: &'static str,
}

/// Advice for files below the cache folder.
const CACHE_HELP: &str =
    "; free space on the disk, or set PE_ZOO_CACHE to a folder that can be written";

/// Advice about a program that wrote to the cache folder, if its output says that the disk is full.
pub fn help_if_full(output: &str) -> Option<&'static str> {
    // The texts of Linux, macOS and Windows; cargo adds the number.
    let says = ["No space left on device", "Disk quota exceeded", "not enough space on the disk"];
    says.iter().any(|text| output.contains(text)).then(|| CACHE_HELP.trim_start_matches("; "))
}

impl FileError {
    /// Returns a function that wraps an error of the operating system, for `map_err`.
    pub fn of(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |cause| Self { action, path: path.to_path_buf(), cause, help: "" }
    }

    /// Adds the advice for files below the cache folder.
    pub(crate) fn in_cache(self) -> Self {
        Self { help: CACHE_HELP, ..self }
    }
}

/// Byte-order mark, with which editors on Windows begin a file.
const MARK: char = '\u{feff}';

/// Text of the bytes of a file, without the byte-order marks at its beginning: a mark is no character of the text.
///
/// # Errors
/// Why the bytes are no UTF-8, with the remedy.
pub(crate) fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    if is_utf_16(&bytes) {
        return Err("it is UTF-16; save the file as UTF-8".to_owned());
    }
    String::from_utf8(bytes).map(without_marks).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        format!("it is not UTF-8 from byte {offset} on; save the file as UTF-8")
    })
}

/// Whether a text is UTF-16: it begins with a mark, or with letters of which every second byte is 0, which would be read as
/// UTF-8.
fn is_utf_16(bytes: &[u8]) -> bool {
    let units = &bytes.as_chunks::<2>().0;
    let units = &units[..units.len().min(16)];
    let all = |is: fn(&[u8; 2]) -> bool| !units.is_empty() && units.iter().all(is);
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])
        || all(|[first, second]| *first != 0 && *second == 0)
        || all(|[first, second]| *first == 0 && *second != 0)
}

/// Returns a text without the byte-order marks at its beginning.
pub fn without_mark(text: &str) -> &str {
    text.trim_start_matches(MARK)
}

/// Text without the byte-order marks at its beginning.
pub(crate) fn without_marks(mut text: String) -> String {
    let marks = text.len() - without_mark(&text).len();
    text.drain(..marks);
    text
}

/// Reads a text file in UTF-8, without a byte-order mark at its beginning.
///
/// # Errors
/// [`FileError`] if the file cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let failed = FileError::of("read", path);
    let bytes = std::fs::read(path).map_err(failed)?;
    text_of(bytes)
        .map_err(|reason| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, reason)))
}

/// Lines of JSON Lines that are not blank, with their numbers from 1. The byte-order mark of a file that was appended to
/// another is left out.
pub fn json_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(|line| line.trim_start_matches(MARK)));
    lines.filter(|(_, line)| !line.trim().is_empty())
}

/// Writes a file of a folder.
///
/// # Errors
/// [`FileError`], with the path of the file.
pub fn write_in(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), FileError> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).map_err(FileError::of("write", &path))
}

/// Treats the absence of a file or folder that was to be removed or moved as success.
///
/// # Errors
/// Every other failure.
pub fn unless_absent(done: std::io::Result<()>) -> std::io::Result<()> {
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Writes a file of the cache folder in one step: under a temporary name first, then renamed. Creates missing folders.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .map_err(FileError::of("create the folder", folder))
        .map_err(FileError::in_cache)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.{number}", std::process::id()));
    let written =
        std::fs::write(&temporary, bytes).map_err(FileError::of("write", &temporary)).and_then(
            |()| std::fs::rename(&temporary, path).map_err(FileError::of("rename a file to", path)),
        );
    if written.is_err() {
        // A partial file is useless, and a failure to remove it must not hide the first error.
        let _ = std::fs::remove_file(&temporary);
    }
    written.map_err(FileError::in_cache)
}

/// Returns the SHA-256 of some bytes in lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Formats bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::sha256_hex;

    #[test]
    fn hash_is_the_standard_one() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), expected);
    }
}
