//! # Duplicate string: repeat the string twice
//! ## What it asks of an encoding
//! The same as string copy, twice. In the second round every letter occurs at two earlier positions, one and two string
//! lengths back. Looking back by the length of the string must still work when the answer is longer than the string.
//!
//! ## Predicted order
//! As in string copy, with larger differences, since sequences are longer by half. Beyond the trained lengths:
//! encodings with unbounded distances (ALiBi, NoPE) before RoPE before learned tables. In Ruoss et al. 2023 randomised
//! positions lead.
//!
//! ## Definition
//! `$ s | s s .` with `s` independent and uniform over the first `letters` letters. Everything after `|` is scored.
//! `len` counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in evaluation it is
//! exactly `len`. A sequence has `3 len + 3` tokens.
//!
//! Settings: `letters` 2 (2 to 26), `min_len` 1 (shortest training string, in letters). Slice: `length` of `s`.
//! Chance: `letters` to the power of minus `len`.
//!
//! ## Sample
//! ```text
//! $ b b a b b b | b b a b b b b b a b b b .
//!                 ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! DeepMind's `neural_networks_chomsky_hierarchy`, task `duplicate_string` (binary, no separator between the rounds,
//! trained up to length 40 and tested from 41 to 100; Deletang et al. 2023, arXiv 2207.02098), here as next-token
//! prediction with a predicted end.

use std::ops::Range;

use crate::TaskMeta;
use crate::strings::{StringConfig, StringRule};

/// Settings of string duplication; the defaults are those of the source.
pub type DuplicateStringConfig = StringConfig<DuplicateString>;

/// Rule of string duplication: the answer is the string, twice.
#[derive(Debug, Clone, PartialEq)]
pub struct DuplicateString;

impl StringRule for DuplicateString {
    const META: &'static TaskMeta = &TaskMeta {
        id: "duplicate-string",
        label: "Duplicate string",
        len_unit: "symbols",
        summary: "Repeat a random string twice.",
        source: "Deletang et al. 2023, arXiv 2207.02098",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("duplicate_string.rs");
    const LETTERS: u32 = 2;

    fn answer_len(len: usize) -> usize {
        len.saturating_mul(2)
    }

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, _letters: u32) {
        tokens.extend_from_within(string.clone());
        tokens.extend_from_within(string);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TaskConfig;
    use crate::testing::Example;
    use crate::testing::strings::{alphabet_is_checked, next, parts, trained_to_a_length};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 ea24a7b50cd9dfaccada8349bd6d9e8e0360b1db380541ce2e2482a39c95cd97";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(DuplicateStringConfig::default());
        Example::synthetic(config, 8, oracle, GOLDEN)
            .with_chance_config(TaskConfig::from(DuplicateStringConfig::new(3, 1)), 3)
    }

    /// Returns the letter at the same position of the string, which is repeated twice.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        Some(next(&[string, string].concat(), done))
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = DuplicateStringConfig::new(2, 3);
        trained_to_a_length(&TaskConfig::from(config));
        alphabet_is_checked("duplicate-string");
    }
}
