//! # MRCR: recall the i-th value of a key
//! ## What it asks of an encoding
//! Addressing by content and by count at once: several values were written to each key, and a question names the key
//! and which of its writes is meant. In MQAR finding the key suffices. Here the writes to the key must be counted, and
//! writes to other keys must not.
//!
//! ## Predicted order
//! Contextual positions and transforms that accumulate with content (CoPE, PaTH) before gates that forget (FoX,
//! stick-breaking), which favour the last write, before RoPE and NoPE. Positions that count tokens cannot count the
//! writes to one key. CoPE counts backwards from the question, so `from = "end"` is easier for it. The first and the
//! last write can be found without counting; the slice `index` shows each index separately. We know of no measurement.
//!
//! ## Definition
//! Writes `key value` fill the sequence up to the questions; keys and values are independent and uniform. Then `? i key
//! value` follows `questions` times, and its value is scored. This is the value of the i-th write to the key, counted
//! from the first write (`from = "start"`) or from the last (`"end"`). The key is uniform among those that were
//! written, and `i` is uniform from 1 to the number of its writes, at most `max_index`. Questions do not count as
//! writes. `len` counts all tokens and is even.
//!
//! Settings: `keys` 4 (1 to 26), `values` 16 (2 to 65536), `max_index` 4 (1 to 65536), `from` `start`, `questions` 1 (1 to
//! 1024). Slices of tokens: `index`, the number `i`, and `distance` in tokens from the value to the answer. Chance: one
//! over `values` for one question, otherwise the share of the most frequent answer among simulated samples.
//!
//! ## Sample
//! ```text
//! C v11 C v7 C v11 C v0 A v14 C v8 B v13 D v14 B v12 D v2 ? 2 B v12
//!                                                               ^^^
//! ```
//!
//! ## Source
//! Vodrahalli et al.: Michelangelo, 2024, arXiv 2409.12640, task MRCR: a conversation with several texts of each kind,
//! in which a question names the kind and number of one text. The task is English for pretrained language models; here
//! kinds and texts are tokens, so that a small model can learn the task from scratch.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, simulated_chance};
use crate::random::below;
use crate::settings::settings;
use crate::task::{check_even, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

/// Number of tokens of a question and its answer, `? i key value`.
const QUESTION: usize = 4;
const ASK: u32 = 0;

/// End of the sequence from which the writes to a key are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedFrom {
    /// The first write to a key has number 1.
    Start,
    /// The last write to a key has number 1.
    End,
}

settings! {
    /// Settings of MRCR. Token ids: `?`, the keys, the values, the numbers from 0 (which is not asked for) to `max_index`.
    #[derive(Eq)]
    pub struct MrcrConfig {
        /// Number of keys, 1 to 26.
        pub keys: u32 = 4,
        /// Number of values, 2 to 65536.
        pub values: u32 = 16,
        /// Greatest number of a write that is asked for, 1 to 65536.
        pub max_index: u32 = 4,
        /// End from which writes are counted.
        pub from: CountedFrom = CountedFrom::Start,
        /// Number of questions, 1 to 1024.
        pub questions: u32 = 1,
    }
}

impl MrcrConfig {
    fn first_value(&self) -> u32 {
        1 + self.keys
    }

    fn first_number(&self) -> u32 {
        self.first_value() + self.values
    }

    /// Number of tokens of all questions and answers.
    fn asked_tokens(&self) -> usize {
        QUESTION * self.questions as usize
    }

    /// Returns the place of the value of write number `index` to a key, from 1, among writes.
    fn place(&self, writes: &[u32], key: u32, index: u32) -> Option<usize> {
        let mut places = (0..writes.len()).step_by(2).filter(|t| writes[*t] == key);
        let nth = index.saturating_sub(1) as usize;
        let found = match self.from {
            CountedFrom::Start => places.nth(nth),
            CountedFrom::End => places.nth_back(nth),
        };
        found.map(|t| t + 1)
    }

    /// Places of the scored values of a sample, each with the key and the number of its question.
    fn asked(&self, sample: &Sample) -> Vec<(usize, u32, u32)> {
        let tokens = &sample.tokens;
        let answers = (0..tokens.len()).filter(|t| sample.scored[*t]);
        answers.map(|t| (t, tokens[t - 1], tokens[t - 2] - self.first_number())).collect()
    }

