//! # Majority: which letter is the commonest?
//! ## What it asks of an encoding
//! To compare counts over the whole string. Order plays no part: an even average over all tokens solves it, and what
//! an encoding adds by distance has to be undone.
//!
//! ## Predicted order
//! NoPE, CoPE and learned tables solve it in training; beyond the trained lengths NoPE before RoPE, before learned
//! tables, and ALiBi last, since it forgets what is far. Huang et al. 2024 predict and find that majority generalises
//! to longer strings, with learned absolute positions (of random offset) and without.
//!
//! ## Definition
//! `$ s | m .` with `s` independent and uniform over the first `letters` letters and `m` the letter that occurs most
//! often in `s`; a string with a tie for first place is drawn again. `m` and the final `.` are scored. `len` counts
//! the letters of `s`: in training its length is uniform in `min_len ..= len`, in evaluation it is exactly `len`. A
//! sequence has `len + 4` tokens.
//!
//! Settings: `letters` 2 (2 to 26), `min_len` 1 (shortest training string, in letters). Slices: `length` of `s`, and
//! `margin`, by how much the first is ahead of the second. Chance: one in `letters`.
//!
//! ## Sample
//! ```text
//! $ b b a b b b a a b b b a b b b a b b a a | b .
//!                                             ^ ^
//! ```
//!
//! ## Source
//! Huang et al.: A Formal Framework for Understanding Length Generalization in Transformers, 2024, arXiv 2410.02140
//! (`lacoco-lab/length_generalization`, task `majority`: letters independent, ties drawn again). Their binary variant
//! draws the counts uniformly instead, which makes margins wide and the task easier.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::generator::Generated;
use crate::strings::{StringRule, Strings};
use crate::{Headline, TaskError, TaskMeta};

/// What is true of majority whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "majority",
    label: "Majority",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "symbols",
    summary: "Name the commonest letter of a random string.",
    source: "Huang et al. 2024, arXiv 2410.02140",
    takes_path: false,
};

/// Settings; the defaults are those of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MajorityConfig {
    /// Size of the alphabet, 2 to 26.
    pub letters: u32,
    /// Shortest string in training, in letters.
    pub min_len: usize,
}

impl Default for MajorityConfig {
    fn default() -> Self {
        Self { letters: 2, min_len: 1 }
    }
}

impl MajorityConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<Strings<Majority>>, TaskError> {
        Strings::build(self.letters, self.min_len)
    }
}

/// The answer is the commonest letter.
#[derive(Debug, Clone)]
pub struct Majority;

/// The commonest letter, its count, and the count of the next.
fn ranking(string: &[u32], letters: u32) -> (u32, u32, u32) {
    let mut counts = [0; 26];
    for letter in string {
        counts[*letter as usize] += 1;
    }
    let (mut winner, mut first, mut second) = (0, 0, 0);
    for (letter, count) in (0..letters).zip(counts) {
        if count > first {
            (winner, first, second) = (letter, count, first);
        } else {
            second = second.max(count);
        }
    }
    (winner, first, second)
}

impl StringRule for Majority {
    const META: &'static TaskMeta = &META;

    fn answer_len(_len: usize) -> usize {
        1
    }

    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, letters: u32) {
        let (winner, ..) = ranking(&tokens[string], letters);
        tokens.push(winner);
    }

    fn is_asked(string: &[u32], letters: u32) -> bool {
        let (_, first, second) = ranking(string, letters);
        first > second
    }

    fn slice(string: &[u32], letters: u32) -> Option<(&'static str, u32)> {
        let (_, first, second) = ranking(string, letters);
        Some(("margin", first - second))
    }

    fn chance_at(letters: u32, _len: usize) -> f64 {
        1.0 / f64::from(letters)
    }

    fn chance(letters: u32) -> Option<f64> {
        Some(1.0 / f64::from(letters))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::strings::testing::{alphabet_is_checked, next, parts, trained_to_a_length};
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Of `checks::golden`: version and hash.
    const GOLDEN: &str = "v1 930c351a25ceda7a32947399773bbad3342ad3117c141323c4082463512bb97c";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::Majority(MajorityConfig::default());
        Example::synthetic(config, 30, oracle, GOLDEN)
            .with_chance_config(TaskConfig::Majority(MajorityConfig { letters: 3, min_len: 1 }), 7)
    }

    /// Sorts the string and takes the longest run.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        let mut sorted = string.to_vec();
        sorted.sort();
        let longest = sorted.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?;
        Some(next(&longest[..1], done))
    }

    #[test]
    fn margin_is_counted_and_never_a_tie() {
        let config = MajorityConfig { letters: 4, min_len: 1 };
        let task = config.build().unwrap();
        for sample in task.eval_set("uniform", 9, 300, 1).unwrap() {
            let mut counts = [0; 4];
            for letter in &sample.tokens[1..10] {
                counts[*letter as usize] += 1;
            }
            counts.sort_unstable();
            assert!(counts[3] > counts[2]);
            assert_eq!(sample.slices[1], ("margin", counts[3] - counts[2]));
        }
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = MajorityConfig { min_len: 3, ..MajorityConfig::default() };
        trained_to_a_length(&TaskConfig::Majority(config));
        alphabet_is_checked(META.id);
    }
}
