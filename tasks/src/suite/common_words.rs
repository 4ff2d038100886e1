//! # Common words: which come most often?
//! ## What it asks of an encoding
//! To count over the whole sequence, many things at once, wherever they stand; and then to name the winners in the
//! order of their first appearance, which does depend on place.
//!
//! ## Predicted order
//! Encodings that can weigh all places alike (NoPE, CoPE, T5-like biases) before RoPE; ALiBi last, since early words
//! fade. Nothing is published for encodings side by side.
//!
//! ## Definition
//! A list of words in random order: `common` words `common_repeats` times each, others `uncommon_repeats` times each
//! (the last of them perhaps fewer times, to fill the length); then `?`, the common words in the order in which they
//! first appeared, and `.`, which are scored. Which words are common is drawn anew for each sample. `len` counts all
//! tokens.
//!
//! Settings: `words` 1024 (2 to 65536), `common` 2, `common_repeats` 5, `uncommon_repeats` 1 (fewer than
//! `common_repeats`). A list for which `words` are too few is refused; RULER's own repeats, 30 and 3, reach far with
//! few words. Slice: `distinct`, how many different words there are. Slice of tokens: `rank` in the answer, 0 on; the
//! `.` has the one after the last. Chance: one over the number of ordered choices of `common` words.
//!
//! ## Sample
//! ```text
//! w477 w670 w715 w670 w670 w562 w200 w670 w726 w747 w726 w726 w670 w900 w519
//! w726 w593 w574 w61 w726 ? w670 w726 .
//!                           ^^^^ ^^^^ ^
//! ```
//!
//! ## Source
//! Hsieh et al.: RULER, 2024, arXiv 2404.06654, task `cwe` (10 common words, 30 times each, others 3 times; below
//! 4096 tokens 6 times and once; the answer in any order). Theirs is a numbered list of English words for trained
//! language models; here words are tokens, so that a small model learns the task from nothing.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator, one_of_orders};
use crate::random::{distinct, shuffle};
use crate::task::{MAX_LEN, check_range, check_setting, invalid};
use crate::{Headline, Sample, Split, TaskError, TaskMeta, TokenSlice};

/// What is true of common words whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "common-words",
    label: "Common words",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "tokens",
    summary: "Name the words that come most often in a list.",
    source: "Hsieh et al. 2024 (RULER), arXiv 2404.06654",
    takes_path: false,
};

const SPLITS: &[Split] = &[Split {
    name: "uniform",
    in_distribution: true,
    about: "Lists in random order, of exactly the given length.",
}];

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommonWordsConfig {
    /// Size of the vocabulary of words, 2 to 65536.
    pub words: u32,
    /// How many words are common, 1 to `words`.
    pub common: u32,
    /// How often a common word comes, 2 to 65536.
    pub common_repeats: u32,
    /// How often any other word comes, 1 to one less than `common_repeats`.
    pub uncommon_repeats: u32,
}

impl Default for CommonWordsConfig {
    fn default() -> Self {
        Self { words: 1024, common: 2, common_repeats: 5, uncommon_repeats: 1 }
    }
}

impl CommonWordsConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<CommonWords>, TaskError> {
        check_setting(&META, "words", self.words, &(2..=1 << 16))?;
        check_setting(&META, "common_repeats", self.common_repeats, &(2..=1 << 16))?;
        if !(1..=self.words).contains(&self.common) {
            let expected = format!("between 1 and {}, the setting words", self.words);
            return Err(invalid(&META, "common", &self.common, expected));
        }
        let most = self.common_repeats - 1;
        if !(1..=most).contains(&self.uncommon_repeats) {
            let expected = format!("between 1 and {most}, fewer than common_repeats");
            return Err(invalid(&META, "uncommon_repeats", &self.uncommon_repeats, expected));
        }
        Ok(Generated(CommonWords { settings: self.clone() }))
    }
}

/// The common words task. Token ids: the words, then `?` and `.`.
#[derive(Debug, Clone)]
pub struct CommonWords {
    settings: CommonWordsConfig,
}

impl CommonWords {
    /// Tokens of the common words in the list.
    fn common_tokens(&self) -> usize {
        self.settings.common as usize * self.settings.common_repeats as usize
    }

    /// Tokens beside the list: the question, its answer and the end.
    fn asking_tokens(&self) -> usize {
        self.settings.common as usize + 2
    }

    /// Tokens of the list that are not of common words, for a length that has room for these.
    fn other_tokens(&self, len: usize) -> usize {
        len - self.asking_tokens() - self.common_tokens()
    }
}

impl Generator for CommonWords {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn vocab_size(&self) -> usize {
        self.settings.words as usize + 2
    }

