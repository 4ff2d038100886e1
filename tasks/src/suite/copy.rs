//! # String copy: say it again
//! ## What it asks of an encoding
//! To look back by a fixed number of tokens that differs from string to string, and to do so for strings longer than
//! any seen in training. An encoding must line up two places far apart, exactly.
//!
//! ## Definition
//! `$ s | s .` with `s` independent and uniform over the first `letters` letters. The second `s` and the final `.`
//! are scored. `len` counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in
//! evaluation it is exactly `len`. A sequence has `2 len + 3` tokens.
//!
//! Settings: `letters` 26 (2 to 26), `min_len` 1 (shortest training string, in letters). Slice: `length` of `s`.
//! The one split, `uniform`, is in distribution for lengths that were trained; beyond them it measures
//! length generalisation.
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

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::random::{below, eval_rng};
use crate::task::{MAX_LEN, check_range, check_setting, find_split};
use crate::{Headline, Sample, Split, Task, TaskError, TaskMeta};

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

const SPLITS: &[Split] = &[Split {
    name: "uniform",
    in_distribution: true,
    about: "Random strings of exactly the given length.",
}];

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
    pub fn build(&self) -> Result<Copy, TaskError> {
        check_setting(&META, "letters", self.letters, &(2..=26))?;
        check_setting(&META, "min_len", self.min_len, &(1..=MAX_LEN))?;
        Ok(Copy { letters: self.letters, min_len: self.min_len })
    }
}

/// The string copy task. Token ids: the letters, then `$`, `|`, `.`.
#[derive(Debug, Clone)]
pub struct Copy {
    letters: u32,
    min_len: usize,
}

impl Copy {
    fn sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let [start, middle, end] = [0, 1, 2].map(|k| self.letters + k);
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        tokens.push(start);
        tokens.extend((0..len).map(|_| below(rng, self.letters)));
        tokens.push(middle);
        tokens.extend_from_within(1..=len);
        tokens.push(end);
        let mut scored = vec![false; tokens.len()];
        scored[len + 2..].fill(true);
        Sample { tokens, scored, slices: vec![("length", len as u32)] }
    }
}

impl Task for Copy {
    fn meta(&self) -> &'static TaskMeta {
        &META
    }

    fn vocab_size(&self) -> usize {
        self.letters as usize + 3
    }

    fn token_text(&self, token: u32) -> String {
        let letter = |t| char::from_u32(u32::from('a') + t).unwrap_or('?');
        let text = match token.checked_sub(self.letters) {
            None => letter(token),
            Some(0) => '$',
            Some(1) => '|',
            Some(2) => '.',
            Some(_) => '?',
        };
        text.to_string()
    }

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_mul(2).saturating_add(3)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, self.min_len, "min_len is the shortest")
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let spread = (len - self.min_len) as u32 + 1;
        let len = self.min_len + below(rng, spread) as usize;
        self.sample(len, rng)
    }

    fn eval_set(
        &self,
        split: &str,
        len: usize,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        let split = find_split(self, split)?;
        self.check_len(len)?;
        let mut rng = eval_rng(META.id, split.name, len, seed);
        Ok((0..count).map(|_| self.sample(len, &mut rng)).collect())
    }

    /// `letters` to the power of minus `len`: depends on the length.
    fn chance(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TaskConfig;
    use crate::testing::Example;
    use rand::SeedableRng;
    use std::collections::BTreeMap;

    /// Of `checks::golden`: version and hash.
    const GOLDEN: &str = "v1 d81cc86488cad6c057c55cd26b50362f348082d0ddf4bbd8ee7661c9e98a5b31";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::Copy(CopyConfig::default());
        Example::synthetic(config, 12, oracle, GOLDEN)
    }

    /// Looks up where the copy is, then the letter at that place of the string.
    fn oracle(prefix: &[String]) -> Option<String> {
        let bar = prefix.iter().position(|text| text == "|")?;
        let done = prefix.len() - bar - 1;
        let string = &prefix[1..bar];
        Some(string.get(done).cloned().unwrap_or_else(|| ".".to_owned()))
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
    fn training_lengths_are_uniform_and_evaluation_lengths_exact() {
        let config = CopyConfig { min_len: 3, ..CopyConfig::default() };
        let task = config.build().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut counts = BTreeMap::new();
        for _ in 0..8000 {
            *counts.entry(task.train_sample(10, &mut rng).slices[0].1).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), (3..=10).collect::<Vec<_>>());
        assert!(counts.values().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
        let set = task.eval_set("uniform", 10, 20, 5).unwrap();
        assert!(set.iter().all(|s| s.tokens.len() == 23));
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said =
            |letters, min_len| CopyConfig { letters, min_len }.build().unwrap_err().to_string();
        assert_eq!(said(27, 1), "copy: letters is 27, must be between 2 and 26");
        assert!(said(26, 0).starts_with("copy: min_len is 0, must be between 1"));
        let task = CopyConfig { letters: 4, min_len: 5 }.build().unwrap();
        assert!(task.check_len(4).unwrap_err().to_string().contains("min_len is the shortest"));
        assert!(CopyConfig::default().build().unwrap().check_len(0).is_err());
    }
}
