//! Questions about the words, sentences and paragraphs of a text, shared by the tasks that ask them.
//!
//! A text is a list of tokens: words, `.` at the end of each sentence and `¶` before each paragraph. A question and its
//! answer follow the text.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::TaskError;
use crate::random::below;
use crate::sample::Sample;
use crate::task::{TaskMeta, check_setting};

/// Signs, from token 0 on.
pub(crate) const SIGNS: &[&str] = &[".", "¶", "?", "word", "start", "end", "sentence", "count"];
/// End of a sentence.
pub(crate) const SENTENCE_END: u32 = 0;
/// Beginning of a paragraph.
pub(crate) const PARAGRAPH: u32 = 1;
const ASK: u32 = 2;
/// Sign of the first question; the others follow in the order of [`PassageQuestion::MIXED`].
const FIRST_QUESTION: u32 = 3;
const FIRST_NUMBER: u32 = SIGNS.len() as u32;

/// Question about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassageQuestion {
    /// Any of the others except `CountSentences`, each with the same probability.
    Any,
    /// The i-th last word.
    Word,
    /// The first word of the i-th last sentence.
    Start,
    /// The last word of the i-th last sentence.
    End,
    /// The last sentence, word by word.
    Sentence,
    /// The number of times that a word occurs since the last beginning of a paragraph.
    Count,
    /// The number of sentences since the last beginning of a paragraph.
    CountSentences,
}

impl PassageQuestion {
    /// Questions that `Any` draws, each with its own sign. Another one would change the samples of existing records.
    const MIXED: [Self; 5] = [Self::Word, Self::Start, Self::End, Self::Sentence, Self::Count];

    /// Returns the question, drawn if it is `Any`.
    pub(crate) fn draw(self, rng: &mut ChaCha8Rng) -> Self {
        if self == Self::Any { Self::MIXED[below(rng, 5) as usize] } else { self }
    }

    /// Number of tokens of the question and its answer, for a last sentence of so many words.
    pub(crate) fn tokens(self, words: usize) -> usize {
        if self == Self::Sentence { words + 3 } else { 4 }
    }

    /// Smallest length at which every question can be asked about a text whose last sentence has so many words: the
    /// sentence with the mark before it, and its copy.
    pub(crate) fn least_len(words: usize) -> usize {
        2 * words + 5
    }

    /// Number in the slice `question`.
    fn number(self) -> u32 {
        // The questions are declared in this order, and `Any` is never asked.
        (self as u32).saturating_sub(1)
    }

    /// Sign before `?`: sentences are asked for as the count of `.`, so that no token is added to the vocabulary.
    fn sign(self) -> u32 {
        FIRST_QUESTION + self.number().min(Self::Count.number())
    }
}

/// Ranges of the numbers in questions and answers, which decide the ids of tokens: the signs, the numbers from 0 on,
/// the words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    /// Greatest number `i` of a question.
    pub(crate) max_index: u32,
    /// Greatest count; more are answered by the same number.
    pub(crate) max_count: u32,
}

impl Numbers {
    /// Checks both settings.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`].
    pub(crate) fn check(self, meta: &TaskMeta) -> Result<(), TaskError> {
        check_setting(meta, "max_index", self.max_index, &(1..=1 << 16))?;
        check_setting(meta, "max_count", self.max_count, &(1..=1 << 16))
    }

    /// Number of number tokens.
    pub(crate) fn count(self) -> u32 {
        self.max_index.max(self.max_count) + 1
    }

    /// Id of the first word.
    pub(crate) fn first_word(self) -> u32 {
        FIRST_NUMBER + self.count()
    }

