//! GPT-2's byte pair tokenizer, from the crate `tiktoken-rs`.

use std::borrow::Cow;

use tiktoken_rs::CoreBPE;

use super::Tokenizer;
use super::error::TokenizerError;

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
        crate::files::sha256_hex(b"gpt2")
    }
}

/// Least size of a piece in bytes, except for the last.
const LEAST: usize = 1 << 20;

/// Divides a text after line breaks between two characters other than white space.
///
/// The usual pre-tokenizers (GPT-2's and its successors) split there too, so the tokens are those of the whole text. A
/// text without such a place stays whole.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = end_of_piece(text) else { return rest.take() };
        let (piece, behind) = text.split_at(end);
        rest = Some(behind);
        Some(piece)
    })
}

fn end_of_piece(text: &str) -> Option<usize> {
    let from = text.ceil_char_boundary(LEAST);
    let breaks = text.get(from..)?.match_indices('\n').map(|(at, _)| from + at);
    let is_dark = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    breaks
        .filter(|at| is_dark(text[..*at].chars().next_back()))
        .map(|at| at + 1)
        .find(|at| is_dark(text[*at..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text_and_are_cut_only_between_dark_characters() {
        let text = "word\nword\n\n  word \nü\n".repeat(200_000);
        let cut: Vec<&str> = pieces(&text).collect();
        assert!(cut.len() > 2 && cut.concat() == text);
        for pair in cut.windows(2) {
            assert!(pair[0].len() >= LEAST && pair[0].ends_with("d\n") || pair[0].ends_with("ü\n"));
            assert!(!pair[1].starts_with(char::is_whitespace));
        }
        let endless = "x".repeat(3 * LEAST);
        assert_eq!(pieces(&endless).count(), 1);
        assert_eq!(pieces("").count(), 0);
    }
}
