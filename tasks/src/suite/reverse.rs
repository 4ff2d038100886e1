//! # Reverse: write the string backwards
//! ## What it asks of an encoding
//! Looking back by a distance that grows by two with every letter of the answer. With a small alphabet content does not
//! help, so letters must be found by position alone. Beyond the trained lengths these positions never occurred in
//! training.
//!
//! ## Predicted order
//! Within the trained lengths: RoPE, relative and learned tables before NoPE. Beyond them all encodings degrade
//! quickly. Encodings whose positions all occurred in training degrade least (randomised positions, which lead in Ruoss
//! et al. 2023), then NoPE and ALiBi before RoPE before learned tables.
//!
//! ## Definition
//! `$ s | r .` with `s` independent and uniform over the first `letters` letters and `r` the letters of `s` from the
//! last to the first. `r` and the final `.` are scored. `len` counts the letters of `s`: in training its length is
//! uniform in `min_len ..= len`, in evaluation it is exactly `len`. A sequence has `2 len + 3` tokens.
//!
//! Settings: `letters` 2 (2 to 26), `min_len` 1 (shortest training string, in letters). Slice: `length` of `s`.
//! Chance: `letters` to the power of minus `len`.
//!
//! ## Sample
//! ```text
//! $ b b a b b b a a | a a b b b a b b .
//!                     ^ ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! DeepMind's `neural_networks_chomsky_hierarchy`, task `reverse_string` (binary, trained up to length 40 and tested
//! from 41 to 100; Deletang et al. 2023, arXiv 2207.02098), here as next-token prediction with a predicted end. The
//! same task is in Kazemnejad et al. 2023 (arXiv 2305.19466).

use std::ops::Range;

use crate::TaskMeta;
use crate::strings::{StringConfig, StringRule};

/// Settings of reverse; the defaults are those of the source.
pub type ReverseConfig = StringConfig<Reverse>;

/// Rule of reverse: the answer is the string, last letter first.
#[derive(Debug, Clone, PartialEq)]
pub struct Reverse;

impl StringRule for Reverse {
    const META: &'static TaskMeta = &TaskMeta {
        id: "reverse",
        label: "Reverse",
        len_unit: "symbols",
        summary: "Write a random string backwards.",
        source: "Deletang et al. 2023, arXiv 2207.02098",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("reverse.rs");
    const LETTERS: u32 = 2;

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, _letters: u32) {
        let start = tokens.len();
        tokens.extend_from_within(string);
        tokens[start..].reverse();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TaskConfig;
    use crate::testing::Example;
    use crate::testing::strings::{alphabet_is_checked, next, parts, trained_to_a_length};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 3021a2d5a97d687924c164ff25997051f66e5d4cb9617ce6f8a9caff2ef8b538";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(ReverseConfig::default());
        Example::synthetic(config, 12, oracle, GOLDEN)
            .with_chance_config(TaskConfig::from(ReverseConfig::new(3, 1)), 3)
    }

    /// Returns the letter counted from the end of the string.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        let backwards: Vec<String> = string.iter().rev().cloned().collect();
        Some(next(&backwards, done))
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = ReverseConfig::new(2, 3);
        trained_to_a_length(&TaskConfig::from(config));
        alphabet_is_checked("reverse");
    }
}
