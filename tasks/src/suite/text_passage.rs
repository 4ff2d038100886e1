//! # Text passage: questions about words, sentences and paragraphs of real text
//! ## What it asks of an encoding
//! The same as `passage`, on text with the words and sentence lengths of a language. The model addresses units of the
//! text, while some of the words can be predicted from the language.
//!
//! ## Predicted order
//! As in `passage`: contextual positions before positions by distance for sentences and counts. We know of no
//! measurement.
//!
//! ## Definition
//! Words are separated by white space, without the punctuation at their ends, and in lower case. The `words` most
//! frequent words of the training part are tokens; all others are `<other>`. A word that ends with `.`, `!` or `?`,
//! before any closing quotes and brackets, ends a sentence (`.`), so abbreviations end sentences as well. An empty line
//! and the beginning of a document begin a paragraph (`¶`) and end the sentence.
//!
//! A sample is a text that ends with a uniformly drawn sentence, followed by a question and its answer as in `passage`.
//! It has `len` tokens in all. Sentences of more than `(len - 5) / 2` words could not be copied and are not drawn as
//! the last one. The text is shorter near the beginning of its part.
//!
//! Settings: `corpus` (a known text, default `tinyshakespeare`) or `path` (a file or folder, with `field` for the column of
//! its rows), not both; `question` `any`, `words` 2000 (1 to 65536), `max_index` 8, `max_count` 63, as in `passage`. Slices:
//! as in `passage`. The splits are the parts of the text. Chance: the share of the most frequent answer among simulated
//! samples.
//!
//! ## Sample
//! From an invented text:
//! ```text
//! nobody hears a <other> . zoé forgets <other> <other> . the pilot forgets
//! <other> again . the old ferry hears the <other> again . a gull follows <other>
//! <other> again . sentence ? a gull follows <other> <other> again .
//!                            ^ ^^^^ ^^^^^^^ ^^^^^^^ ^^^^^^^ ^^^^^ ^
//! ```
//!
//! ## Source
//! As `passage`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::corpus::CORPORA;
use crate::data::{Part, Parts};
use crate::generator::{drawn_answers, guessed_share};
use crate::passage::{Numbers, PARAGRAPH, PassageQuestion, SENTENCE_END, SIGNS, whole_sentences};
use crate::random::{below, eval_rng};
use crate::settings::TaskSettings;
use crate::suite::text::{SPLITS, TextSource, eval_parts};
use crate::task::{check_range, check_setting, find_split, invalid};
use crate::vocabulary::{TokenGroup, token_text, vocab_size};
use crate::{Sample, Split, Task, TaskError, TaskMeta};

const META: TaskMeta = TaskMeta {
    id: "text-passage",
    label: "Text passage",
    summary: "Answer questions about the words, sentences and paragraphs of real text.",
    source: "after Golovneva et al. 2024 (CoPE), arXiv 2405.18719",
    takes_path: true,
    ..TaskMeta::GENERATED
};

/// Word that stands for all rare ones, the first word token.
const OTHER: &str = "<other>";

/// Settings of text passage. Token ids: the signs, the numbers from 0, `<other>`, the words by frequency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextPassageConfig {
    /// Id of a known text; `None` with a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corpus: Option<String>,
    /// File or folder; see [`crate::data`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Field or column of rows to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Question that is asked.
    pub question: PassageQuestion,
    /// Number of words that are tokens, 1 to 65536.
    pub words: u32,
    /// Greatest number `i` in a question.
    pub max_index: u32,
    /// Greatest count in an answer; more are answered by the same number.
    pub max_count: u32,
}

impl Default for TextPassageConfig {
    fn default() -> Self {
        let (corpus, path, field) = (None, None, None);
        let question = PassageQuestion::Any;
        Self { corpus, path, field, question, words: 2000, max_index: 8, max_count: 63 }
    }
}

impl TaskSettings for TextPassageConfig {
    type Task = TextPassage;

    const META: &'static TaskMeta = &META;

