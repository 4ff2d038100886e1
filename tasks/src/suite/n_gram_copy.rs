//! # N-gram copy: continue after an n-gram
//! ## What it asks of an encoding
//! Finding several consecutive letters in a long string and predicting the letters after them. A model must find
//! several tokens at once by content, then copy at a distance that differs between strings.
//!
//! ## Predicted order
//! With the query after the string (`suffix`), as in induction: within the trained lengths all encodings solve it;
//! beyond them NoPE and ALiBi before RoPE (Jelassi et al. 2024 find that transformers copy by such n-grams). With the
//! query before the string (`prefix`), the match must be found while the string is read, so contextual encodings (CoPE)
//! should be better.
//!
//! ## Definition
//! `prefix`: `$ q | s | a .`; `suffix`: `$ s | q a .`. `s` is independent and uniform over the first `letters` letters,
//! `q` the `ngram` letters at a uniform position of `s`, and `a` are the letters that follow them in `s`: all, or the
//! next `answer_letters`. If `q` occurs more than once in `s`, both are drawn again. `a` and the final `.` are scored.
//! `len` counts the letters of `s`: in training its length is uniform in `min_len ..= len`, in evaluation it is exactly
//! `len`.
//!
//! Settings: `query` `suffix`, `letters` 26 (2 to 26), `ngram` 3 (1 to 8), `answer_letters` (left out: all that
//! follow), `min_len` 4 (shortest training string, in letters). Slices: `length` of `s`, `answer` in letters,
//! `distance` in tokens from a letter to its copy. Chance: `letters` to the power of minus `answer_letters`; if it is
//! left out, the best guess is the shortest answer, one letter. With fewer than 1000 n-grams, chance is simulated.
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
//! n-grams of 3 letters, all letters that follow). Their code (`data_utils.py`) draws strings until one has a unique
//! n-gram. It then asks for any n-gram of the string except those near the end, unique or not, and the answer follows
//! the first occurrence. Some of its questions are therefore ambiguous.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, simulated_above, simulated_chance};
use crate::random::below;
use crate::settings::settings;
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

