//! Tokenizers: characters, bytes, GPT-2's tokens, any `tokenizer.json`, or byte pairs learned from the text.

mod bytes;
mod chars;
mod error;
mod gpt2;
mod hub;
mod interface;
mod learned;
mod pieces;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use bytes::Bytes;
pub use chars::Chars;
pub use error::TokenizerError;
pub use gpt2::Gpt2;
pub use hub::{Around, HubTokenizer, around, load};
pub use interface::Tokenizer;

use crate::data::Parts;

/// Choice of a tokenizer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenizerConfig {
    /// One token for each character of the text, in Unicode order.
    #[default]
    Chars,
    /// One token for each byte of UTF-8; 256 of them for every text.
    Bytes,
    /// The 50,257 tokens of GPT-2.
    Gpt2,
    /// A `tokenizer.json` in the format of HuggingFace's `tokenizers`. Special tokens are not added.
    File(PathBuf),
    /// Byte pairs learned from the training part, with this vocabulary size, the 256 bytes included.
    Bpe(u32),
}

/// Tokenizer with a note to the user about how it was obtained.
pub(crate) type WithNote = (Arc<dyn Tokenizer>, Option<String>);

impl TokenizerConfig {
    /// Builds the tokenizer for these texts; learned byte pairs are stored in `cache`.
    ///
    /// # Errors
    /// [`TokenizerError`].
    pub(crate) fn build(&self, parts: &Parts, cache: &Path) -> Result<WithNote, TokenizerError> {
        let tokenizer: Arc<dyn Tokenizer> = match self {
            Self::Chars => {
                let texts = parts.documents.iter().map(|(_, document)| document.text.as_str());
                Arc::new(Chars::of(texts))
            }
            Self::Bytes => Arc::new(Bytes),
            Self::Gpt2 => Arc::new(Gpt2::new()?),
            Self::File(path) => Arc::new(HubTokenizer::read(path)?),
            Self::Bpe(size) => {
                let (learned, note) = learned::learned(parts, *size, cache)?;
                return Ok((Arc::new(learned), note));
            }
        };
        Ok((tokenizer, None))
    }
}

#[cfg(test)]
mod tests;
