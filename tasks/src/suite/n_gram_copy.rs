//! # N-gram copy: go on from here
//! ## What it asks of an encoding
//! To find a few letters in a long string, all of them in order, and to say what follows: finding by content of
//! several tokens at once, then copying at a distance that differs from string to string.
//!
//! ## Predicted order
//! With the question behind the string (`suffix`), as in induction: all encodings within the trained lengths; NoPE and
//! ALiBi before RoPE beyond them (Jelassi et al. 2024 find that transformers copy by such n-grams). With the question
//! before it (`prefix`) the place must be noticed in passing: contextual encodings (CoPE) should gain.
//!
//! ## Definition
//! `prefix`: `$ q | s | a .`; `suffix`: `$ s | q a .`. `s` is independent and uniform over the first `letters`
//! letters, `q` the `ngram` letters at a uniform place of `s`, and `a` what follows them in `s`: all of it, or the
//! next `answer_letters`. Where `q` occurs more than once in `s`, both are drawn again. `a` and the final `.` are
//! scored. `len` counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in evaluation it
//! is exactly `len`.
//!
//! Settings: `query` `suffix`, `letters` 26 (2 to 26), `ngram` 3 (1 to 8), `answer_letters` (left out: all that
//! follows), `min_len` 4 (shortest training string, in letters). Slices: `length` of `s`, `answer` in letters,
//! `distance` in tokens from a letter to its copy. Chance: `letters` to the power of minus `answer_letters`; if that
//! is left out, the shortest answer, one letter, is the best guess.
//!
//! ## Sample
//! ```text
//! $ s s m n s o b f w | n s o b f w .
//!                             ^ ^ ^ ^
//! ```
//!
//! ## Source
//! Jelassi, Brandfonbrener, Kakade, Malach: Repeat After Me, 2024, arXiv 2402.01032; format as in the tasks
//! `prefix_ngram` and `suffix_ngram` of `Selective RoPE` (`timurcarstensen/selective-rope`, `synthetic_tasks/copying`;
//! n-grams of 3, all that follows). There only n-grams that are unique are looked for in one string; the odds differ
//! little.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator};
use crate::random::below;
use crate::strings::{UNIFORM, uniform_chance};
use crate::task::{MAX_LEN, check_range, check_setting, invalid};
use crate::{Headline, Sample, Split, TaskError, TaskMeta};

/// What is true of n-gram copy whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "n-gram-copy",
    label: "N-gram copy",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "symbols",
    summary: "Find a few letters in a random string and say what follows.",
    source: "Jelassi et al. 2024, arXiv 2402.01032",
    takes_path: false,
};

/// Where the n-gram stands that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// Before the string.
    Prefix,
    /// Behind the string, right before the answer.
    Suffix,
}

/// Settings; the defaults are those of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NGramCopyConfig {
    /// Where the n-gram stands that is looked for.
    pub query: Query,
    /// Size of the alphabet, 2 to 26.
    pub letters: u32,
    /// Letters of the n-gram, 1 to 8.
    pub ngram: u32,
    /// Letters of the answer; left out: all that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_letters: Option<u32>,
    /// Shortest string in training, in letters: at least the n-gram and its answer.
    pub min_len: usize,
}

impl Default for NGramCopyConfig {
    fn default() -> Self {
        Self { query: Query::Suffix, letters: 26, ngram: 3, answer_letters: None, min_len: 4 }
    }
}

impl NGramCopyConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<NGramCopy>, TaskError> {
        check_setting(&META, "letters", self.letters, &(2..=26))?;
        check_setting(&META, "ngram", self.ngram, &(1..=8))?;
        if let Some(letters) = self.answer_letters {
            check_setting(&META, "answer_letters", letters, &(1..=MAX_LEN as u32))?;
        }
        let fewest = (self.ngram + self.answer_letters.unwrap_or(1)) as usize;
        if !(fewest..=MAX_LEN).contains(&self.min_len) {
            let expected =
                format!("between {fewest}, the n-gram with its shortest answer, and {MAX_LEN}");
            return Err(invalid(&META, "min_len", &self.min_len, expected));
        }
        Ok(Generated(NGramCopy { settings: self.clone() }))
    }
}

