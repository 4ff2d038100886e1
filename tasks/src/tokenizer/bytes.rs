//! Bytes as tokens.

use std::borrow::Cow;

use super::{Tokenizer, TokenizerError};

/// Each byte of UTF-8 is a token, its value the id.
#[derive(Debug, Clone, Copy)]
pub struct Bytes;

/// All bytes, so that one can be lent.
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
        crate::corpus::sha256_hex(b"bytes")
    }
}
