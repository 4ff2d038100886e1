//! Trait of tokenizers, [`Tokenizer`].

use std::borrow::Cow;
use std::fmt::Debug;

use super::error::TokenizerError;

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
pub(super) fn readable(bytes: &[u8]) -> String {
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
