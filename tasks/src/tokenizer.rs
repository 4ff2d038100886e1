//! Tokenizers: characters, bytes, GPT-2's tokens, any `tokenizer.json`, or byte pairs learned from the text.

mod bytes;
mod chars;
mod error;
mod gpt2;
mod hub;
mod learned;

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use bytes::Bytes;
pub use chars::Chars;
pub use error::TokenizerError;
pub use gpt2::Gpt2;
pub use hub::{Around, HubTokenizer, around, load};

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

/// Conversion of text to tokens and back.
pub trait Tokenizer: Send + Sync + Debug {
    /// Number of token ids; every token is below it.
    fn vocab_size(&self) -> usize;

    /// Appends the tokens of a text.
    ///
    /// # Errors
    /// [`TokenizerError::Encode`] for a text that cannot be represented.
    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError>;

    /// Returns the bytes of a token; `None` if they depend on the position, and for ids outside the vocabulary.
    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>>;

    /// Display text of tokens; incomplete characters are shown as bytes.
    fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<Cow<'_, [u8]>> =
            tokens.iter().map(|token| self.bytes(*token).unwrap_or(Cow::Borrowed(b"?"))).collect();
        readable(&bytes.concat())
    }

    /// Whether encoding again is cheaper than storing the tokens on disk.
    fn is_quick(&self) -> bool {
        false
    }

    /// Text of its `tokenizer.json`; `None` for tokenizers that have no such form.
    fn json(&self) -> Option<String> {
        None
    }

    /// Hash of everything that the tokens of a text depend on.
    fn sha256(&self) -> String;
}

/// Formats bytes as text; invalid UTF-8 is written as `<0xE2>`.
fn readable(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "<0x{byte:02X}>");
        }
    }
    text
}

#[cfg(test)]
mod tests;
