//! Passkey retrieval: a number hidden in English filler text (Mohtashami, Jaggi 2023, arXiv 2305.16300, with other
//! wording).
//!
//! The text of a sample is tokenized as a whole, because tokenizers may treat the beginning and the end of a text in other
//! ways than its middle. A sample has as many paragraphs of filler as fit.

use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tasks::{MAX_LEN, Sample, Split, Task, TaskError, TaskMeta};

use super::facts::{Facts, stated};
use crate::pretrained::ModelTokenizer;

const META: TaskMeta = TaskMeta {
    id: "passkey",
    label: "Passkey, in English",
    summary: "Find a number hidden in filler text.",
    source: "Mohtashami, Jaggi 2023, arXiv 2305.16300",
    ..TaskMeta::GENERATED
};

const SPLITS: &[Split] =
    &[Split::as_trained("depths", "The number at evenly spaced depths of the filler.")];

const INTRODUCTION: &str = "There is one pass key in the text below, among many lines that do not matter. Find the \
                            pass key and remember it. You will be asked for it at the end.\n";
const PARAGRAPH: &str =
    "The tide is low. The gulls are loud. The rope is wet. A bell rings. We row on.\n";
const QUESTION: &str = "What is the pass key? The pass key is";

/// Number of pass keys, all of five digits, drawn with replacement.
const NUMBERS: usize = 1000;
const NUMBERS_SEED: u64 = 5;

/// Passkey task in the tokens of a pretrained model.
#[derive(Clone)]
pub struct Passkey {
    tokens: Arc<dyn ModelTokenizer>,
    /// Number of tokens of a paragraph of filler.
    paragraph: usize,
    numbers: Vec<HiddenNumber>,
    /// Number of depths, evenly spaced from the beginning to the end.
    depths: usize,
    facts: Facts,
}

#[derive(Debug, Clone)]
struct HiddenNumber {
    digits: u32,
    /// Tokens of the prompt without filler and the answer.
    shortest: Vec<u32>,
    /// Number of tokens of the answer.
    answer: usize,
}

impl HiddenNumber {
    /// Sample of these tokens, which end with the answer.
    fn sample(&self, tokens: Vec<u32>, slices: Vec<(&'static str, u32)>) -> Sample {
        let mut scored = vec![false; tokens.len().saturating_sub(self.answer)];
        scored.resize(tokens.len(), true);
        Sample { tokens, scored, slices }
    }
}

impl std::fmt::Debug for Passkey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passkey").field("depths", &self.depths).finish_non_exhaustive()
    }
}

impl Passkey {
    /// Tokenizes the prompt without filler for each number; sample `k` hides its number at depth `k % depths`.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] if `depths` is 0, [`TaskError::ModelTokenizer`] if the tokenizer rejects the
    /// prompt.
    pub fn new(
        tokens: Arc<dyn ModelTokenizer>,
        vocabulary: usize,
        depths: usize,
    ) -> Result<Self, TaskError> {
        if depths == 0 {
            let (field, value, expected) = ("depths", "0".to_owned(), "at least 1".to_owned());
            return Err(TaskError::InvalidSetting { task: META.id, field, value, expected });
        }
        let numbers = numbers(&*tokens).map_err(refused)?;
        let introduction = tokens.prompt(INTRODUCTION).map_err(refused)?;
        let filled = tokens.prompt(&format!("{INTRODUCTION}{PARAGRAPH}")).map_err(refused)?;
        let paragraph = after(&introduction, &filled);
        if paragraph.is_empty() {
            return Err(refused("the model's tokenizer gives a paragraph of filler no tokens"));
        }
        let rests = numbers.iter().flat_map(|number| after(&introduction, &number.shortest));
        let facts = Facts::of_text(introduction.iter().chain(paragraph).chain(rests), vocabulary);
        Ok(Self { paragraph: paragraph.len(), tokens, numbers, depths, facts })
    }

    /// Number of tokens of the longest sample without filler.
    fn least(&self) -> usize {
        self.numbers.iter().map(|number| number.shortest.len()).max().unwrap_or(0)
    }