    const SOURCE: &'static str = include_str!("text_passage.rs");

    /// Reads the text, which is fetched first if it is a corpus that is not on this machine.
    ///
    /// # Errors
    /// [`TaskError::Corpus`] if the text is not available, [`TaskError::InvalidSetting`] for other settings.
    fn build(&self) -> Result<TextPassage, TaskError> {
        check_setting(&META, "words", self.words, &(1..=1 << 16))?;
        self.numbers().check(&META)?;
        let Self { corpus, path, field, .. } = self.clone();
        let source = TextSource::of(corpus, path, field).map_err(|_| self.conflict())?;
        TextPassage::of(&source.read()?, self)
    }
}

impl TextPassageConfig {
    fn numbers(&self) -> Numbers {
        Numbers { max_index: self.max_index, max_count: self.max_count }
    }

    /// Error for settings that name two texts, or rows of none.
    fn conflict(&self) -> TaskError {
        match (&self.path, &self.field) {
            (None, Some(field)) => {
                let expected =
                    "left out, because `field` names a column of `path`, which is not given";
                invalid(&META, "field", field, expected.to_owned())
            }
            (path, _) => {
                let path = path.as_deref().unwrap_or(Path::new(""));
                invalid(&META, "path", &path, "left out, because `corpus` is given".to_owned())
            }
        }
    }
}

/// Questions about one text.
pub struct TextPassage {
    config: TextPassageConfig,
    words: Vec<String>,
    /// Parts of the text, in the order of [`Part::ALL`].
    parts: [Passages; 3],
    sha256: String,
}

/// Tokens of one part, with its sentences.
#[derive(Default)]
struct Passages {
    tokens: Vec<u32>,
    /// First words and ends of the sentences, sorted by their number of words.
    sentences: Vec<(usize, usize)>,
}

impl std::fmt::Debug for TextPassage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextPassage").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Unit of a text.
enum Unit {
    Word(String),
    SentenceEnd,
    Paragraph,
}

/// Divides a document into words and marks: a paragraph at its beginning, never two marks in a row except the end of a
/// sentence before a paragraph.
fn units(text: &str) -> Vec<Unit> {
    let mut units = vec![Unit::Paragraph];
    let end = |units: &mut Vec<Unit>| {
        if matches!(units.last(), Some(Unit::Word(_))) {
            units.push(Unit::SentenceEnd);
        }
    };
    for line in text.lines() {
        if line.trim().is_empty() {
            end(&mut units);
            if !matches!(units.last(), Some(Unit::Paragraph)) {
                units.push(Unit::Paragraph);
            }
        }
        for run in line.split_whitespace() {
            let word = run.trim_matches(|c: char| !c.is_alphanumeric());
            if !word.is_empty() {
                units.push(Unit::Word(word.to_lowercase()));
            }
            let closing = |c: char| matches!(c, '"' | '\'' | '”' | '’' | '»' | ')' | ']');
            if run.trim_end_matches(closing).ends_with(['.', '!', '?']) {
                end(&mut units);
            }
        }
    }
    end(&mut units);
    units
}

