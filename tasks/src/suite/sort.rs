//! # Sort: write the letters in alphabetical order
//! ## What it asks of an encoding
//! Counting how often each letter occurs and how often it has been written already: sums over the whole sequence, for
//! which order does not matter. The model has to compensate for an encoding that weighs tokens by distance.
//!
//! ## Predicted order
//! NoPE and encodings that can ignore distance (CoPE, T5's bias) before encodings that cannot (ALiBi). Beyond the
//! trained lengths, learned tables last. Over all tasks of Kazemnejad et al. 2023, NoPE is first, then ALiBi, RoPE and
//! learned absolute positions.
//!
//! ## Definition
//! `$ s | r .` with `s` independent and uniform over the first `letters` letters and `r` the letters of `s` in
//! alphabetical order. `r` and the final `.` are scored. `len` counts the letters of `s`: in training its length is
//! uniform in `min_len ..= len`, in evaluation it is exactly `len`. A sequence has `2 len + 3` tokens.
//!
//! Settings: `letters` 5 (2 to 26), `min_len` 1 (shortest training string, in letters). Slice: `length` of `s`.
//! Chance: the probability of the most even counts, `letters^-len * len! / product of their factorials`.
//!
//! ## Sample
//! ```text
//! $ d d c c d c a a | a a c c c d d d .
//!                     ^ ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! DeepMind's `neural_networks_chomsky_hierarchy`, task `bucket_sort` (alphabet of 5, trained up to length 40 and
//! tested from 41 to 100; Deletang et al. 2023, arXiv 2207.02098), here as next-token prediction with a predicted end.
//! The same task is in Kazemnejad et al. 2023 (arXiv 2305.19466).

use std::ops::Range;

use crate::TaskMeta;
use crate::strings::{StringConfig, StringRule};

/// Settings of sort; the defaults are those of the source.
pub type SortConfig = StringConfig<Sort>;

/// Rule of sort: the answer is the string in alphabetical order.
#[derive(Debug, Clone, PartialEq)]
pub struct Sort;

impl StringRule for Sort {
    const META: &'static TaskMeta = &TaskMeta {
        id: "sort",
        label: "Sort",
        len_unit: "symbols",
        summary: "Write the letters of a random string in alphabetical order.",
        source: "Deletang et al. 2023, arXiv 2207.02098",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("sort.rs");
    const LETTERS: u32 = 5;

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, letters: u32) {
        let mut counts = [0_usize; 26];
        for letter in &tokens[string] {
            counts[*letter as usize] += 1;
        }
        for (letter, count) in (0..letters).zip(counts) {
            tokens.extend(std::iter::repeat_n(letter, count));
        }
    }

    fn chance_at(letters: u32, len: usize) -> f64 {
        // Letter by letter, the k-th of each kind in turn, so that no factorial overflows.
        let factor = |k: usize| (k + 1) as f64 / (k / letters as usize + 1) as f64;
        (0..len).map(|k| factor(k) / f64::from(letters)).product()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TaskConfig;
    use crate::testing::Example;
    use crate::testing::strings::{alphabet_is_checked, next, parts, trained_to_a_length};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 ed12209eb4bdeb2e15d60123e39745fffd01ad82299f81959f2a590717a77333";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(SortConfig::default());
        Example::synthetic(config, 12, oracle, GOLDEN)
            .with_chance_config(TaskConfig::from(SortConfig::new(3, 1)), 5)
    }

    /// Sorts the string and returns the letter after those already in the answer.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        let mut sorted = string.to_vec();
        sorted.sort();
        Some(next(&sorted, done))
    }

    #[test]
    fn chance_is_that_of_the_most_even_counts() {
        // aabb, in 6 of 16 orders; aab (or abb), in 3 of 8.
        assert!((Sort::chance_at(2, 4) - 6.0 / 16.0).abs() < 1e-12);
        assert!((Sort::chance_at(2, 3) - 3.0 / 8.0).abs() < 1e-12);
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = SortConfig::new(5, 3);
        trained_to_a_length(&TaskConfig::from(config));
        alphabet_is_checked("sort");
    }
}
