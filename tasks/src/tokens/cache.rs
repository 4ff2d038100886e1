//! Tokens found in the cache folder, or made and kept there.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::encode::{Span, encode};
use super::{Tokens, file, replace_file};
use crate::data::{Borders, Parts};
use crate::tokenizer::{Tokenizer, TokenizerError};

/// Texts up to this size, in bytes, are encoded anew by quick tokenizers each time, which takes less than looking.
const SMALL: usize = 16 << 20;

/// Why tokens could not be had.
#[derive(Debug, Error)]
pub enum CacheError {
    /// The text has no tokens.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The cache folder cannot be written.
    #[error(
        "cannot {action} {path}: {source}; tokens are kept there: make room, or let PE_ZOO_CACHE name another folder",
        path = .path.display()
    )]
    Io {
        /// What failed.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was written reads back differently.
    #[error(
        "{path} was written and reads back damaged ({why}): check the disk, or let PE_ZOO_CACHE name another folder",
        path = .path.display()
    )]
    ReadBack {
        /// The file, which is removed.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Where tokens came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Made now and kept in memory.
    Memory,
    /// Made now and kept in this file.
    Made(PathBuf),
    /// Found in this file.
    Reused(PathBuf),
    /// This file was damaged, as `why` says, and has been made again.
    Repaired {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        why: String,
    },
}

/// Tokens with their documents.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) tokens: Tokens,
    pub(crate) spans: Vec<Span>,
    pub(crate) exact: bool,
    pub(crate) origin: Origin,
}

/// Finds the tokens of these texts in the folder `cache`, or makes and keeps them.
pub(crate) fn open_or_encode(
    parts: &Parts,
    borders: Borders,
    tokenizer: &dyn Tokenizer,
    cache: &Path,
) -> Result<Found, CacheError> {
    if tokenizer.is_quick() && parts.bytes() <= SMALL {
        let encoded = encode(parts, tokenizer)?;
        let tokens = Tokens::Memory(encoded.tokens);
        let (spans, exact) = (encoded.spans, encoded.exact);
        return Ok(Found { tokens, spans, exact, origin: Origin::Memory });
    }
    let key = key(parts, borders, tokenizer);
    let path = cache.join("tokens").join(format!("{}.tok", &crate::corpus::hex(&key)[..32]));
    let was_there = path.exists();
    let found = |origin| {
        let (mapped, spans, exact) = file::open(&path, tokenizer.vocab_size(), key)?;
        Ok(Found { tokens: Tokens::Mapped(mapped), spans, exact, origin })
    };
    let why = match found(Origin::Reused(path.clone())) {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    let bytes = file::to_bytes(&encode(parts, tokenizer)?, tokenizer.vocab_size(), key);
    replace_file(&path, &bytes).map_err(|(action, path, source)| CacheError::Io {
        action,
        path,
        source,
    })?;
    drop(bytes);
    let origin = if was_there {
        Origin::Repaired { path: path.clone(), why }
    } else {
        Origin::Made(path.clone())
    };
    found(origin).map_err(|why: String| {
        // Nothing good can come of it; a failure to remove it must not hide the first.
        let _ = std::fs::remove_file(&path);
        CacheError::ReadBack { path: path.clone(), why }
    })
}

/// What the tokens depend on.
fn key(parts: &Parts, borders: Borders, tokenizer: &dyn Tokenizer) -> [u8; 32] {
    let of = format!("{}\n{borders:?}\n{}\n{}", file::VERSION, parts.sha256, tokenizer.sha256());
    Sha256::digest(of).into()
}
