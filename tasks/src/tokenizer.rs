//! Texts as integers: characters, bytes, GPT-2's tokens, any `tokenizer.json`, or byte pairs learned from the text.

mod bytes;
mod chars;
mod error;
mod gpt2;
mod hub;
mod learned;
mod pairs;
mod pieces;

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use bytes::Bytes;
pub use chars::Chars;
pub use error::TokenizerError;
pub use gpt2::Gpt2;
pub use hub::{HubTokenizer, load};

use crate::data::Parts;

/// Which tokenizer turns a text into tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenizerConfig {
    /// Each character is a token: those of the text, numbered in their order in Unicode.
    #[default]
    Chars,
    /// Each byte of UTF-8 is a token; 256 of them, whatever the text.
    Bytes,
    /// GPT-2's 50,257 tokens.
    Gpt2,
    /// A `tokenizer.json` in the format of HuggingFace's `tokenizers`. Special tokens are not added.
    File(PathBuf),
    /// Byte pairs learned from the training part, so many tokens in all, the 256 bytes among them.
    Bpe(u32),
}

/// A text as tokens and back.
pub trait Tokenizer: Send + Sync + Debug {
    /// Number of token ids; all tokens are below it.
    fn vocab_size(&self) -> usize;

    /// Appends the tokens of a text.
    ///
    /// # Errors
    /// [`TokenizerError::Encode`] for a text that has no tokens here.
    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError>;

    /// The bytes that a token always stands for; `None` if these depend on its place, and for ids outside the
    /// vocabulary.
    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>>;

    /// The text of tokens, for people: what is no whole character is shown as bytes.
    fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<Cow<'_, [u8]>> =
            tokens.iter().map(|token| self.bytes(*token).unwrap_or(Cow::Borrowed(b"?"))).collect();
        readable(&bytes.concat())
    }

    /// Whether encoding again is cheaper than keeping the tokens on disk.
    fn is_quick(&self) -> bool {
        false
    }

    /// Hash of everything that tokens depend on.
    fn sha256(&self) -> String;
}

/// A tokenizer, and what the user should be told about how it was had.
pub(crate) type Built = (Arc<dyn Tokenizer>, Option<String>);

impl TokenizerConfig {
    /// Makes the tokenizer for these texts; what has to be learned is kept in `cache`.
    ///
    /// # Errors
    /// [`TokenizerError`].
    pub(crate) fn build(&self, parts: &Parts, cache: &Path) -> Result<Built, TokenizerError> {
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

/// Bytes as text; what is not UTF-8 is spelled out as `<0xE2>`.
pub(crate) fn readable(bytes: &[u8]) -> String {
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