impl TextPassage {
    fn of(parts: &Parts, config: &TextPassageConfig) -> Result<Self, TaskError> {
        let units: Vec<(Part, Vec<Unit>)> =
            parts.documents.iter().map(|(part, document)| (*part, units(&document.text))).collect();
        let mut frequency: BTreeMap<&str, usize> = BTreeMap::new();
        for unit in units.iter().filter(|(part, _)| *part == Part::Train).flat_map(|(_, u)| u) {
            if let Unit::Word(word) = unit {
                *frequency.entry(word).or_default() += 1;
            }
        }
        let mut words: Vec<(&str, usize)> = frequency.into_iter().collect();
        // Equally frequent words stay in alphabetical order.
        words.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        words.truncate(config.words as usize);
        let words: Vec<String> = [OTHER]
            .into_iter()
            .chain(words.into_iter().map(|(word, _)| word))
            .map(str::to_owned)
            .collect();
        let ids: BTreeMap<&str, u32> = words.iter().map(String::as_str).zip(0..).collect();
        let first = config.numbers().first_word();
        let mut found = [(); 3].map(|()| Passages::default());
        for (part, units) in &units {
            let passages = &mut found[*part as usize];
            passages.tokens.extend(units.iter().map(|unit| match unit {
                Unit::Word(word) => first + ids.get(word.as_str()).copied().unwrap_or_default(),
                Unit::SentenceEnd => SENTENCE_END,
                Unit::Paragraph => PARAGRAPH,
            }));
        }
        found.iter_mut().for_each(Passages::find_sentences);
        let task =
            Self { config: config.clone(), words, parts: found, sha256: parts.sha256.clone() };
        for part in [Part::Train, Part::Validation] {
            if task.part(part).sentences.is_empty() {
                let expected = format!("a text with sentences in its {} part", part.id());
                let (field, named) = match &config.path {
                    Some(path) => ("path", path.display().to_string()),
                    None => {
                        ("corpus", config.corpus.as_deref().unwrap_or(CORPORA[0].id).to_owned())
                    }
                };
                return Err(invalid(&META, field, &named, expected));
            }
        }
        Ok(task)
    }

    fn part(&self, part: Part) -> &Passages {
        &self.parts[part as usize]
    }

    fn eval_parts(&self) -> &'static [Part] {
        eval_parts(!self.part(Part::Test).sentences.is_empty())
    }

    /// Tokens before the words.
    fn signs(&self) -> [TokenGroup; 2] {
        let numbers = TokenGroup::Numbered("", self.config.numbers().count());
        [TokenGroup::Signs(SIGNS), numbers]
    }

    fn sample(&self, part: Part, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let question = self.config.question.draw(rng);
        let passages = self.part(part);
        let (first, end) = passages.sentences[below(rng, passages.fitting(len) as u32) as usize];
        let start = (end + 1 + question.tokens(end - first)).saturating_sub(len);
        let text = passages.tokens[start..=end].to_vec();
        self.config.numbers().ask(question, text, rng)
    }
}

impl Passages {
    fn find_sentences(&mut self) {
        self.sentences = whole_sentences(&self.tokens);
        // Sentences of as many words are in the order of the text, on which the samples depend.
        self.sentences.reverse();
        self.sentences.sort_by_key(|(start, end)| end - start);
    }

    /// Smallest length at which the shortest sentence can be the last one.
    fn least_len(&self) -> Option<usize> {
        self.sentences.first().map(|(start, end)| PassageQuestion::least_len(end - start))
    }

    /// Number of sentences that can be the last one at this length.
    fn fitting(&self, len: usize) -> usize {
        let fits = |(start, end): &(usize, usize)| PassageQuestion::least_len(end - start) <= len;
        self.sentences.partition_point(fits)
    }
}

impl Task for TextPassage {
    fn meta(&self) -> &'static TaskMeta {
        &META
    }

    fn vocab_size(&self) -> usize {
        vocab_size(&self.signs()) + self.words.len()
    }

    fn token_text(&self, token: u32) -> String {
        let word = token.checked_sub(self.config.numbers().first_word());
        let word = word.and_then(|word| self.words.get(word as usize));
        word.map_or_else(|| token_text(&self.signs(), token), Clone::clone)
    }

    fn splits(&self) -> &'static [Split] {
        &SPLITS[..self.eval_parts().len()]
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let parts = [Part::Train].iter().chain(self.eval_parts());
        let least = parts.filter_map(|part| self.part(*part).least_len());
        let why = "the shortest sentence of each part, and its copy";
        check_range(&META, len, least.max().unwrap_or(1), why)
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        self.sample(Part::Train, len, rng)
    }

    fn eval_set(
        &self,
        split: &str,
        len: usize,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        let (number, split) = find_split(self, split)?;
        self.check_len(len)?;
        let mut rng = eval_rng(META.id, split.name, len, seed);
        Ok((0..count).map(|_| self.sample(self.eval_parts()[number], len, &mut rng)).collect())
    }

    fn data_sha256(&self) -> Option<&str> {
        Some(&self.sha256)
    }

    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        self.config.numbers().counted(sample)
    }

    /// Texts near the beginning of a part are shorter.
    fn has_trained_size(&self, sample: &Sample, _len: usize, train_len: usize) -> bool {
        sample.tokens.len() <= train_len
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        self.check_len(len).ok()?;
        let sample = |_, rng: &mut ChaCha8Rng| self.sample(Part::Validation, len, rng);
        Some(guessed_share(&drawn_answers(META.id, len, sample)))
    }
}