    /// Appends a question and its answer to a text, which ends with a whole sentence and has a mark before it.
    pub(crate) fn ask(
        self,
        question: PassageQuestion,
        mut text: Vec<u32>,
        rng: &mut ChaCha8Rng,
    ) -> Sample {
        let words: Vec<usize> =
            (0..text.len()).filter(|at| text[*at] >= self.first_word()).collect();
        let whole = whole_sentences(&text);
        let mut draw = |available: usize| {
            let most = (available as u32).min(self.max_index);
            1 + below(rng, most) as usize
        };
        let number = |number: u32| FIRST_NUMBER + number;
        let sign = question.sign();
        // The question, the answer, its number, and the first token on which it depends.
        let (asked, answer, index, source) = match question {
            PassageQuestion::Any | PassageQuestion::Word => {
                let index = draw(words.len());
                let at = words[words.len() - index];
                (vec![sign, number(index as u32)], vec![text[at]], index as u32, at)
            }
            PassageQuestion::Start | PassageQuestion::End => {
                let index = draw(whole.len());
                let (start, end) = whole[index - 1];
                let at = if question == PassageQuestion::Start { start } else { end - 1 };
                (vec![sign, number(index as u32)], vec![text[at]], index as u32, at)
            }
            PassageQuestion::Sentence => {
                let (start, end) = whole[0];
                (vec![sign], text[start..=end].to_vec(), 1, start)
            }
            PassageQuestion::Count | PassageQuestion::CountSentences => {
                let from = since_paragraph(&text);
                let counted = if question == PassageQuestion::CountSentences {
                    SENTENCE_END
                } else {
                    let recent = words.partition_point(|at| *at < from);
                    // Mostly a word that occurs there, so that the answer is seldom 0.
                    let among = if below(rng, 4) > 0 { &words[recent..] } else { &words[..] };
                    text[among[below(rng, among.len() as u32) as usize]]
                };
                let count = text[from..].iter().filter(|token| **token == counted).count() as u32;
                let count = count.min(self.max_count);
                (vec![sign, counted], vec![number(count)], count, from)
            }
        };
        let distance = (text.len() - source) as u32;
        text.extend(asked);
        text.push(ASK);
        let from = text.len();
        text.extend(answer);
        let slices =
            vec![("question", question.number()), ("index", index), ("distance", distance)];
        Sample::scored_from(from, text, slices)
    }

    /// Marks the tokens of the text that the answer counts: words, ends of sentences, or occurrences of a word.
    pub(crate) fn counted(self, sample: &Sample) -> Option<Vec<bool>> {
        let tokens = &sample.tokens;
        let asked = sample.scored.iter().position(|scored| *scored)? - 1;
        // The last sentence is asked for without a number.
        let sentence = PassageQuestion::Sentence.sign();
        let sign = if tokens[asked - 1] == sentence { asked - 1 } else { asked - 2 };
        let question = PassageQuestion::MIXED[(tokens[sign] - FIRST_QUESTION) as usize];
        let text = &tokens[..sign];
        let from = since_paragraph(text);
        let is_counted = |(at, token): (usize, &u32)| match question {
            PassageQuestion::Any | PassageQuestion::Word => *token >= self.first_word(),
            PassageQuestion::Start | PassageQuestion::End | PassageQuestion::Sentence => {
                *token == SENTENCE_END
            }
            PassageQuestion::Count | PassageQuestion::CountSentences => {
                at >= from && *token == tokens[asked - 1]
            }
        };
        let mut counted: Vec<bool> = text.iter().enumerate().map(is_counted).collect();
        counted.resize(tokens.len(), false);
        Some(counted)
    }
}

/// First words and ends of the sentences that have a mark before them, the last sentence first.
pub(crate) fn whole_sentences(text: &[u32]) -> Vec<(usize, usize)> {
    let marks: Vec<usize> = (0..text.len()).filter(|at| text[*at] <= PARAGRAPH).collect();
    let pairs = marks.windows(2).rev().map(|pair| (pair[0] + 1, pair[1]));
    pairs.filter(|(start, end)| start < end && text[*end] == SENTENCE_END).collect()
}

/// Index behind the last beginning of a paragraph, or 0.
fn since_paragraph(text: &[u32]) -> usize {
    text.iter().rposition(|token| *token == PARAGRAPH).map_or(0, |at| at + 1)
}

