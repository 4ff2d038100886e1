//! # String copy: say it again
//! ## What it asks of an encoding
//! To look back by a fixed number of tokens that differs from string to string, and to do so for strings longer than
//! any seen in training. An encoding must line up two places far apart, exactly.
//!
//! ## Predicted order
//! Within the trained lengths all solve it; with a large alphabet content alone nearly suffices (find what was said
//! last, say what follows), with a small one it does not. Beyond them ALiBi and NoPE before RoPE, before learned
//! tables, which fail at once (Jelassi et al. 2024; theirs with hard windows of unlike widths leads).
//!
//! ## Definition
//! `$ s | s .` with `s` independent and uniform over the first `letters` letters. The second `s` and the final `.`
//! are scored. `len` counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in
//! evaluation it is exactly `len`. A sequence has `2 len + 3` tokens.
//!
//! Settings: `letters` 26 (2 to 26), `min_len` 1 (shortest training string, in letters). Slice: `length` of `s`.
//! The one split, `uniform`, is in distribution for lengths that were trained; beyond them it measures
//! length generalisation. Chance: `letters` to the power of minus `len`.
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

use serde::{Deserialize, Serialize};

use crate::generator::Generated;
use crate::strings::{StringRule, Strings, uniform_chance};
use crate::{Headline, TaskError, TaskMeta};

/// What is true of string copy whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "copy",
    label: "String copy",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "symbols",
    summary: "Repeat a random string, letter by letter.",
    source: "Jelassi et al. 2024, arXiv 2402.01032",
    takes_path: false,
};

/// Settings; the defaults are those of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyConfig {
    /// Size of the alphabet, 2 to 26.
    pub letters: u32,
    /// Shortest string in training, in letters.
    pub min_len: usize,
}

impl Default for CopyConfig {
    fn default() -> Self {
        Self { letters: 26, min_len: 1 }
    }
}

impl CopyConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<Strings<Copy>>, TaskError> {
        Strings::build(self.letters, self.min_len)
    }
}

/// The answer is the string itself.
#[derive(Debug, Clone)]
pub struct Copy;

impl StringRule for Copy {
    const META: &'static TaskMeta = &META;

    fn answer_len(len: usize) -> usize {
        len
    }

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, _letters: u32) {
        tokens.extend_from_within(string);
    }

    fn chance_at(letters: u32, len: usize) -> f64 {
        uniform_chance(letters, len)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::strings::testing::{alphabet_is_checked, next, parts, trained_to_a_length};
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Of `checks::golden`: version and hash.
    const GOLDEN: &str = "v1 d81cc86488cad6c057c55cd26b50362f348082d0ddf4bbd8ee7661c9e98a5b31";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::Copy(CopyConfig::default());
        Example::synthetic(config, 12, oracle, GOLDEN)
            .with_chance_config(TaskConfig::Copy(CopyConfig { letters: 3, min_len: 1 }), 3)
    }

    /// Looks up where the copy is, then the letter at that place of the string.
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
        let config = CopyConfig { min_len: 3, ..CopyConfig::default() };
        trained_to_a_length(&TaskConfig::Copy(config));
        alphabet_is_checked(META.id);
    }
}
