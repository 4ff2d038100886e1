//! # Majority: the most frequent letter
//! ## What it asks of an encoding
//! Comparing counts over the whole string. Order does not matter: a uniform average over all tokens solves the task.
//! The model has to compensate for everything that an encoding adds by distance.
//!
//! ## Predicted order
//! NoPE, CoPE and learned tables solve it within the trained lengths. Beyond them: NoPE before RoPE before learned
//! tables, and ALiBi last, since it attenuates distant letters. Huang et al. 2024 predict and find that majority
//! generalises to longer strings, with learned absolute positions (at a random offset) and without positions.
//!
//! ## Definition
//! `$ s | m .` with `s` independent and uniform over the first `letters` letters and `m` the most frequent letter of
//! `s`; a string in which several letters are most frequent is drawn again. `m` and the final `.` are scored. `len`
//! counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in evaluation it is exactly
//! `len`. A sequence has `len + 4` tokens.
//!
//! Settings: `letters` 2 (2 to 26), `min_len` 1 (shortest training string, in letters). Slices: `length` of `s`, and
//! `margin`, the count of the most frequent letter minus that of the second. Chance: one in `letters`.
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
//! draws the counts uniformly instead. This makes margins wider and the task easier.

use std::ops::Range;

use crate::TaskMeta;
use crate::strings::{StringConfig, StringRule};

/// Settings of majority; the defaults are those of the source.
pub type MajorityConfig = StringConfig<Majority>;

/// Rule of majority: the answer is the most frequent letter.
#[derive(Debug, Clone, PartialEq)]
pub struct Majority;

/// Returns the most frequent letter, its count, and the count of the second most frequent.
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
    const META: &'static TaskMeta = &TaskMeta {
        id: "majority",
        label: "Majority",
        len_unit: "symbols",
        summary: "Name the most frequent letter of a random string.",
        source: "Huang et al. 2024, arXiv 2410.02140",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("majority.rs");
    const LETTERS: u32 = 2;

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

    fn chance(letters: u32) -> Option<f64> {
        Some(1.0 / f64::from(letters))
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
    const GOLDEN: &str = "v1 930c351a25ceda7a32947399773bbad3342ad3117c141323c4082463512bb97c";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(MajorityConfig::default());
        Example::synthetic(config, 30, oracle, GOLDEN)
            .with_chance_config(TaskConfig::from(MajorityConfig::new(3, 1)), 7)
    }

    /// Sorts the string and returns the letter with the longest run.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (string, done) = parts(prefix)?;
        let mut sorted = string.to_vec();
        sorted.sort();
        let longest = sorted.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?;
        Some(next(&longest[..1], done))
    }

    #[test]
    fn margin_is_counted_and_never_a_tie() {
        let config = MajorityConfig::new(4, 1);
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
        let config = MajorityConfig::new(2, 3);
        trained_to_a_length(&TaskConfig::from(config));
        alphabet_is_checked("majority");
    }
}
