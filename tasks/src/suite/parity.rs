//! # Parity: whether the number of b's is even
//! ## What it asks of an encoding
//! Counting without error over the whole string: changing any one letter changes the answer. Positions do not matter
//! but every letter does, so attention has to weigh all letters equally.
//!
//! ## Predicted order
//! No order: in theory (Hahn 2020) and experiment (Deletang et al. 2023) transformers are at chance beyond the trained
//! lengths, with any encoding. If one encoding is clearly better than the others, check the result for an error.
//!
//! ## Definition
//! `$ s | p .` with `s` independent and uniform over `a` and `b`, and `p` one letter: `a` if `s` has an even number of
//! `b`, otherwise `b`. `p` and the final `.` are scored. `len` counts the letters of `s`: in training its length
//! is uniform in `min_len ..= len`, in evaluation it is exactly `len`. A sequence has `len + 4` tokens.
//!
//! Setting: `min_len` 1 (shortest training string, in letters). Slice: `length` of `s`. Chance: one half.
//!
//! ## Sample
//! ```text
//! $ b b a b b b a a b b b a b b b a b b a a | b .
//!                                             ^ ^
//! ```
//!
//! ## Source
//! DeepMind's `neural_networks_chomsky_hierarchy`, task `parity_check` (trained up to length 40 and tested from 41 to
//! 100; Deletang et al. 2023, arXiv 2207.02098), here as next-token prediction with a predicted end. The same task is
//! in Kazemnejad et al. 2023 (arXiv 2305.19466).

use std::ops::{Range, RangeInclusive};

use crate::TaskMeta;
use crate::strings::{StringConfig, StringRule};

/// Settings of parity; the defaults are those of `parity_check`, the source named in the module documentation.
pub type ParityConfig = StringConfig<Parity>;

/// Rule of parity: the answer is `a` if `b` occurs an even number of times, otherwise `b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Parity;

impl StringRule for Parity {
    const META: &'static TaskMeta = &TaskMeta {
        id: "parity",
        label: "Parity",
        len_unit: "symbols",
        summary: "Decide whether a string has an even or an odd number of b.",
        source: "Deletang et al. 2023, arXiv 2207.02098",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("parity.rs");
    const LETTERS: u32 = 2;
    const ALPHABETS: RangeInclusive<u32> = 2..=2;

    fn answer_len(_len: usize) -> usize {
        1
    }

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, _letters: u32) {
        // Letter number 1 is `b`.
        let count: u32 = tokens[string].iter().sum();
        tokens.push(count % 2);
    }

    fn counts(letter: u32) -> Option<bool> {
        Some(letter == 1)
    }

    fn chance(_letters: u32) -> Option<f64> {
        Some(0.5)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::testing::strings::{next, parts, trained_to_a_length};
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 ca5a9f878419f5ab009e14a8a54d9722827ea4d2ff5cb7553b9deb12b3b2302e";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(ParityConfig::default());
        Example::synthetic(config, 30, oracle, GOLDEN)
    }

    /// Reads the string and flips the answer at every `b`.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        let odd = string.iter().fold(false, |odd, letter| odd != (letter == "b"));
        Some(next(&[if odd { "b" } else { "a" }.to_owned()], done))
    }

    #[test]
    fn other_letters_are_refused_and_not_lost_on_the_way_to_a_worker() {
        let text = r#"{"letters": 26}"#;
        let config: ParityConfig = serde_json::from_str(text).unwrap();
        let sent = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<ParityConfig>(&sent).unwrap(), config);
        assert!(config.build().unwrap_err().to_string().contains("letters"));
        let sent = serde_json::to_string(&ParityConfig::default()).unwrap();
        assert_eq!(sent, r#"{"min_len":1}"#);
    }

    #[test]
    fn every_b_of_the_string_is_counted_and_the_answer_is_not() {
        let task = ParityConfig::default().build().unwrap();
        for sample in task.eval_set("uniform", 9, 50, 1).unwrap() {
            let is_b = |t: usize| t < 10 && task.token_text(sample.tokens[t]) == "b";
            let expected: Vec<bool> = (0..13).map(is_b).collect();
            assert_eq!(expected.iter().filter(|is_b| **is_b).count() as u32 % 2, sample.tokens[11]);
            assert_eq!(task.counted(&sample), Some(expected));
        }
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        trained_to_a_length(&TaskConfig::from(ParityConfig::new(2, 3)));
    }
}