/// Tests of text passage.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::TaskConfig;
    use crate::passage::answer;
    use crate::testing::{Example, harbour_text, write_temp};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 97d49973df8c3e1663a694d6698a0e8912f04dd0530c334b9c2aca8e491843d0";

    pub(crate) fn example() -> Example {
        let (folder, path) = write_temp(harbour_text().as_bytes());
        let config =
            TextPassageConfig { path: Some(path), words: 12, ..TextPassageConfig::default() };
        let mut example = Example::from_text(
            TaskConfig::from(config),
            folder,
            40,
            |prefix| answer(prefix, 63),
            GOLDEN,
        );
        // Samples are drawn, although their text is given.
        example.synthetic = true;
        example
    }

    #[test]
    fn sentences_and_paragraphs_of_a_text_are_found() {
        let text = "\nOne two. \"Three!\" four\n\n\nFive (six) ...\nseven?\" 8.5\n";
        let shown: Vec<String> = units(text)
            .into_iter()
            .map(|unit| match unit {
                Unit::Word(word) => word,
                Unit::SentenceEnd => ".".to_owned(),
                Unit::Paragraph => "¶".to_owned(),
            })
            .collect();
        let expected = "¶ one two . three . four . ¶ five six . seven . 8.5 .";
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn rare_words_are_other_and_a_text_without_sentences_is_refused() {
        let config = TextPassageConfig { words: 1, ..TextPassageConfig::default() };
        let parts = |text: &str| {
            let cut = |part| (part, crate::data::TextDocument::unnamed(text.to_owned()));
            Parts::new([Part::Train, Part::Validation].map(cut).to_vec())
        };
        let task = TextPassage::of(&parts("a b b. c b."), &config).unwrap();
        let first = config.numbers().first_word();
        let (other, b) = (first, first + 1);
        assert_eq!(task.part(Part::Train).tokens, [PARAGRAPH, other, b, b, 0, other, b, 0]);
        assert_eq!((task.token_text(other).as_str(), task.token_text(b).as_str()), (OTHER, "b"));
        assert_eq!(task.token_text(b + 1), "?");
        assert_eq!(task.splits().len(), 1);
        let said = |config| TextPassage::of(&parts(" \n"), &config).unwrap_err().to_string();
        let expected = "must be a text with sentences in its training part";
        assert_eq!(
            said(config),
            format!("text-passage: corpus is \"tinyshakespeare\", {expected}")
        );
        let of_path =
            TextPassageConfig { path: Some("a.txt".into()), ..TextPassageConfig::default() };
        assert_eq!(said(of_path), format!("text-passage: path is \"a.txt\", {expected}"));
    }

    #[test]
    fn settings_that_name_two_texts_or_rows_of_none_are_refused() {
        let said = |json| {
            let config: TextPassageConfig = serde_json::from_str(json).unwrap();
            config.build().unwrap_err().to_string()
        };
        assert_eq!(
            said(r#"{"corpus": "sotu", "path": "a.txt"}"#),
            "text-passage: path is \"a.txt\", must be left out, because `corpus` is given"
        );
        assert_eq!(
            said(r#"{"corpus": "sotu", "field": "body"}"#),
            "text-passage: field is \"body\", must be left out, because `field` names a column of `path`, which is not \
         given"
        );
    }
}
