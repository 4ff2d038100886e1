//! Tokenizers in the format of HuggingFace's `tokenizers`.

use std::borrow::Cow;
use std::path::Path;

use super::pieces::pieces;
use super::{Tokenizer, TokenizerError};
use crate::caught::caught;
use crate::corpus::sha256_hex;

/// A tokenizer read from a `tokenizer.json`.
pub struct HubTokenizer {
    tokenizer: tokenizers::Tokenizer,
    /// Bytes of each token; `None` if some token does not stand for fixed bytes.
    bytes: Option<Vec<Vec<u8>>>,
    vocabulary: usize,
    sha256: String,
}

impl std::fmt::Debug for HubTokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubTokenizer").field("vocab_size", &self.vocabulary).finish_non_exhaustive()
    }
}

impl HubTokenizer {
    /// Reads a file.
    ///
    /// # Errors
    /// [`TokenizerError::Io`] or [`TokenizerError::NoTokenizer`].
    pub fn read(path: &Path) -> Result<Self, TokenizerError> {
        let json = std::fs::read(path).map_err(|e| TokenizerError::io("read", path, e))?;
        Self::from_json(&json).map_err(|why| TokenizerError::NoTokenizer { path: path.into(), why })
    }

    /// Reads the text of a `tokenizer.json`; the error says what is wrong with it.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, String> {
        // First as plain JSON, which tells where a file is broken.
        serde_json::from_slice::<serde::de::IgnoredAny>(json).map_err(|error| error.to_string())?;
        let mut tokenizer =
            caught(|| tokenizers::Tokenizer::from_bytes(json).map_err(|error| error.to_string()))?;
        // Both are for batches of short texts, and would change what a text is made of.
        tokenizer.with_truncation(None).map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        let highest = tokenizer.get_vocab(true).into_values().max();
        let vocabulary = highest.ok_or("its vocabulary is empty")? as usize + 1;
        let bytes = byte_level(&tokenizer, vocabulary);
        Ok(Self { tokenizer, bytes, vocabulary, sha256: sha256_hex(json) })
    }

    pub(super) fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}

/// The bytes of all tokens of a byte-level tokenizer. Added tokens stand for their own text.
fn byte_level(tokenizer: &tokenizers::Tokenizer, vocabulary: usize) -> Option<Vec<Vec<u8>>> {
    let added = tokenizer.get_added_tokens_decoder();
    let letters = letters();
    let of_letters = |text: &str| -> Option<Vec<u8>> {
        text.chars().map(|c| letters.iter().position(|l| *l == c).map(|byte| byte as u8)).collect()
    };
    let bytes = (0..vocabulary as u32).map(|id| match added.get(&id) {
        Some(token) => Some(token.content.clone().into_bytes()),
        // Ids that the file leaves out are never produced.
        None => tokenizer.id_to_token(id).map_or(Some(Vec::new()), |text| of_letters(&text)),
    });
    bytes.collect()
}

/// The letter by which byte-level tokenizers write each byte: itself if it is visible, otherwise the next letter
/// from U+0100 on (`bytes_to_unicode` of GPT-2's `encoder.py`).
fn letters() -> [char; 256] {
    let mut hidden = 0x100..;
    std::array::from_fn(|byte| {
        let visible = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if visible { Some(byte as u32) } else { hidden.next() };
        code.and_then(char::from_u32).unwrap_or('?')
    })
}

impl Tokenizer for HubTokenizer {
    fn vocab_size(&self) -> usize {
        self.vocabulary
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError> {
        for piece in pieces(text) {
            let encoded = self.tokenizer.encode_fast(piece, false);
            let encoded = encoded.map_err(|e| TokenizerError::Encode { why: e.to_string() })?;
            tokens.extend(encoded.get_ids());
        }
        Ok(())
    }

    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>> {
        let bytes = self.bytes.as_ref()?.get(token as usize)?;
        Some(Cow::Borrowed(bytes))
    }

    fn decode(&self, tokens: &[u32]) -> String {
        match &self.bytes {
            Some(all) => {
                let of = |token: &u32| all.get(*token as usize).map_or(&b"?"[..], Vec::as_slice);
                super::readable(&tokens.iter().map(of).collect::<Vec<_>>().concat())
            }
            None => self.tokenizer.decode(tokens, false).unwrap_or_else(|_| "?".to_owned()),
        }
    }

    fn sha256(&self) -> String {
        self.sha256.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_library() {
        let ours: std::collections::BTreeSet<char> = letters().into();
        let theirs = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        assert_eq!(ours, theirs.into_iter().collect());
        // Space and line break, as every byte-level vocabulary shows them.
        assert_eq!((letters()[0x20], letters()[0x0a], letters()[0xad]), ('Ġ', 'Ċ', 'Ń'));
    }
}