    fn sample(&self, len: usize, depth: usize, number: &HiddenNumber) -> Result<Sample, TaskError> {
        let share = |of: usize| match self.depths {
            1 => of / 2,
            depths => (depth * of + (depths - 1) / 2) / (depths - 1),
        };
        let mut paragraphs = len.saturating_sub(self.least()) / self.paragraph;
        let tokens = loop {
            let text = prompt(number.digits, paragraphs, share(paragraphs));
            let tokens = self.tokens.prompt(&answered(&text, number.digits)).map_err(refused)?;
            // Paragraphs may have more tokens together than one by one.
            if tokens.len() <= len || paragraphs == 0 {
                break tokens;
            }
            paragraphs -= 1;
        };
        Ok(number.sample(tokens, vec![("depth", share(100) as u32)]))
    }
}

/// Error about a tokenizer that the task cannot use.
fn refused(reason: impl std::fmt::Display) -> TaskError {
    let reason = format!("{reason}; leave out this task with `--tasks text`");
    TaskError::ModelTokenizer { task: META.id, reason }
}

/// Text up to the answer, with the number before paragraph `place` of the filler.
fn prompt(digits: u32, paragraphs: usize, place: usize) -> String {
    let [before, behind] =
        [place, paragraphs.saturating_sub(place)].map(|count| PARAGRAPH.repeat(count));
    let statement = format!("The pass key is {digits}. Remember it. {digits} is the pass key.\n");
    [INTRODUCTION, &before, &statement, &behind, QUESTION].concat()
}

fn answered(prompt: &str, digits: u32) -> String {
    format!("{prompt} {digits}")
}

/// Tokens of a longer text after those that it shares with its beginning.
fn after<'a>(beginning: &[u32], whole: &'a [u32]) -> &'a [u32] {
    let shared = beginning.iter().zip(whole).take_while(|(a, b)| a == b).count();
    &whole[shared..]
}

fn numbers(tokens: &dyn ModelTokenizer) -> anyhow::Result<Vec<HiddenNumber>> {
    let mut rng = ChaCha8Rng::seed_from_u64(NUMBERS_SEED);
    let mut number = || {
        let digits = rng.random_range(10_000..100_000_u32);
        let text = prompt(digits, 0, 0);
        let question = tokens.prompt(&text)?;
        let shortest = tokens.prompt(&answered(&text, digits))?;
        // The last token of the question may merge with the answer.
        let answer = after(&question, &shortest).len();
        if answer == 0 || answer == shortest.len() {
            anyhow::bail!(
                "the model's tokenizer gives the answer no tokens that are separate from the question"
            );
        }
        Ok(HiddenNumber { digits, shortest, answer })
    };
    (0..NUMBERS).map(|_| number()).collect()
}

