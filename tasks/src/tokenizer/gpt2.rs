//! GPT-2's byte pair tokenizer, from the crate `tiktoken-rs`.

use std::borrow::Cow;

use tiktoken_rs::CoreBPE;

use super::error::TokenizerError;
use super::interface::Tokenizer;
use super::pieces::pieces;

/// GPT-2's tokenizer. `<|endoftext|>` in a text is not a special token.
pub struct Gpt2(CoreBPE);

/// Size of the vocabulary: 50,000 merges, 256 bytes, and `<|endoftext|>` (Radford et al. 2019), which is never
/// produced.
const VOCABULARY: usize = 50_257;

impl std::fmt::Debug for Gpt2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpt2").finish_non_exhaustive()
    }
}

impl Gpt2 {
    /// Loads the built-in merges.
    ///
    /// # Errors
    /// [`TokenizerError::BuiltIn`].
    pub fn new() -> Result<Self, TokenizerError> {
        let failed = |why: String| TokenizerError::BuiltIn { name: "gpt2", why };
        tiktoken_rs::r50k_base().map(Self).map_err(|error| failed(error.to_string()))
    }
}

impl Tokenizer for Gpt2 {
    fn vocab_size(&self) -> usize {
        VOCABULARY
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), TokenizerError> {
        for piece in pieces(text) {
            tokens.extend(self.0.encode_ordinary(piece));
        }
        Ok(())
    }

    fn bytes(&self, token: u32) -> Option<Cow<'_, [u8]>> {
        self.0.decode_bytes(&[token]).ok().map(Cow::Owned)
    }

    fn sha256(&self) -> String {
        crate::hash::sha256_hex(b"gpt2")
    }
}