    /// Writes of a sample.
    fn writes<'a>(&self, sample: &'a Sample) -> &'a [u32] {
        &sample.tokens[..sample.tokens.len() - self.asked_tokens()]
    }
}

impl Generator for MrcrConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "mrcr",
        label: "Multi-round coreference",
        summary: "Recall the i-th of several values that were written to a key.",
        source: "Vodrahalli et al. 2024 (Michelangelo), arXiv 2409.12640",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("mrcr.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "As in training, at exactly the given length.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "keys", self.keys, &(1..=26))?;
        check_setting(Self::META, "values", self.values, &(2..=1 << 16))?;
        check_setting(Self::META, "max_index", self.max_index, &(1..=1 << 16))?;
        check_setting(Self::META, "questions", self.questions, &(1..=1024))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            TokenGroup::Signs(&["?"]),
            TokenGroup::Letters('A', self.keys),
            TokenGroup::Numbered("v", self.values),
            TokenGroup::Numbered("", self.max_index + 1),
        ]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(
            Self::META,
            len,
            2 + self.asked_tokens(),
            "the minimum fits one write and the questions",
        )?;
        check_even(Self::META, len, "each key is followed by its value")
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let end = len - self.asked_tokens();
        let mut counts = [0_u32; 26];
        let mut tokens = Vec::with_capacity(len);
        for _ in 0..end / 2 {
            let key = below(rng, self.keys);
            counts[key as usize] += 1;
            tokens.extend([1 + key, self.first_value() + below(rng, self.values)]);
        }
        let written: Vec<u32> = (0..self.keys).filter(|key| counts[*key as usize] > 0).collect();
        let mut scored = vec![false; len];
        for _ in 0..self.questions {
            let key = written[below(rng, written.len() as u32) as usize];
            let index = 1 + below(rng, counts[key as usize].min(self.max_index));
            let value = self.place(&tokens[..end], 1 + key, index).map_or(0, |at| tokens[at]);
            tokens.extend([ASK, self.first_number() + index, 1 + key, value]);
            scored[tokens.len() - 1] = true;
        }
        Sample { tokens, scored, slices: Vec::new() }
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let writes = self.writes(sample);
        let asked = self.asked(sample);
        let distance = |(t, key, index): &(usize, u32, u32)| {
            (t - self.place(writes, *key, *index).unwrap_or(0)) as u32
        };
        let distances = asked.iter().map(distance).collect();
        let indices = asked.iter().map(|(_, _, index)| *index).collect();
        vec![("index", indices), ("distance", distances)]
    }

    /// Marks the writes to the keys that are asked for.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let asked = self.asked(sample);
        let is_asked = |token: &u32| asked.iter().any(|(_, key, _)| key == token);
        let mut marks: Vec<bool> = self.writes(sample).iter().map(is_asked).collect();
        marks.resize(sample.tokens.len(), false);
        Some(marks)
    }

    fn chance(&self) -> Option<f64> {
        (self.questions == 1).then(|| 1.0 / f64::from(self.values))
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        // Two questions may ask for one write.
        self.chance().or_else(|| Some(simulated_chance(self, len)))
    }
}

