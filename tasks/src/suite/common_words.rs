//! # Common words: name the most frequent words
//! ## What it asks of an encoding
//! Counting many words at once over the whole sequence, wherever they occur. Then naming the most frequent words in the
//! order of their first appearance, which depends on position.
//!
//! ## Predicted order
//! Encodings that can weigh all positions equally (NoPE, CoPE, T5-like biases) before RoPE; ALiBi last, since it
//! attenuates early words. There is no published comparison of encodings.
//!
//! ## Definition
//! A list of words in random order: `common` words `common_repeats` times each, and other words `uncommon_repeats`
//! times each. The last of the other words may occur fewer times, to fill the length. Then follow `?`, the common words
//! in the order of their first appearance, and `.`; the words and `.` are scored. The common words are drawn anew for
//! each sample. `len` counts all tokens.
//!
//! Settings: `words` 1024 (2 to 65536), `common` 2, `common_repeats` 5, `uncommon_repeats` 1 (less than
//! `common_repeats`). A length is an error if there are too few `words` to fill it. With the repeats of RULER, 30 and
//! 3, few words fill long sequences. Slice: `distinct`, the number of different words. Slice of tokens: `rank` in the
//! answer, from 0; the `.` has the rank after the last word. Chance: one over the number of ordered choices of `common`
//! words.
//!
//! ## Sample
//! ```text
//! w477 w670 w715 w670 w670 w562 w200 w670 w726 w747 w726 w726 w670 w900 w519
//! w726 w593 w574 w61 w726 ? w670 w726 .
//!                           ^^^^ ^^^^ ^
//! ```
//!
//! ## Source
//! Hsieh et al.: RULER, 2024, arXiv 2404.06654, task `cwe` (10 common words 30 times each, other words 3 times each;
//! below 4096 tokens 6 times and once; the answer in any order). RULER uses a numbered list of English words for
//! pretrained language models; here words are tokens, so that a small model can learn the task from scratch.

use rand_chacha::ChaCha8Rng;

use crate::generator::{Generator, one_of_orders};
use crate::random::{distinct, shuffle};
use crate::settings::settings;
use crate::task::{MAX_LEN, check_between, check_range, check_setting, invalid_len};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

settings! {
    /// Settings of common words. Token ids: the words, then `?` and `.`.
    #[derive(Eq)]
    pub struct CommonWordsConfig {
        /// Size of the vocabulary of words, 2 to 65536.
        pub words: u32 = 1024,
        /// Number of common words, 1 to `words`.
        pub common: u32 = 2,
        /// Occurrences of each common word, 2 to 65536.
        pub common_repeats: u32 = 5,
        /// Occurrences of each other word, 1 to one less than `common_repeats`.
        pub uncommon_repeats: u32 = 1,
    }
}

impl CommonWordsConfig {
    /// Number of tokens of the common words in the list.
    fn common_tokens(&self) -> usize {
        self.common as usize * self.common_repeats as usize
    }

    /// Number of tokens besides the list: the question, its answer and the end.
    fn asking_tokens(&self) -> usize {
        self.common as usize + 2
    }

    /// Number of tokens of the other words in the list, for a length with room for the common ones.
    fn other_tokens(&self, len: usize) -> usize {
        len - self.asking_tokens() - self.common_tokens()
    }
}

impl Generator for CommonWordsConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "common-words",
        label: "Common words",
        summary: "Name the most frequent words of a list.",
        source: "Hsieh et al. 2024 (RULER), arXiv 2404.06654",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("common_words.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "Lists in random order, of exactly the given length.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "words", self.words, &(2..=1 << 16))?;
        check_between(
            Self::META,
            "common",
            self.common,
            &(1..=self.words),
            "the value of `words`",
        )?;
        let most = (MAX_LEN - self.asking_tokens()) / self.common as usize;
        let range = 2..=most.min(1 << 16) as u32;
        let why = "so that the common words fit into some length";
        check_between(Self::META, "common_repeats", self.common_repeats, &range, why)?;
        let range = 1..=self.common_repeats - 1;
        let why = "fewer than common_repeats";
        check_between(Self::META, "uncommon_repeats", self.uncommon_repeats, &range, why)
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::Numbered("w", self.words), TokenGroup::Signs(&["?", "."])]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let min = self.asking_tokens() + self.common_tokens();
        check_range(
            Self::META,
            len,
            min,
            "the minimum fits the common words and the question alone",
        )?;
        let Self { words, common, uncommon_repeats, .. } = *self;
        let room = (words - common) as usize * uncommon_repeats as usize;
        if self.other_tokens(len) <= room {
            return Ok(());
        }
        let most = (min + room).min(MAX_LEN);
        let expected = format!(
            "at most {most} tokens, which {words} words can fill; raise words or uncommon_repeats"
        );
        Err(invalid_len(Self::META, len, expected))
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let Self { words, common, common_repeats, uncommon_repeats } = *self;
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
        let mut is_awaited = vec![false; words as usize];
        for winner in winners {
            is_awaited[*winner as usize] = true;
        }
        let answer: Vec<u32> = tokens
            .iter()
            .copied()
            .filter(|word| std::mem::take(&mut is_awaited[*word as usize]))
            .collect();
        tokens.push(words);
        let asked_from = tokens.len();
        tokens.extend(answer);
        tokens.push(words + 1);
        Sample::scored_from(asked_from, tokens, vec![("distinct", kinds as u32)])
    }

    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        vec![("rank", (0..=self.common).collect())]
    }

    fn chance(&self) -> Option<f64> {
        Some(one_of_orders(self.common as usize, self.words))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 a7923e456aab31ac1b3b8b37c7f63337b6d44780d89de2f683543304e851d90b";

    fn config(words: u32, common: u32, repeats: [u32; 2]) -> CommonWordsConfig {
        let [common_repeats, uncommon_repeats] = repeats;
        CommonWordsConfig { words, common, common_repeats, uncommon_repeats }
    }

    pub(crate) fn example() -> Example {
        let default = TaskConfig::from(CommonWordsConfig::default());
        Example::synthetic(default, 24, oracle, GOLDEN)
            .with_oracle_config(TaskConfig::from(config(60, 4, [6, 2])), 90)
            .with_chance_config(TaskConfig::from(config(8, 2, [3, 1])), 14)
    }

    /// Counts all words of the list and returns those with the highest count in order of appearance.
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
        let most = 1 << 16;
        let too_many = said(most, most, [most, 1]);
        assert!(too_many.contains("common_repeats is 65536, must be between 2 and 254, so"));
        let task = config(most, most, [254, 1]).build().unwrap();
        assert!(task.check_len(255 * (1 << 16) + 2).is_ok());
        let task = config(9, 2, [5, 1]).build().unwrap();
        assert!(task.check_len(13).unwrap_err().to_string().contains("between 14 and"));
        assert!(task.check_len(21).is_ok());
        let said = task.check_len(22).unwrap_err().to_string();
        assert!(said.contains("at most 21 tokens") && said.contains("raise words"), "{said}");
    }
}
