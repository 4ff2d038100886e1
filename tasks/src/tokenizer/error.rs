//! Errors of tokenizers.

use std::path::PathBuf;

use thiserror::Error;

use crate::files::FileError;

/// Reason why a text could not be converted to tokens.
#[derive(Debug, Error)]
pub enum TokenizerError {
    /// Learned byte pairs could not be stored.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not a tokenizer.
    #[error("cannot use {path} as a tokenizer.json: {why}; use the file of that name from a model's folder", path = .path.display())]
    NotATokenizer {
        /// Path of the file.
        path: PathBuf,
        /// Description of the fault in the file.
        why: String,
    },
    /// A built-in tokenizer does not load.
    #[error("the built-in tokenizer {name} does not load ({why}); this is a bug in pe-zoo")]
    BuiltIn {
        /// Name of the tokenizer.
        name: &'static str,
        /// Error message of the library.
        why: String,
    },
    /// The vocabulary size is out of range.
    #[error("tokenizer.bpe is {size}, must be between {least} and {most}")]
    Size {
        /// Vocabulary size that was requested.
        size: u32,
        /// Least accepted vocabulary size, with one merge.
        least: u32,
        /// Greatest accepted vocabulary size.
        most: u32,
    },
    /// The text has too few pairs for the vocabulary size.
    #[error(
        "tokenizer.bpe is {size}, but the training part has pairs for only {found} tokens: use at most {found}, or a \
         longer text"
    )]
    TooFewPairs {
        /// Vocabulary size that was requested.
        size: u32,
        /// Largest possible vocabulary size.
        found: usize,
    },
    /// Learning byte pairs failed.
    #[error("byte pairs could not be learned: {why}")]
    Learn {
        /// Error message of the library.
        why: String,
    },
    /// The tokenizer cannot represent a text.
    #[error(
        "the tokenizer cannot represent the text ({why}): use one that covers all of its characters"
    )]
    Encode {
        /// The part that cannot be represented.
        why: String,
    },
}
