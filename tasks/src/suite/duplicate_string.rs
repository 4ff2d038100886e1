//! # Duplicate string: say it twice
//! ## What it asks of an encoding
//! What string copy asks, and then again: in the second round every letter stands at two places before, one length and
//! two lengths back. Looking back by the length must go on working when the answer outgrows the question.
//!
//! ## Predicted order
//! As in string copy, and steeper, since the sequences are half as long again: encodings of distance without end
//! (ALiBi, NoPE) before RoPE before learned tables beyond the trained lengths; randomised positions lead in Ruoss et
//! al. 2023.
//!
//! ## Definition
//! `$ s | s s .` with `s` independent and uniform over the first `letters` letters. Everything behind `|` is scored.
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
//! trained to 40 and tested from 41 to 100; Deletang et al. 2023, arXiv 2207.02098), here as next-token prediction
//! with an end that is asked for.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::generator::Generated;
use crate::strings::{StringRule, Strings, uniform_chance};
use crate::{Headline, TaskError, TaskMeta};

/// What is true of string duplication whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "duplicate-string",
    label: "Duplicate string",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "symbols",
    summary: "Repeat a random string twice.",
    source: "Deletang et al. 2023, arXiv 2207.02098",
    takes_path: false,
};

/// Settings; the defaults are those of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DuplicateStringConfig {
    /// Size of the alphabet, 2 to 26.
    pub letters: u32,
    /// Shortest string in training, in letters.
    pub min_len: usize,
}

impl Default for DuplicateStringConfig {
    fn default() -> Self {
        Self { letters: 2, min_len: 1 }
    }
}

impl DuplicateStringConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<Strings<DuplicateString>>, TaskError> {
        Strings::build(self.letters, self.min_len)
    }
}

/// The answer is the string, twice.
#[derive(Debug, Clone)]
pub struct DuplicateString;

impl StringRule for DuplicateString {
    const META: &'static TaskMeta = &META;

    fn answer_len(len: usize) -> usize {
        len.saturating_mul(2)
    }

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, _letters: u32) {
        tokens.extend_from_within(string.clone());
        tokens.extend_from_within(string);
    }

    fn chance_at(letters: u32, len: usize) -> f64 {
        uniform_chance(letters, len)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TaskConfig;
    use crate::strings::testing::{alphabet_is_checked, next, parts, trained_to_a_length};
    use crate::testing::Example;

    /// Of `checks::golden`: version and hash.
    const GOLDEN: &str = "v1 ea24a7b50cd9dfaccada8349bd6d9e8e0360b1db380541ce2e2482a39c95cd97";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::DuplicateString(DuplicateStringConfig::default());
        Example::synthetic(config, 8, oracle, GOLDEN).with_chance_config(
            TaskConfig::DuplicateString(DuplicateStringConfig { letters: 3, min_len: 1 }),
            3,
        )
    }

    /// Looks up the letter at the same place of the string, which is walked through twice.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        Some(next(&[string, string].concat(), done))
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = DuplicateStringConfig { min_len: 3, ..DuplicateStringConfig::default() };
        trained_to_a_length(&TaskConfig::DuplicateString(config));
        alphabet_is_checked(META.id);
    }
}
