//! Tokenizer of bytes.

use std::borrow::Cow;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::Tokenizer;
use super::error::TokenizerError;
use super::hub::letters;

/// Tokenizer with one token for each byte of UTF-8; the id is the value of the byte.
#[derive(Debug, Clone, Copy)]
pub struct Bytes;

impl Tokenizer for Bytes {
    fn vocab_size(&self) -> usize {
        256
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError> {
        tokens.extend(text.bytes().map(u32::from));
        Ok(())
    }

    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>> {
        u8::try_from(token).ok().map(|byte| Cow::Owned(vec![byte]))
    }

    fn is_quick(&self) -> bool {
        true
    }

    /// Byte pairs without a merge.
    fn json(&self) -> Option<String> {
        let vocabulary = letters().iter().map(char::to_string).zip(0..).collect::<Vocab>();
        let pairs = BPE::builder().vocab_and_merges(vocabulary, Vec::new()).build().ok()?;
        let mut tokenizer = tokenizers::Tokenizer::new(pairs);
        let byte_level = ByteLevel::new(false, false, false);
        tokenizer.with_pre_tokenizer(Some(byte_level)).with_decoder(Some(byte_level));
        tokenizer.to_string(true).ok()
    }

    fn sha256(&self) -> String {
        crate::files::sha256_hex(b"bytes")
    }
}
