//! # String copy: repeat the string
//! ## What it asks of an encoding
//! Looking back by a number of tokens that is constant within a string and differs between strings, also for strings
//! longer than any in training. An encoding must align two distant positions exactly.
//!
//! ## Predicted order
//! Within the trained lengths every encoding solves it. With a large alphabet, content alone nearly suffices: find the
//! last letters, read the next one. With a small alphabet it does not. Beyond the trained lengths: ALiBi and NoPE
//! before RoPE before learned tables, which fail at once (Jelassi et al. 2024; their encoding, hard windows of
//! different widths, leads).
//!
//! ## Definition
//! `$ s | s .` with `s` independent and uniform over the first `letters` letters. The second `s` and the final `.`
//! are scored. `len` counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in
//! evaluation it is exactly `len`. A sequence has `2 len + 3` tokens.
//!
//! Settings: `letters` 26 (2 to 26), `min_len` 1 (shortest training string, in letters). Slice: `length` of `s`.
//! The only split, `uniform`, is in distribution for trained lengths; beyond them it measures length generalisation.
//! Chance: `letters` to the power of minus `len`.
//!
//! ## Sample
//! ```text
//! $ s s m n s o b f | s s m n s o b f .
//!                     ^ ^ ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! Jelassi, Brandfonbrener, Kakade, Malach: Repeat After Me, 2024, arXiv 2402.01032; format, alphabet and lengths as
//! in the synthetic copying task of `Selective RoPE` (`timurcarstensen/selective-rope`, `synthetic_tasks/copying`).

use std::ops::Range;

use crate::TaskMeta;
use crate::strings::{StringConfig, StringRule};

/// Settings of string copy; the defaults are those of the source.
pub type CopyConfig = StringConfig<Copy>;

/// Rule of string copy: the answer is the string.
#[derive(Debug, Clone, PartialEq)]
pub struct Copy;

impl StringRule for Copy {
    const META: &'static TaskMeta = &TaskMeta {
        id: "copy",
        label: "String copy",
        len_unit: "symbols",
        summary: "Repeat a random string, letter by letter.",
        source: "Jelassi et al. 2024, arXiv 2402.01032",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("copy.rs");
    const LETTERS: u32 = 26;

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, _letters: u32) {
        tokens.extend_from_within(string);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::testing::strings::{alphabet_is_checked, next, parts, trained_to_a_length};
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 d81cc86488cad6c057c55cd26b50362f348082d0ddf4bbd8ee7661c9e98a5b31";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(CopyConfig::default());
        Example::synthetic(config, 12, oracle, GOLDEN)
            .with_chance_config(TaskConfig::from(CopyConfig::new(3, 1)), 3)
    }

    /// Finds the position in the copy and returns the letter at that position of the string.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        Some(next(string, done))
    }

    #[test]
    fn format_is_dollar_string_bar_string_dot() {
        let task = CopyConfig::default().build().unwrap();
        let sample = &task.eval_set("uniform", 5, 1, 0).unwrap()[0];
        let text: String = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
        let (first, second) = text.split_once('|').unwrap();
        let string = first.strip_prefix('$').unwrap();
        assert_eq!(string.len(), 5);
        assert_eq!(second, format!("{string}."));
        let expected =
            [false, false, false, false, false, false, false, true, true, true, true, true, true];
        assert_eq!(sample.scored, expected);
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = CopyConfig::new(26, 3);
        trained_to_a_length(&TaskConfig::from(config));
        alphabet_is_checked("copy");
    }
}
