//! # Passage: questions about words, sentences and paragraphs
//! ## What it asks of an encoding
//! Addressing by units of the text: the i-th last word, the first or last word of the i-th last sentence, the whole
//! last sentence, the occurrences of a word or the number of sentences since the paragraph began. The distance in
//! tokens to a given sentence varies, but the number of sentence ends in between does not.
//!
//! ## Predicted order
//! CoPE, whose gates can open only at the ends of sentences, before all encodings by distance; Golovneva et al. 2024
//! state this aim and measure it on other tasks. The difference should be largest where sentences are longer than in
//! training. For the i-th last word, encodings by distance are nearly as good.
//!
//! ## Definition
//! Paragraphs of 1 to `sentences` sentences, each of `min_words` to `max_words` words, all uniform; `¶` begins a
//! paragraph, and `.` ends a sentence. The text ends with a whole sentence and loses tokens on the left. Then follow a
//! question and its answer, which is scored:
//! * `word i ?`: the i-th last word;
//! * `start i ?`, `end i ?`: the first or the last word of the i-th last sentence;
//! * `sentence ?`: the last sentence with its `.`;
//! * `count w ?`: how often `w` occurs since the last `¶`. In three of four questions `w` is a word that occurs there,
//!   otherwise any word of the text. `max_count` means `max_count` or more;
//! * `count . ?`: the number of sentences since the last `¶`; only with the setting `count-sentences`.
//!
//! `i` is uniform up to `max_index`, as far as the text has this many words or whole sentences. The splits have
//! sentences of as many words as in training, of twice as many and of half as many. `len` counts all tokens.
//!
//! Settings: `question` `any` (each of the first five with the same probability) or one of `word`, `start`, `end`,
//! `sentence`, `count`, `count-sentences`; `words` 32 kinds (1 to 65536), `min_words` 2, `max_words` 4 (1 to 1024),
//! `sentences` 4 (1 to 1024), `max_index` 8 and `max_count` 63 (1 to 65536). Slices: `question` (0 to 5 in the order
//! above), `index` (`i`, 1 or the count), `distance` in tokens from the first token that decides the answer to the
//! question. Chance: the share of the most frequent answer among simulated samples.
//!
//! ## Sample
//! ```text
//! w13 w26 . ¶ w15 w25 w28 w4 . w28 w29 w24 . w16 w19 w11 . w24 w18 . ¶ w6 w31 .
//! w20 w19 w18 . w18 w26 w27 w24 . sentence ? w18 w26 w27 w24 .
//!                                            ^^^ ^^^ ^^^ ^^^ ^
//! ```
//!
//! ## Source
//! The questions of Golovneva et al.: Contextual Position Encoding, 2024, arXiv 2405.18719, whose introduction asks for
//! the i-th word or sentence and for counts since a sentence or paragraph began; the paper has no such data.
//! `text-passage` asks the same about real text.

use rand_chacha::ChaCha8Rng;