    fn token_text(&self, token: u32) -> String {
        match token.checked_sub(self.settings.words) {
            None => format!("w{token}"),
            Some(1) => ".".to_owned(),
            Some(_) => "?".to_owned(),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let min = self.asking_tokens() + self.common_tokens();
        check_range(&META, len, min, "the common words and the question alone")?;
        let CommonWordsConfig { words, common, uncommon_repeats, .. } = self.settings;
        let room = (words - common) as usize * uncommon_repeats as usize;
        if self.other_tokens(len) <= room {
            return Ok(());
        }
        let most = (min + room).min(MAX_LEN);
        Err(TaskError::InvalidLen {
            task: META.id,
            len,
            expected: format!(
                "at most {most} tokens, which {words} words can fill; raise words or uncommon_repeats"
            ),
        })
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let CommonWordsConfig { words, common, common_repeats, uncommon_repeats } = self.settings;
        let others = self.other_tokens(len);
        let kinds = common as usize + others.div_ceil(uncommon_repeats as usize);
        let drawn = distinct(rng, kinds, words);
        let (winners, rest) = drawn.split_at(common as usize);
        let repeated = |words: &[u32], times: u32| -> Vec<u32> {
            words.iter().flat_map(|word| std::iter::repeat_n(*word, times as usize)).collect()
        };
        let mut tokens = repeated(winners, common_repeats);
        tokens.extend(repeated(rest, uncommon_repeats).into_iter().take(others));
        shuffle(rng, &mut tokens);
        let first_place =
            |word: &u32| tokens.iter().position(|listed| listed == word).unwrap_or(usize::MAX);
        let mut answer = winners.to_vec();
        answer.sort_by_cached_key(first_place);
        tokens.push(words);
        let asked_from = tokens.len();
        tokens.extend(answer);
        tokens.push(words + 1);
        Sample::scored_from(asked_from, tokens, vec![("distinct", kinds as u32)])
    }

    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        vec![("rank", (0..=self.settings.common).collect())]
    }

    fn chance(&self) -> Option<f64> {
        Some(one_of_orders(self.settings.common as usize, self.settings.words))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Of `checks::golden`: version and hash.
    const GOLDEN: &str = "v1 a7923e456aab31ac1b3b8b37c7f63337b6d44780d89de2f683543304e851d90b";

    fn config(words: u32, common: u32, repeats: [u32; 2]) -> CommonWordsConfig {
        let [common_repeats, uncommon_repeats] = repeats;
        CommonWordsConfig { words, common, common_repeats, uncommon_repeats }
    }

    pub(crate) fn example() -> Example {
        let default = TaskConfig::CommonWords(CommonWordsConfig::default());
        Example::synthetic(default, 24, oracle, GOLDEN)
            .with_oracle_config(TaskConfig::CommonWords(config(60, 4, [6, 2])), 90)
            .with_chance_config(TaskConfig::CommonWords(config(8, 2, [3, 1])), 14)
    }

    /// Counts all words of the list, and takes those with the highest count as they come.
    fn oracle(prefix: &[String]) -> Option<String> {
        let asked = prefix.iter().position(|text| text == "?")?;
        let (list, done) = (&prefix[..asked], prefix.len() - asked - 1);
        let mut counts = BTreeMap::new();
        for word in list {
            *counts.entry(word).or_insert(0) += 1;
        }
        let most = *counts.values().max()?;
        let mut winners: Vec<&String> = Vec::new();
        for word in list.iter().filter(|word| counts[word] == most) {
            if !winners.contains(&word) {
                winners.push(word);
            }
        }
        Some(winners.get(done).map_or_else(|| ".".to_owned(), |word| (*word).clone()))
    }

    #[test]
    fn counts_are_those_of_the_settings() {
        let task = config(40, 3, [7, 2]).build().unwrap();
        // 21 common, 16 others in pairs, then an odd one.
        for (len, others) in [(42, 8), (43, 9)] {
            for sample in task.eval_set("uniform", len, 30, 1).unwrap() {
                assert_eq!(sample.tokens.len(), len);
                let mut counts = BTreeMap::new();
                for word in &sample.tokens[..len - 5] {
                    *counts.entry(*word).or_insert(0) += 1;
                }
                let with = |n| counts.values().filter(|count| **count == n).count();
                assert_eq!((with(7), with(2), with(1)), (3, 8, others - 8));
                assert_eq!(sample.slices, [("distinct", counts.len() as u32)]);
                assert_eq!(task.token_slices(&sample), [("rank", vec![0, 1, 2, 3])]);
            }
        }
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        let said = |words, common, repeats| {
            config(words, common, repeats).build().unwrap_err().to_string()
        };
        assert_eq!(said(1, 1, [5, 1]), "common-words: words is 1, must be between 2 and 65536");
        assert!(said(9, 10, [5, 1]).contains("common is 10, must be between 1 and 9, the"));
        assert!(said(9, 2, [1, 1]).contains("common_repeats is 1, must be between 2"));
        assert!(said(9, 2, [5, 5]).contains("uncommon_repeats is 5, must be between 1 and 4,"));
        let task = config(9, 2, [5, 1]).build().unwrap();
        assert!(task.check_len(13).unwrap_err().to_string().contains("between 14 and"));
        assert!(task.check_len(21).is_ok());
        let said = task.check_len(22).unwrap_err().to_string();
        assert!(said.contains("at most 21 tokens") && said.contains("raise words"), "{said}");
    }
}
