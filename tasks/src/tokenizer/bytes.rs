//! Tokenizer of bytes.

use std::borrow::Cow;

use super::error::TokenizerError;
use super::interface::Tokenizer;

/// Tokenizer with one token for each byte of UTF-8; the id is the value of the byte.
#[derive(Debug, Clone, Copy)]
pub struct Bytes;

/// All bytes, to return references to them.
const ALL: [u8; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        all[byte] = byte as u8;
        byte += 1;
    }
    all
};

impl Tokenizer for Bytes {
    fn vocab_size(&self) -> usize {
        ALL.len()
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError> {
        tokens.extend(text.bytes().map(u32::from));
        Ok(())
    }

    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>> {
        let token = token as usize;
        ALL.get(token..=token).map(Cow::Borrowed)
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn sha256(&self) -> String {
        crate::hash::sha256_hex(b"bytes")
    }
}