use crate::generator::{Generator, simulated_chance};
use crate::passage::{Numbers, PARAGRAPH, PassageQuestion, SENTENCE_END, SIGNS};
use crate::random::below;
use crate::settings::settings;
use crate::task::{check_between, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

settings! {
    /// Settings of passage. Token ids: the signs, the numbers from 0, the words.
    #[derive(Eq)]
    pub struct PassageConfig {
        /// Question that is asked.
        pub question: PassageQuestion = PassageQuestion::Any,
        /// Kinds of words, 1 to 65536.
        pub words: u32 = 32,
        /// Fewest words of a sentence.
        pub min_words: u32 = 2,
        /// Most words of a sentence, 1 to 1024.
        pub max_words: u32 = 4,
        /// Most sentences of a paragraph, 1 to 1024.
        pub sentences: u32 = 4,
        /// Greatest number `i` in a question.
        pub max_index: u32 = 8,
        /// Greatest count in an answer; more are answered by the same number.
        pub max_count: u32 = 63,
    }
}

impl PassageConfig {
    fn numbers(&self) -> Numbers {
        Numbers { max_index: self.max_index, max_count: self.max_count }
    }

    /// Draws a text of whole sentences of the split, with at least `tokens` tokens, and the number of words of its last
    /// sentence.
    fn text(&self, split: usize, tokens: usize, rng: &mut ChaCha8Rng) -> (Vec<u32>, usize) {
        let scaled = |words: u32| [words, 2 * words, (words / 2).max(1)][split];
        let (min, max) = (scaled(self.min_words), scaled(self.max_words));
        let mut text = Vec::with_capacity(tokens + max as usize + 1);
        loop {
            text.push(PARAGRAPH);
            for _ in 0..=below(rng, self.sentences) {
                let words = min + below(rng, max - min + 1);
                let first = self.numbers().first_word();
                text.extend((0..words).map(|_| first + below(rng, self.words)));
                text.push(SENTENCE_END);
                if text.len() >= tokens {
                    return (text, words as usize);
                }
            }
        }
    }
}

impl Generator for PassageConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "passage",
        label: "Passage",
        summary: "Answer questions about the words, sentences and paragraphs of a generated text.",
        source: "after Golovneva et al. 2024 (CoPE), arXiv 2405.18719",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("passage.rs");
    const SPLITS: &'static [Split] = &[
        Split::as_trained("in-distribution", "Sentences as long as in training."),
        Split::shifted("long-sentences", "Sentences of twice as many words."),
        Split::shifted("short-sentences", "Sentences of half as many words."),
    ];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "words", self.words, &(1..=1 << 16))?;
        check_setting(Self::META, "max_words", self.max_words, &(1..=1024))?;
        let range = 1..=self.max_words;
        check_between(Self::META, "min_words", self.min_words, &range, "the value of `max_words`")?;
        check_setting(Self::META, "sentences", self.sentences, &(1..=1024))?;
        self.numbers().check(Self::META)
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            TokenGroup::Signs(SIGNS),
            TokenGroup::Numbered("", self.numbers().count()),
            TokenGroup::Numbered("w", self.words),
        ]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let least = PassageQuestion::least_len(2 * self.max_words as usize);
        check_range(
            Self::META,
            len,
            least,
            "the minimum fits the longest sentence of any split, and its copy",
        )
    }

    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let question = self.question.draw(rng);
        let (mut text, words) = self.text(split, len, rng);
        let lost = text.len() + question.tokens(words) - len;
        text.drain(..lost);
        self.numbers().ask(question, text, rng)
    }

    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        self.numbers().counted(sample)
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(simulated_chance(self, len))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::passage::answer;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 ee1c3e829c255edeb8188d46777df96232d34925cbc68de25f7ccc72cf2c628c";

    pub(crate) fn example() -> Example {
        let few = PassageConfig { words: 3, max_count: 2, ..PassageConfig::default() };
        let end =
            PassageConfig { question: PassageQuestion::End, words: 8, ..PassageConfig::default() };
        let config = TaskConfig::from(PassageConfig { max_count: 2, ..PassageConfig::default() });
        Example::synthetic(config, 40, |prefix| answer(prefix, 2), GOLDEN)
            .with_oracle_config(TaskConfig::from(few), 60)
            .with_chance_config(TaskConfig::from(end), 32)
    }

    #[test]
    fn samples_have_the_length_and_sentences_those_of_the_split() {
        let task = PassageConfig::default().build().unwrap();
        for (split, words) in
            [("in-distribution", 2..=4), ("long-sentences", 4..=8), ("short-sentences", 1..=2)]
        {
            let mut seen = std::collections::BTreeSet::new();
            for sample in task.eval_set(split, 90, 100, 3).unwrap() {
                assert_eq!(sample.tokens.len(), 90);
                let marks: Vec<usize> =
                    (0..80).filter(|t| sample.tokens[*t] <= PARAGRAPH).collect();
                let lens =
                    marks.windows(2).map(|pair| pair[1] - pair[0] - 1).filter(|len| *len > 0);
                seen.extend(lens.take(10));
            }
            assert_eq!(seen.into_iter().collect::<Vec<_>>(), words.collect::<Vec<_>>(), "{split}");
        }
    }

    #[test]
    fn sentences_since_the_paragraph_began_are_counted_in_the_vocabulary_of_the_other_questions() {
        let any = PassageConfig { max_count: 3, ..PassageConfig::default() }.build().unwrap();
        let question = PassageQuestion::CountSentences;
        let task = PassageConfig { question, max_count: 3, ..PassageConfig::default() };
        let task = task.build().unwrap();
        assert_eq!(task.vocab_size(), any.vocab_size());
        let mut seen = std::collections::BTreeSet::new();
        for sample in task.eval_set("long-sentences", 60, 100, 1).unwrap() {
            let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
            let (prefix, said) = (&texts[..59], &texts[59]);
            assert_eq!(prefix[56..], ["count", ".", "?"]);
            assert_eq!(answer(prefix, 3).as_ref(), Some(said));
            let counted = task.counted(&sample).unwrap().into_iter().filter(|c| *c).count();
            assert_eq!(counted.min(3).to_string(), *said);
            assert_eq!(sample.slices[0], ("question", 5));
            seen.insert(said.clone());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["1", "2", "3"]);
        assert!(
            any.eval_set("in-distribution", 60, 200, 1).unwrap().iter().all(|s| s.slices[0].1 < 5)
        );
    }

    #[test]
    fn one_question_can_be_chosen_and_bad_settings_name_the_field() {
        let parse = |json| serde_json::from_str::<PassageConfig>(json).unwrap();
        let task = parse(r#"{"question": "count"}"#).build().unwrap();
        let samples = task.eval_set("in-distribution", 64, 50, 1).unwrap();
        assert!(samples.iter().all(|sample| sample.slices[0] == ("question", 4)));
        let said = |json| parse(json).build().unwrap_err().to_string();
        assert!(
            said(r#"{"min_words": 5}"#).contains("min_words is 5, must be between 1 and 4, the")
        );
        assert!(said(r#"{"max_count": 0}"#).contains("max_count is 0, must be between 1 and"));
        let error = PassageConfig::default().build().unwrap().check_len(20).unwrap_err();
        assert!(error.to_string().contains("between 21 and"), "{error}");
    }
}
