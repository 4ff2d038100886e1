//! # N-gram copy: continue after an n-gram
//! ## What it asks of an encoding
//! Finding several consecutive letters in a long string and predicting the letters after them: finding several tokens
//! at once by content, then copying at a distance that differs between strings.
//!
//! ## Predicted order
//! With the query after the string (`suffix`), as in induction: all encodings within the trained lengths; NoPE and
//! ALiBi before RoPE beyond them (Jelassi et al. 2024 find that transformers copy by such n-grams). With the query
//! before it (`prefix`) the match must be noticed in passing: contextual encodings (CoPE) should gain.
//!
//! ## Definition
//! `prefix`: `$ q | s | a .`; `suffix`: `$ s | q a .`. `s` is independent and uniform over the first `letters`
//! letters, `q` the `ngram` letters at a uniform position of `s`, and `a` what follows them in `s`: all of it, or the
//! next `answer_letters`. If `q` occurs more than once in `s`, both are drawn again. `a` and the final `.` are
//! scored. `len` counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in evaluation it
//! is exactly `len`.
//!
//! Settings: `query` `suffix`, `letters` 26 (2 to 26), `ngram` 3 (1 to 8), `answer_letters` (left out: all that
//! follow), `min_len` 4 (shortest training string, in letters). Slices: `length` of `s`, `answer` in letters,
//! `distance` in tokens from a letter to its copy. Chance: `letters` to the power of minus `answer_letters`; if that
//! is left out, the shortest answer, one letter, is the best guess. With fewer than 1000 n-grams: simulated.
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
//! n-grams of 3, all that follows). There (`data_utils.py`) strings are drawn until one has a unique n-gram, but any of
//! its n-grams is asked for, unique or not, except those near the end, and the answer follows the first occurrence: some
//! questions are ambiguous.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, simulated_above, simulated_chance};
use crate::random::below;
use crate::strings::{SIGNS, UNIFORM, uniform_chance};
use crate::task::{MAX_LEN, check_range, check_setting, invalid, invalid_len};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

/// Position of the n-gram to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// Before the string, at the start.
    Prefix,
    /// After the string, directly before the answer.
    Suffix,
}

/// Settings of n-gram copy; the defaults are those of the source. Token ids: the letters, then `$`, `|`, `.`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NGramCopyConfig {
    /// Position of the n-gram to be found.
    pub query: Query,
    /// Size of the alphabet, 2 to 26.
    pub letters: u32,
    /// Number of letters of the n-gram, 1 to 8.
    pub ngram: u32,
    /// Letters of the answer; `None`: all that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_letters: Option<u32>,
    /// Shortest training string, in letters: at least the n-gram and its answer.
    pub min_len: usize,
}

impl Default for NGramCopyConfig {
    fn default() -> Self {
        Self { query: Query::Suffix, letters: 26, ngram: 3, answer_letters: None, min_len: 4 }
    }
}

impl NGramCopyConfig {
    /// Longest string, in letters, in which an n-gram is unique with sufficient probability.
    fn longest(&self) -> usize {
        let kinds = u64::from(self.letters).pow(self.ngram);
        // With two positions for each kind, one n-gram in seven is unique.
        usize::try_from(kinds.saturating_mul(2)).unwrap_or(usize::MAX).min(MAX_LEN)
    }

    /// Fills the string and returns the position of a unique n-gram in it.
    fn draw_string(&self, string: &mut [u32], rng: &mut ChaCha8Rng) -> usize {
        let ngram = self.ngram as usize;
        let answer = self.answer_letters.unwrap_or(1) as usize;
        let places = (string.len() - ngram - answer + 1) as u32;
        loop {
            for letter in &mut *string {
                *letter = below(rng, self.letters);
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

impl Generator for NGramCopyConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "n-gram-copy",
        label: "N-gram copy",
        len_unit: "symbols",
        summary: "Find an n-gram in a random string and continue from there.",
        source: "Jelassi et al. 2024, arXiv 2402.01032",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("n_gram_copy.rs");
    const SPLITS: &'static [Split] = UNIFORM;

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "letters", self.letters, &(2..=26))?;
        check_setting(Self::META, "ngram", self.ngram, &(1..=8))?;
        if let Some(letters) = self.answer_letters {
            check_setting(Self::META, "answer_letters", letters, &(1..=MAX_LEN as u32))?;
        }
        let fewest = (self.ngram + self.answer_letters.unwrap_or(1)) as usize;
        if (fewest..=MAX_LEN).contains(&self.min_len) {
            return Ok(());
        }
        let expected =
            format!("between {fewest}, the n-gram with its shortest answer, and {MAX_LEN}");
        Err(invalid(Self::META, "min_len", &self.min_len, expected))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::symbols(self.letters), SIGNS]
    }

    fn max_tokens(&self, len: usize) -> usize {
        let ngram = self.ngram as usize;
        let answer =
            self.answer_letters.map_or(len.saturating_sub(ngram), |letters| letters as usize);
        let signs = if self.query == Query::Prefix { 4 } else { 3 };
        // A length without samples still has a bound, and the largest one stays the largest.
        len.saturating_add(answer).saturating_add(ngram + signs)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(Self::META, len, self.min_len, "min_len sets the minimum")?;
        let longest = self.longest();
        if len <= longest {
            return Ok(());
        }
        let Self { letters, ngram, .. } = self;
        let expected = format!(
            "at most {longest} symbols, since in longer strings of {letters} letters few \
             n-grams of {ngram} are unique; raise ngram or letters"
        );
        Err(invalid_len(Self::META, len, expected))
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let ngram = self.ngram as usize;
        let [start, bar, end] = [0, 1, 2].map(|k| self.letters + k);
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        tokens.push(start);
        let string_at = match self.query {
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
        match self.query {
            Query::Prefix => tokens.copy_within(query.clone(), 1),
            Query::Suffix => tokens.extend_from_within(query.clone()),
        }
        let asked_from = tokens.len();
        let follows = string_at + len - query.end;
        let answer = self.answer_letters.map_or(follows, |letters| letters as usize);
        tokens.extend_from_within(query.end..query.end + answer);
        tokens.push(end);
        let distance = asked_from - query.end;
        let slices =
            vec![("length", len as u32), ("answer", answer as u32), ("distance", distance as u32)];
        Sample::scored_from(asked_from, tokens, slices)
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        // Where few n-grams exist, that the asked one occurs once makes some answers more frequent than others, and some
        // positions.
        let few = self.letters.saturating_pow(self.ngram) < 1000;
        Some(match self.answer_letters {
            Some(answer) => {
                let uniform = uniform_chance(self.letters, answer as usize);
                if few { simulated_above(self, len, uniform) } else { uniform }
            }
            None if few => simulated_chance(self, len),
            // Positions, and with them lengths, are uniform except for the few n-grams that are not unique.
            None => uniform_chance(self.letters, 1) / (len - self.ngram as usize) as f64,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