impl Task for Passkey {
    stated!(META, SPLITS);

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let least = self.least();
        if (least..=MAX_LEN).contains(&len) {
            return Ok(());
        }
        let expected = format!("between {least} (the prompt without filler) and {MAX_LEN}");
        Err(TaskError::InvalidLen { task: META.id, len, expected })
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let depth = rng.random_range(0..self.depths);
        let number = &self.numbers[rng.random_range(0..self.numbers.len())];
        // The tokenizer has accepted all lines of the text.
        let shortest = |_| number.sample(number.shortest.clone(), Vec::new());
        self.sample(len, depth, number).unwrap_or_else(shortest)
    }

    fn eval_set(
        &self,
        _split: &str,
        len: usize,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        self.check_len(len)?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let samples = (0..count).map(|k| {
            let number = &self.numbers[rng.random_range(0..self.numbers.len())];
            self.sample(len, k % self.depths, number)
        });
        samples.collect()
    }

    /// Share of the most frequent pass key.
    fn chance(&self) -> Option<f64> {
        let mut digits = self.numbers.iter().map(|number| number.digits).collect::<Vec<_>>();
        digits.sort_unstable();
        let most = digits.chunk_by(|a, b| a == b).map(<[_]>::len).max()?;
        Some(most as f64 / digits.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use sha2::Digest as _;
    use tasks::tokenizer::Around;

    use super::*;

    /// Tokenizer with one token per byte, and one before and after a text.
    #[derive(Debug)]
    struct Bytes;

    impl ModelTokenizer for Bytes {
        fn encode(&self, text: &str) -> anyhow::Result<Vec<u32>> {
            Ok(text.bytes().map(u32::from).collect())
        }

        fn around(&self) -> Around {
            Around { before: vec![256], after: vec![257] }
        }

        fn decode(&self, tokens: &[u32]) -> anyhow::Result<String> {
            let bytes = tokens.iter().filter_map(|token| u8::try_from(*token).ok()).collect();
            Ok(String::from_utf8(bytes)?)
        }
    }

    #[test]
    fn the_answer_is_the_number_that_was_hidden_at_its_depth() {
        let task = Passkey::new(Arc::new(Bytes), 258, 5).unwrap();
        // Introduction, paragraph, and for each number its statement and the answered question.
        let [introduction, paragraph] = [INTRODUCTION, PARAGRAPH].map(|text| Bytes.encode(text));
        let rest = |number: &HiddenNumber| {
            let text = answered(&prompt(number.digits, 0, 0), number.digits);
            Bytes.encode(&text[INTRODUCTION.len()..]).unwrap()
        };
        let pieces = [vec![256], introduction.unwrap(), paragraph.unwrap()].concat();
        let all = pieces.into_iter().chain(task.numbers.iter().flat_map(rest));
        let bytes = all.flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        let sha256 = records::store::hex(&sha2::Sha256::digest(&bytes));
        assert_eq!(task.data_sha256(), Some(&*sha256));
        assert_eq!(task.chance(), Some(2.0 / 1000.0), "a number that was drawn twice");
        for len in [400, 1000, 3001] {
            let samples = task.eval_set("depths", len, 10, 1).unwrap();
            for (k, sample) in samples.iter().enumerate() {
                let tokens = &sample.tokens;
                assert!(tokens.len() <= len && tokens.len() + PARAGRAPH.len() > len - 10);
                assert_eq!((tokens[0], tokens.len()), (256, sample.scored.len()));
                assert!(!tokens.contains(&257), "no text ends in the middle");
                let text = Bytes.decode(tokens).unwrap();
                let answer = text.rsplit(' ').next().unwrap();
                assert_eq!(sample.scored.iter().filter(|s| **s).count(), answer.len() + 1);
                assert!(text.contains(&format!("The pass key is {answer}. Remember it.")));
                assert_eq!(sample.slices, [("depth", 25 * (k % 5) as u32)]);
                let before = text[..text.find("The pass key is").unwrap()].matches("gulls").count();
                let paragraphs = text.matches("gulls").count();
                let off = (before as f64 - paragraphs as f64 * 0.25 * (k % 5) as f64).abs();
                assert!(off <= 0.5, "{before} of {paragraphs} at depth {}", k % 5);
            }
        }
        assert_ne!(
            task.eval_set("depths", 400, 1, 1).unwrap(),
            task.eval_set("depths", 400, 1, 2).unwrap()
        );
        assert!(task.check_len(100).unwrap_err().to_string().contains("without filler"));
        assert!(Passkey::new(Arc::new(Bytes), 258, 0).unwrap_err().to_string().contains("depths"));
    }

    /// Tokenizer with one token per byte that puts a blank before a text and drops white space at its end.
    #[derive(Debug)]
    struct Trimmed;

    impl ModelTokenizer for Trimmed {
        fn encode(&self, text: &str) -> anyhow::Result<Vec<u32>> {
            Ok(format!(" {}", text.trim_end()).bytes().map(u32::from).collect())
        }

        fn decode(&self, tokens: &[u32]) -> anyhow::Result<String> {
            Bytes.decode(tokens)
        }
    }

    #[test]
    fn lines_are_joined_before_they_are_tokenized() {
        let (task, plain) = (
            Passkey::new(Arc::new(Trimmed), 256, 3).unwrap(),
            Passkey::new(Arc::new(Bytes), 258, 3).unwrap(),
        );
        // A blank in place of the first token.
        assert_eq!(task.least(), plain.least());
        for len in [400, 1000] {
            let samples = task.eval_set("depths", len, 3, 1).unwrap();
            let plain = plain.eval_set("depths", len, 3, 1).unwrap();
            for (sample, plain) in samples.iter().zip(&plain) {
                assert_eq!(sample.tokens[1..], plain.tokens[1..]);
                assert_eq!((sample.tokens[0], &sample.scored), (32, &plain.scored));
            }
        }
    }
}