/// Tests of MRCR.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 c7f75bfb6f433f2677a0694c66432d8a68fe9fb0b00bf9e0fce21dbfe6ee1f84";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(MrcrConfig::default());
        let many = MrcrConfig { keys: 3, max_index: 9, questions: 5, ..MrcrConfig::default() };
        let two = MrcrConfig { values: 4, questions: 2, ..MrcrConfig::default() };
        Example::synthetic(config, 24, oracle, GOLDEN)
            .with_oracle_config(many.into(), 80)
            .with_chance_config(two.into(), 24)
    }

    /// Lists the values that were written to the last key before the first question, and takes the requested one of them from
    /// the first.
    fn oracle(prefix: &[String]) -> Option<String> {
        let [.., ask, index, key] = prefix else { return None };
        assert_eq!(ask, "?");
        let writes = prefix.split(|text| text == "?").next()?;
        let of_key = writes.chunks(2).filter(|write| write[0] == *key);
        let index: usize = index.parse().ok()?;
        of_key.map(|write| write[1].clone()).nth(index - 1)
    }

    /// Texts of the writes to a key, then the number and the value of a question.
    fn asked(task: &dyn Task, sample: &Sample) -> (Vec<String>, usize, String) {
        let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
        let end = texts.len() - 4;
        let writes = texts[..end].chunks(2).filter(|write| write[0] == texts[end + 2]);
        (
            writes.map(|write| write[1].clone()).collect(),
            texts[end + 1].parse().unwrap(),
            texts[end + 3].clone(),
        )
    }

    #[test]
    fn writes_are_counted_from_either_end() {
        for from in [CountedFrom::Start, CountedFrom::End] {
            let task = MrcrConfig { from, values: 999, ..MrcrConfig::default() }.build().unwrap();
            for sample in task.eval_set("uniform", 60, 200, 1).unwrap() {
                let (written, index, value) = asked(&task, &sample);
                let place =
                    if from == CountedFrom::Start { index - 1 } else { written.len() - index };
                assert_eq!(written[place], value);
            }
        }
    }

    #[test]
    fn every_number_up_to_the_greatest_is_asked_for_equally_often() {
        // 28 writes to one key: each of its first four is asked for.
        let task = MrcrConfig { keys: 1, ..MrcrConfig::default() }.build().unwrap();
        let mut counts = [0_u32; 5];
        for sample in task.eval_set("uniform", 60, 4000, 2).unwrap() {
            counts[asked(&task, &sample).1] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| count.abs_diff(1000) < 160), "{counts:?}");
    }

    #[test]
    fn slices_and_marks_agree_with_the_tokens() {
        let config = MrcrConfig { questions: 3, ..MrcrConfig::default() };
        let task = config.build().unwrap();
        for sample in task.eval_set("uniform", 50, 100, 3).unwrap() {
            let [(index, numbers), (distance, distances)] = &task.token_slices(&sample)[..] else {
                panic!("two slices");
            };
            assert_eq!((*index, *distance), ("index", "distance"));
            let answers: Vec<usize> = (0..50).filter(|t| sample.scored[*t]).collect();
            assert_eq!(answers, [41, 45, 49]);
            let marks = task.counted(&sample).unwrap();
            for ((t, number), distance) in answers.into_iter().zip(numbers).zip(distances) {
                let [place, key] = [t - *distance as usize, t - *distance as usize - 1];
                assert!(place < 38 && sample.tokens[place] == sample.tokens[t]);
                assert!(sample.tokens[key] == sample.tokens[t - 1] && marks[key]);
                let before =
                    sample.tokens[..=key].iter().filter(|token| **token == sample.tokens[key]);
                assert_eq!(
                    (before.count() as u32, task.token_text(sample.tokens[t - 2])),
                    (*number, number.to_string())
                );
            }
            let keys = [40, 44, 48].map(|t| sample.tokens[t]);
            let marked = (0..50).filter(|t| marks[*t]).collect::<Vec<_>>();
            let expected =
                (0..38).filter(|t| keys.contains(&sample.tokens[*t])).collect::<Vec<_>>();
            assert_eq!(marked, expected);
        }
    }

    #[test]
    fn bad_settings_and_lengths_name_the_field() {
        for (json, expected) in [
            (r#"{"keys": 27}"#, "keys is 27, must be between 1 and 26"),
            (r#"{"values": 1}"#, "values is 1, must be between 2 and 65536"),
            (r#"{"max_index": 0}"#, "max_index is 0, must be between 1 and 65536"),
            (r#"{"questions": 0}"#, "questions is 0, must be between 1 and 1024"),
        ] {
            let config: MrcrConfig = serde_json::from_str(json).unwrap();
            assert_eq!(config.build().unwrap_err().to_string(), format!("mrcr: {expected}"));
        }
        let unknown = serde_json::from_str::<MrcrConfig>(r#"{"from": "middle"}"#);
        assert!(unknown.unwrap_err().to_string().contains("expected `start` or `end`"));
        let task = MrcrConfig::default().build().unwrap();
        assert!(task.check_len(4).unwrap_err().to_string().contains("between 6 and"));
        assert!(task.check_len(7).unwrap_err().to_string().contains("even, such as 8"));
    }
}