/// The n-gram copy task. Token ids: the letters, then `$`, `|`, `.`.
#[derive(Debug, Clone)]
pub struct NGramCopy {
    settings: NGramCopyConfig,
}

impl NGramCopy {
    /// Longest string, in letters, in which an n-gram is likely enough to be unique.
    fn longest(&self) -> usize {
        let kinds = u64::from(self.settings.letters).pow(self.settings.ngram);
        // At two places for each kind one n-gram in seven is unique.
        usize::try_from(kinds.saturating_mul(2)).unwrap_or(usize::MAX).min(MAX_LEN)
    }

    /// Fills the string and gives the place of a unique n-gram in it.
    fn draw_string(&self, string: &mut [u32], rng: &mut ChaCha8Rng) -> usize {
        let ngram = self.settings.ngram as usize;
        let answer = self.settings.answer_letters.unwrap_or(1) as usize;
        let places = (string.len() - ngram - answer + 1) as u32;
        loop {
            for letter in &mut *string {
                *letter = below(rng, self.settings.letters);
            }
            let place = below(rng, places) as usize;
            let query = &string[place..place + ngram];
            let found = string.windows(ngram).filter(|window| *window == query).count();
            if found == 1 {
                return place;
            }
        }
    }
}

impl Generator for NGramCopy {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        UNIFORM
    }

    fn vocab_size(&self) -> usize {
        self.settings.letters as usize + 3
    }

    fn token_text(&self, token: u32) -> String {
        let text = match token.checked_sub(self.settings.letters) {
            None => char::from_u32(u32::from('a') + token).unwrap_or('?'),
            Some(0) => '$',
            Some(1) => '|',
            Some(2) => '.',
            Some(_) => '?',
        };
        text.to_string()
    }

    fn max_tokens(&self, len: usize) -> usize {
        let NGramCopyConfig { query, ngram, answer_letters, .. } = self.settings;
        let ngram = ngram as usize;
        let answer = answer_letters.map_or(len.saturating_sub(ngram), |letters| letters as usize);
        let signs = if query == Query::Prefix { 4 } else { 3 };
        // A length that has no samples still has a bound, and the largest one stays the largest.
        len.saturating_add(answer).saturating_add(ngram + signs)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, self.settings.min_len, "min_len is the shortest")?;
        let longest = self.longest();
        if len <= longest {
            return Ok(());
        }
        let NGramCopyConfig { letters, ngram, .. } = self.settings;
        Err(TaskError::InvalidLen {
            task: META.id,
            len,
            expected: format!(
                "at most {longest} symbols, since in longer strings of {letters} letters few \
                 n-grams of {ngram} are unique; raise ngram or letters"
            ),
        })
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.settings.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let ngram = self.settings.ngram as usize;
        let [start, bar, end] = [0, 1, 2].map(|k| self.settings.letters + k);
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        tokens.push(start);
        let string_at = match self.settings.query {
            Query::Prefix => {
                tokens.resize(1 + ngram, bar);
                tokens.push(bar);
                2 + ngram
            }
            Query::Suffix => 1,
        };
        tokens.resize(string_at + len, bar);
        let place = string_at + self.draw_string(&mut tokens[string_at..], rng);
        let query: Range<usize> = place..place + ngram;
        tokens.push(bar);
        match self.settings.query {
            Query::Prefix => tokens.copy_within(query.clone(), 1),
            Query::Suffix => tokens.extend_from_within(query.clone()),
        }
        let asked_from = tokens.len();
        let follows = string_at + len - query.end;
        let answer = self.settings.answer_letters.map_or(follows, |letters| letters as usize);
        tokens.extend_from_within(query.end..query.end + answer);
        tokens.push(end);
        let distance = asked_from - query.end;
        let slices =
            vec![("length", len as u32), ("answer", answer as u32), ("distance", distance as u32)];
        Sample::scored_from(asked_from, tokens, slices)
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        let NGramCopyConfig { letters, ngram, answer_letters, .. } = self.settings;
        Some(match answer_letters {
            Some(answer) => uniform_chance(letters, answer as usize),
            // Places, and with them lengths, are uniform but for the few n-grams that are not unique.
            None => uniform_chance(letters, 1) / (len - ngram as usize) as f64,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
