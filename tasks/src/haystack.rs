//! Meaningless filler text with statements hidden in it, shared by retrieval tasks.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::random::below;
use crate::vocabulary::TokenGroup;

/// Words of the filler, the full stop last.
pub(crate) const WORDS: &[&str] = &[
    "the", "tide", "is", "low", "gulls", "are", "loud", "rope", "wet", "a", "bell", "rings", "we",
    "row", "on", ".",
];

/// Token ids of the filler, the first of a retrieval task.
pub(crate) const FILLER: TokenGroup = TokenGroup::Signs(WORDS);

/// Number of filler tokens, which is the first id of a task's own tokens.
pub(crate) const FILLER_TOKENS: u32 = WORDS.len() as u32;

/// "The tide is low. The gulls are loud. The rope is wet. A bell rings. We row on."
const SENTENCES: [u32; 23] =
    [0, 1, 2, 3, 15, 0, 4, 5, 6, 15, 0, 7, 2, 8, 15, 9, 10, 11, 15, 12, 13, 14, 15];

/// Text between the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filler {
    /// Five short sentences repeated: filler that is easy to recognise.
    Sentences,
    /// Fifteen words, independent and uniform: filler that cannot be predicted.
    Words,
}

impl Filler {
    /// Appends a range of the infinite filler.
    fn fill(self, part: Range<usize>, tokens: &mut Vec<u32>, rng: &mut ChaCha8Rng) {
        match self {
            Filler::Sentences => {
                let from = part.start % SENTENCES.len();
                tokens.extend(SENTENCES.iter().cycle().skip(from).take(part.len()));
            }
            Filler::Words => tokens.extend(part.map(|_| below(rng, FILLER_TOKENS - 1))),
        }
    }
}

/// Appends `filler_tokens` tokens of filler with the statements, in their order, at uniformly drawn positions, and
/// returns where each statement is.
pub(crate) fn hide<S: AsRef<[u32]>>(
    statements: &[S],
    filler: Filler,
    filler_tokens: usize,
    tokens: &mut Vec<u32>,
    rng: &mut ChaCha8Rng,
) -> Vec<Hidden> {
    let places = filler_tokens as u32 + 1;
    let mut cuts: Vec<u32> = statements.iter().map(|_| below(rng, places)).collect();
    cuts.sort_unstable();
    hide_at(statements, &cuts, filler, filler_tokens, tokens, rng)
}

/// As [`hide`], at given positions: the number of filler tokens before each statement, in rising order.
pub(crate) fn hide_at<S: AsRef<[u32]>>(
    statements: &[S],
    cuts: &[u32],
    filler: Filler,
    filler_tokens: usize,
    tokens: &mut Vec<u32>,
    rng: &mut ChaCha8Rng,
) -> Vec<Hidden> {
    let places = filler_tokens as u32 + 1;
    let mut filled = 0;
    let mut hidden = Vec::with_capacity(statements.len());
    for (statement, cut) in statements.iter().zip(cuts) {
        filler.fill(filled..*cut as usize, tokens, rng);
        filled = *cut as usize;
        hidden.push(Hidden { start: tokens.len(), tenth: tenth(*cut, places) });
        tokens.extend_from_slice(statement.as_ref());
    }
    filler.fill(filled..filler_tokens, tokens, rng);
    hidden
}

/// Tenth of the filler at a cut, one of so many places.
pub(crate) fn tenth(cut: u32, places: u32) -> u32 {
    (u64::from(cut) * 10 / u64::from(places)) as u32
}

/// Position of a hidden statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Index of its first token.
    pub(crate) start: usize,
    /// Tenth of the filler that contains the needle, 0 (early) to 9 (late).
    pub(crate) tenth: u32,
}

/// Draws `digits` independent decimal digits, where `zero` is the token of 0.
pub(crate) fn draw_digits(zero: u32, digits: u32, rng: &mut ChaCha8Rng) -> Vec<u32> {
    (0..digits).map(|_| zero + below(rng, 10)).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn filler_goes_on_behind_a_statement_where_it_stopped() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for filler_tokens in [0, 1, 50] {
            let mut tokens = Vec::new();
            let statements = [[100, 101], [102, 103]];
            let hidden = hide(&statements, Filler::Sentences, filler_tokens, &mut tokens, &mut rng);
            for (statement, Hidden { start, .. }) in statements.iter().zip(hidden) {
                assert_eq!(tokens[start..start + 2], *statement);
            }
            tokens.retain(|t| *t < 100);
            let plain: Vec<u32> = SENTENCES.iter().copied().cycle().take(filler_tokens).collect();
            assert_eq!(tokens, plain);
        }
    }

    #[test]
    fn places_are_uniform_and_their_tenths_too() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut counts = [[0_u32; 20]; 2];
        for _ in 0..20_000 {
            let mut tokens = Vec::new();
            let hidden = hide(&[[99]], Filler::Words, 19, &mut tokens, &mut rng);
            assert_eq!(tokens.len(), 20);
            counts[0][hidden[0].start] += 1;
            counts[1][hidden[0].tenth as usize] += 1;
        }
        assert!(counts[0].iter().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
        assert!(counts[1][..10].iter().all(|c| c.abs_diff(2000) < 220), "{counts:?}");
    }

    #[test]
    fn random_words_have_no_full_stop_and_all_of_the_rest() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut tokens = Vec::new();
        Filler::Words.fill(0..3000, &mut tokens, &mut rng);
        let seen: std::collections::BTreeSet<u32> = tokens.into_iter().collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..15).collect::<Vec<_>>());
        assert_eq!((WORDS[15], FILLER_TOKENS), (".", 16));
    }
}