settings! {
    /// Settings of n-gram copy; the defaults are those of the source. Token ids: the letters, then `$`, `|`, `.`.
    #[derive(Eq)]
    pub struct NGramCopyConfig {
        /// Position of the n-gram to be found.
        pub query: Query = Query::Suffix,
        /// Size of the alphabet, 2 to 26.
        pub letters: u32 = 26,
        /// Number of letters of the n-gram, 1 to 8.
        pub ngram: u32 = 3,
        /// Letters of the answer; `None`: all that follow.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub answer_letters: Option<u32> = None,
        /// Shortest training string, in letters: at least the n-gram and its answer.
        pub min_len: usize = 4,
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

/// Tests of n-gram copy.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 94907e8c3d292c0faa8ee7d369179d588be6fab62582914ca6d034da782591ab";

    fn config(query: Query) -> NGramCopyConfig {
        NGramCopyConfig { query, ..NGramCopyConfig::default() }
    }

    pub(crate) fn example() -> Example {
        let short = NGramCopyConfig {
            letters: 4,
            answer_letters: Some(3),
            min_len: 6,
            ..config(Query::Prefix)
        };
        Example::synthetic(TaskConfig::from(config(Query::Suffix)), 12, oracle, GOLDEN)
            .with_oracle_config(TaskConfig::from(config(Query::Prefix)), 16)
            .with_chance_config(TaskConfig::from(short), 12)
    }

    /// Finds the n-gram in the string, wherever the query is, and copies from there.
    fn oracle(prefix: &[String]) -> Option<String> {
        let bars: Vec<usize> = (0..prefix.len()).filter(|t| prefix[*t] == "|").collect();
        let (query, string, done) = match bars[..] {
            [only] => (&prefix[only + 1..only + 4], &prefix[1..only], prefix.len() - only - 4),
            [first, second] => {
                (&prefix[1..first], &prefix[first + 1..second], prefix.len() - second - 1)
            }
            _ => return None,
        };
        let found = string.windows(3).position(|window| window == query)?;
        Some(string.get(found + 3 + done).cloned().unwrap_or_else(|| ".".to_owned()))
    }

    #[test]
    fn both_forms_are_as_documented_and_the_n_gram_is_unique() {
        for (query, answer_letters) in [
            (Query::Prefix, None),
            (Query::Suffix, None),
            (Query::Prefix, Some(2)),
            (Query::Suffix, Some(2)),
        ] {
            let settings =
                NGramCopyConfig { letters: 3, answer_letters, min_len: 5, ..config(query) };
            let task = settings.build().unwrap();
            for sample in task.eval_set("uniform", 14, 100, 1).unwrap() {
                let text: String = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
                let parts: Vec<&str> = text.trim_matches(['$', '.']).split('|').collect();
                let (string, asked, answer) = match query {
                    Query::Prefix => (parts[1], parts[0], parts[2]),
                    Query::Suffix => (parts[0], &parts[1][..3], &parts[1][3..]),
                };
                assert_eq!(string.len(), 14);
                let overlapping = (0..12).filter(|t| string[*t..].starts_with(asked)).count();
                assert_eq!(overlapping, 1, "{text}");
                let (_, after) = string.split_once(asked).unwrap();
                assert_eq!(answer, &after[..answer_letters.map_or(after.len(), |n| n as usize)]);
                assert_eq!(sample.slices[1], ("answer", answer.len() as u32));
                let scored: Vec<usize> = (0..text.len()).filter(|t| sample.scored[*t]).collect();
                assert_eq!(scored, (text.len() - answer.len() - 1..text.len()).collect::<Vec<_>>());
                let distance = sample.slices[2].1 as usize;
                assert_eq!(sample.tokens[scored[0]], sample.tokens[scored[0] - distance]);
            }
        }
    }

    #[test]
    fn every_length_of_the_answer_occurs_and_chance_is_that_of_the_shortest() {
        let task = config(Query::Suffix).build().unwrap();
        let set = task.eval_set("uniform", 13, 10_000, 2).unwrap();
        let mut counts = [0_u32; 10];
        for sample in &set {
            counts[sample.slices[1].1 as usize - 1] += 1;
        }
        assert!(counts.iter().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
        let chance = task.chance_at(13).unwrap();
        assert!((chance - 1.0 / 260.0).abs() < 1e-12);
        let of_one_letter = set.iter().filter(|s| s.slices[1].1 == 1);
        let guessed = of_one_letter.filter(|s| s.tokens[s.tokens.len() - 2] == 0).count();
        // 38.5 expected, 5 standard deviations.
        assert!(guessed.abs_diff(38) < 32, "{guessed}");
    }

    #[test]
    fn is_trained_to_a_length_and_tested_beyond() {
        let config = NGramCopyConfig { ngram: 2, min_len: 4, ..NGramCopyConfig::default() };
        let task = config.build().unwrap();
        let mut rng = rand::SeedableRng::seed_from_u64(3);
        let lengths: std::collections::BTreeSet<u32> =
            (0..500).map(|_| task.train_sample(9, &mut rng).slices[0].1).collect();
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), (4..=9).collect::<Vec<_>>());
        crate::testing::strings::alphabet_is_checked("n-gram-copy");
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said = |json| {
            let config: NGramCopyConfig = serde_json::from_str(json).unwrap();
            config.build().unwrap_err().to_string()
        };
        assert_eq!(said(r#"{"ngram": 9}"#), "n-gram-copy: ngram is 9, must be between 1 and 8");
        assert!(said(r#"{"answer_letters": 0}"#).contains("answer_letters is 0"));
        assert!(said(r#"{"min_len": 3}"#).contains("min_len is 3, must be between 4, the n-gram"));
        assert!(said(r#"{"answer_letters": 5}"#).contains("min_len is 4, must be between 8,"));
        let task = NGramCopyConfig { letters: 2, ..config(Query::Suffix) }.build().unwrap();
        assert!(task.check_len(16).is_ok());
        let said = task.check_len(17).unwrap_err().to_string();
        assert!(said.contains("at most 16 symbols") && said.contains("raise ngram"), "{said}");
        let settings =
            NGramCopyConfig { letters: 2, ngram: 1, min_len: 100, ..config(Query::Suffix) };
        let said = settings.build().unwrap_err().to_string();
        assert!(
            said.starts_with("n-gram-copy: min_len is 100, must be at most 4 symbols"),
            "{said}"
        );
    }

    #[test]
    fn chance_of_few_possible_n_grams_counts_that_the_asked_one_is_unique() {
        let config = NGramCopyConfig {
            letters: 2,
            ngram: 2,
            answer_letters: Some(2),
            ..NGramCopyConfig::default()
        };
        // By enumeration of all strings; 0.25 if answers were uniform.
        let chance = TaskConfig::from(config).build().unwrap().chance_at(8).unwrap();
        assert!((chance - 0.348).abs() < 0.02, "{chance}");

        // By enumeration, too; 0.0455 if every length of the answer were as frequent.
        let config = NGramCopyConfig { letters: 2, ngram: 3, ..NGramCopyConfig::default() };
        let chance = TaskConfig::from(config).build().unwrap().chance_at(14).unwrap();
        assert!((chance - 0.0409).abs() < 0.003, "{chance}");

        // Nearly uniform answers: the largest share of few samples is not the chance.
        let config = NGramCopyConfig {
            letters: 26,
            ngram: 2,
            answer_letters: Some(1),
            ..NGramCopyConfig::default()
        };
        let chance = TaskConfig::from(config).build().unwrap().chance_at(100).unwrap();
        assert!((chance - 1.0 / 26.0).abs() < 1e-12, "{chance}");
    }
}
