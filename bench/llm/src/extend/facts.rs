//! Facts shared by the tasks that use the model's tokenizer.

use sha2::{Digest, Sha256};

/// Vocabulary size and hash of the tokens of a task.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) vocabulary: usize,
    /// Hash of the data.
    pub(super) sha256: String,
}

impl Facts {
    /// Computes the facts of a task with one text of these tokens. The hash is that of the tokens.
    pub(super) fn of_text<'a>(tokens: impl Iterator<Item = &'a u32>, vocabulary: usize) -> Self {
        let mut hash = Sha256::new();
        for token in tokens {
            hash.update(token.to_le_bytes());
        }
        Self { vocabulary, sha256: records::store::hex(&hash.finalize()) }
    }

    /// Computes the facts of a task with these pieces, in this order. The hash is that of each piece's number of tokens and
    /// its tokens, so that the same tokens in other pieces have another one.
    pub(super) fn of_pieces<'a>(
        pieces: impl Iterator<Item = &'a [u32]>,
        vocabulary: usize,
    ) -> Self {
        let mut hash = Sha256::new();
        for piece in pieces {
            hash.update((piece.len() as u64).to_le_bytes());
            for token in piece {
                hash.update(token.to_le_bytes());
            }
        }
        Self { vocabulary, sha256: records::store::hex(&hash.finalize()) }
    }

    /// Returns the id of a token as text, because only the model's tokenizer knows its text.
    pub(super) fn token_text(&self, token: u32) -> String {
        if (token as usize) < self.vocabulary { format!("<{token}>") } else { "?".to_owned() }
    }
}

/// Defines the methods of `impl Task` that return facts, for a type with a field `facts: Facts`.
macro_rules! stated {
    ($meta:expr, $splits:expr) => {
        fn meta(&self) -> &'static tasks::TaskMeta {
            &$meta
        }

        fn vocab_size(&self) -> usize {
            self.facts.vocabulary
        }

        fn token_text(&self, token: u32) -> String {
            self.facts.token_text(token)
        }

        fn splits(&self) -> &'static [tasks::Split] {
            $splits
        }

        fn data_sha256(&self) -> Option<&str> {
            Some(&self.facts.sha256)
        }
    };
}

pub(super) use stated;
