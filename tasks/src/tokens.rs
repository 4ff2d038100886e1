//! Tokens of texts, in memory or mapped from a file in the cache folder.
//!
//! A cached file is named by the hash of text, borders, tokenizer and format version. It is written under a temporary
//! name, moved into place in one step and read back; hashes detect a damaged file, which is then made again. Files
//! never change once they are in place, so several processes can map one.

mod file;
mod map;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

pub(crate) use file::TokenStore;

use crate::data::{Borders, Part, Parts};
use crate::files::{FileError, hex, replace_file};
use crate::tokenizer::{Tokenizer, TokenizerError};

/// Size in bytes up to which quick tokenizers encode a text each time, which is faster than the cache.
const SMALL: usize = 16 << 20;

/// Reason why tokens are not available.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The tokenizer cannot represent the text.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The tokens could not be stored.
    #[error(transparent)]
    File(#[from] FileError),
    /// The stored tokens differ from the computed ones.
    #[error("{path} was damaged while it was written ({why}): check the disk, or set PE_ZOO_CACHE to another folder", path = .path.display())]
    ReadBack {
        /// The file, which has been removed.
        path: PathBuf,
        /// Description of the observed fault.
        why: String,
    },
}

/// Origin of the tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Computed and held in memory.
    Memory,
    /// Computed and stored in this file.
    Made(PathBuf),
    /// Read from this file.
    Reused(PathBuf),
    /// Computed and stored again, because this file was damaged.
    Repaired {
        /// Path of the file.
        path: PathBuf,
        /// The fault of the file.
        why: String,
    },
}

/// Tokens with their documents and origin.
#[derive(Debug)]
pub(crate) struct LoadedTokens {
    pub(crate) tokens: TokenStore,
    pub(crate) spans: Vec<Span>,
    pub(crate) exact: bool,
    pub(crate) origin: Origin,
}

/// Opens the tokens of these texts in the folder `cache`, or computes and stores them.
pub(crate) fn open_or_encode(
    parts: &Parts,
    borders: Borders,
    tokenizer: &dyn Tokenizer,
    cache: &Path,
) -> Result<LoadedTokens, CacheError> {
    if tokenizer.is_quick() && parts.bytes() <= SMALL {
        let encoded = encode(parts, tokenizer)?;
        let tokens = TokenStore::Memory(encoded.tokens);
        let (spans, exact) = (encoded.spans, encoded.exact);
        return Ok(LoadedTokens { tokens, spans, exact, origin: Origin::Memory });
    }
    let key = key(parts, borders, tokenizer);
    let path = cache.join("tokens").join(format!("{}.tok", &hex(&key)[..32]));
    let was_there = path.exists();
    let found = |origin| {
        let (mapped, spans, exact) = file::open(&path, tokenizer.vocab_size(), key)?;
        Ok(LoadedTokens { tokens: TokenStore::Mapped(mapped), spans, exact, origin })
    };
    let why = match found(Origin::Reused(path.clone())) {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    let bytes = file::to_bytes(&encode(parts, tokenizer)?, tokenizer.vocab_size(), key);
    replace_file(&path, &bytes)?;
    drop(bytes);
    let origin = if was_there {
        Origin::Repaired { path: path.clone(), why }
    } else {
        Origin::Made(path.clone())
    };
    found(origin).map_err(|why: String| {
        // A failure to remove the useless file must not hide the first error.
        let _ = std::fs::remove_file(&path);
        CacheError::ReadBack { path: path.clone(), why }
    })
}

/// Hash of everything that the tokens depend on.
fn key(parts: &Parts, borders: Borders, tokenizer: &dyn Tokenizer) -> [u8; 32] {
    let of = format!("{}\n{borders:?}\n{}\n{}", file::VERSION, parts.sha256, tokenizer.sha256());
    Sha256::digest(of).into()
}

/// Range of one document among the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Part of the document.
    pub(crate) part: Part,
    /// End of the document; it starts at the end of the previous one.
    pub(crate) end: usize,
    /// Size of its text in bytes.
    pub(crate) bytes: usize,
}

/// Concatenated tokens of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) tokens: Vec<u32>,
    pub(crate) spans: Vec<Span>,
    /// Whether the bytes of the tokens add up to the text, document by document.
    pub(crate) exact: bool,
}

/// Encodes all documents.
fn encode(parts: &Parts, tokenizer: &dyn Tokenizer) -> Result<Encoded, TokenizerError> {
    let sizes = sizes(tokenizer);
    let mut all = Encoded { tokens: Vec::new(), spans: Vec::new(), exact: sizes.is_some() };
    for (part, document) in &parts.documents {
        let start = all.tokens.len();
        tokenizer.encode(&document.text, &mut all.tokens)?;
        let bytes = document.text.len();
        if let Some(sizes) = &sizes {
            let sum: usize = all.tokens[start..].iter().map(|t| sizes[*t as usize] as usize).sum();
            all.exact &= sum == bytes;
        }
        all.spans.push(Span { part: *part, end: all.tokens.len(), bytes });
    }
    Ok(all)
}

/// Sizes of all tokens in bytes, if they do not depend on the position.
pub(crate) fn sizes(tokenizer: &dyn Tokenizer) -> Option<Vec<u32>> {
    let ids = 0..tokenizer.vocab_size() as u32;
    ids.map(|token| tokenizer.bytes(token).map(|bytes| bytes.len() as u32)).collect()
}

#[cfg(test)]
mod tests;