/// Answers the question at the end of a prefix of a sample, from its texts alone; for tests.
#[cfg(test)]
pub(crate) fn answer(prefix: &[String], max_count: usize) -> Option<String> {
    let asked = prefix.iter().rposition(|text| text == "?")?;
    let done = prefix.len() - asked - 1;
    let copying = prefix[asked - 1] == "sentence";
    let sign = if copying { asked - 1 } else { asked - 2 };
    let (text, argument) = (&prefix[..sign], &prefix[asked - 1]);
    let sentences: Vec<&[String]> =
        text[..text.len() - 1].split(|t| t == "." || t == "¶").collect();
    let sentences: Vec<&[String]> = sentences.into_iter().filter(|s| !s.is_empty()).collect();
    let back = |i: usize| sentences[sentences.len() - i];
    let index = || argument.parse::<usize>().unwrap();
    match prefix[sign].as_str() {
        "word" => {
            let words: Vec<&String> = text.iter().filter(|t| *t != "." && *t != "¶").collect();
            Some(words[words.len() - index()].clone())
        }
        "start" => back(index()).first().cloned(),
        "end" => back(index()).last().cloned(),
        "sentence" => Some(back(1).get(done).cloned().unwrap_or_else(|| ".".to_owned())),
        "count" => {
            let recent = text.rsplit(|t| t == "¶").next()?;
            let count = recent.iter().filter(|t| *t == argument).count();
            Some(count.min(max_count).to_string())
        }
        other => panic!("no question `{other}`"),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const NUMBERS: Numbers = Numbers { max_index: 3, max_count: 2 };

    #[test]
    fn every_question_is_answered_from_the_marks_of_the_text() {
        // c . ¶ a b . a a a .
        let word = |n: u32| NUMBERS.first_word() + n;
        let text = [word(2), 0, 1, word(0), word(1), 0, word(0), word(0), word(0), 0].to_vec();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..210 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let chosen = [PassageQuestion::Any, PassageQuestion::CountSentences];
            let question = chosen[usize::from(seed >= 200)].draw(&mut rng);
            let sample = NUMBERS.ask(question, text.clone(), &mut rng);
            let answer = sample.clone().into_answer();
            let index = sample.slices[1].1;
            let expected = match (question, index) {
                (PassageQuestion::Word, _)
                | (PassageQuestion::Start, 1 | 2)
                | (PassageQuestion::End, 1) => vec![word(0)],
                (PassageQuestion::End, 2) => vec![word(1)],
                (PassageQuestion::Sentence, 1) => vec![word(0), word(0), word(0), 0],
                // Four of a, of which no more than two can be said; one of b; none of c.
                (PassageQuestion::Count, count) => vec![FIRST_NUMBER + count],
                (PassageQuestion::CountSentences, 2) => vec![FIRST_NUMBER + 2],
                // The first sentence may be cut, so there is no third one.
                other => panic!("{other:?}"),
            };
            assert_eq!(answer, expected, "{question:?} {index}");
            seen.insert((question.number(), index));
            assert_eq!(sample.tokens.len(), text.len() + question.tokens(3));
            let counted = NUMBERS.counted(&sample).unwrap();
            let marks = counted.iter().filter(|marked| **marked).count();
            let wanted = match question {
                PassageQuestion::Word => 6,
                PassageQuestion::Count => match sample.tokens[11] - word(0) {
                    0 => 4,
                    1 => 1,
                    _ => 0,
                },
                PassageQuestion::CountSentences => 2,
                _ => 3,
            };
            assert_eq!((marks, counted.len()), (wanted, sample.tokens.len()), "{question:?}");
        }
        let expected =
            [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (4, 0), (5, 2)];
        assert!(expected.iter().all(|pair| seen.contains(pair)), "{seen:?}");
        assert!(seen.contains(&(4, 1)) && seen.contains(&(4, 2)), "{seen:?}");
    }
}
