//! Why a text could not be turned into tokens.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a text could not be turned into tokens.
#[derive(Debug, Error)]
pub enum TokenizerError {
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}; check the path, or where PE_ZOO_CACHE points to", path = .path.display())]
    Io {
        /// `read`, `write`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no tokenizer.
    #[error("{path} is no tokenizer.json ({why}): give the file of that name from a model's folder", path = .path.display())]
    NoTokenizer {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        why: String,
    },
    /// A tokenizer that comes with the program does not load.
    #[error("the tokenizer {name} does not load ({why}); this is a mistake of the program")]
    BuiltIn {
        /// Its name.
        name: &'static str,
        /// Why.
        why: String,
    },
    /// A vocabulary size that cannot be.
    #[error("tokenizer.bpe is {size}, must be between {least} and {most}")]
    Size {
        /// What was asked for.
        size: u32,
        /// The smallest, which has one pair of bytes.
        least: u32,
        /// The largest.
        most: u32,
    },
    /// The text has fewer pairs than a vocabulary of this size needs.
    #[error(
        "tokenizer.bpe is {size}, but the training part has pairs for {found} tokens only: ask for at most that, or give more text"
    )]
    TooFewPairs {
        /// What was asked for.
        size: u32,
        /// What there is.
        found: usize,
    },
    /// Learning byte pairs failed.
    #[error("byte pairs could not be learned: {why}")]
    Learn {
        /// What the library said.
        why: String,
    },
    /// A text has no tokens under this tokenizer.
    #[error(
        "a text has no tokens under this tokenizer ({why}): use one that knows all characters of the text"
    )]
    Encode {
        /// What was in the way.
        why: String,
    },
}

impl TokenizerError {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}
