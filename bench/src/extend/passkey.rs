//! Passkey retrieval: a number hidden in English filler text (Mohtashami, Jaggi 2023, arXiv 2305.16300, with other
//! wording).
//!
//! Pieces that end with a line are tokenized once, and a sample concatenates as many of them as fit.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tasks::{MAX_LEN, Sample, Split, Task, TaskError, TaskMeta};

use super::facts::{Facts, stated};
use crate::pretrained::{Around, ModelTokenizer};

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
    introduction: Vec<u32>,
    paragraph: Vec<u32>,
    numbers: Vec<HiddenNumber>,
    /// Number of depths, evenly spaced from the beginning to the end.
    depths: usize,
    facts: Facts,
}

#[derive(Debug, Clone)]
struct HiddenNumber {
    statement: Vec<u32>,
    /// Tokens of the question with its answer.
    answered: Vec<u32>,
    /// Index of the first token of the answer in `answered`.
    answer: usize,
}

impl std::fmt::Debug for Passkey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passkey").field("depths", &self.depths).finish_non_exhaustive()
    }
}

impl Passkey {
    /// Tokenizes all pieces; sample `k` hides its number at depth `k % depths`.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] if `depths` is 0 or the tokenizer rejects a piece.
    pub fn new(
        tokens: &dyn ModelTokenizer,
        vocabulary: usize,
        depths: usize,
    ) -> Result<Self, TaskError> {
        let refuse = |field, value: String, expected| {
            Err(TaskError::InvalidSetting { task: META.id, field, value, expected })
        };
        if depths == 0 {
            return refuse("depths", "0".to_owned(), "at least 1".to_owned());
        }
        match pieces(tokens) {
            Ok((introduction, paragraph, numbers)) => {
                let lines = numbers.iter().flat_map(|n| [&n.statement, &n.answered]);
                let all = [&introduction, &paragraph].into_iter().chain(lines).flatten();
                let facts = Facts::of_text(all, vocabulary);
                Ok(Self { introduction, paragraph, numbers, depths, facts })
            }
            Err(reason) => {
                let expected = format!("one that accepts the prompt: {reason}");
                refuse("tokenizer", "the model's".to_owned(), expected)
            }
        }
    }

    /// Number of tokens of the longest sample without filler.
    fn own_tokens(&self) -> usize {
        let longest = self.numbers.iter().map(|n| n.statement.len() + n.answered.len()).max();
        self.introduction.len() + longest.unwrap_or(0)
    }

    fn sample(&self, len: usize, depth: usize, rng: &mut ChaCha8Rng) -> Sample {
        let number = &self.numbers[rng.random_range(0..self.numbers.len())];
        let paragraphs = len.saturating_sub(self.own_tokens()) / self.paragraph.len().max(1);
        let share = |of: usize| match self.depths {
            1 => of / 2,
            depths => (depth * of + (depths - 1) / 2) / (depths - 1),
        };
        let mut tokens = self.introduction.clone();
        for place in 0..=paragraphs {
            if place == share(paragraphs) {
                tokens.extend(&number.statement);
            }
            if place < paragraphs {
                tokens.extend(&self.paragraph);
            }
        }
        let mut scored = vec![false; tokens.len() + number.answer];
        tokens.extend(&number.answered);
        scored.resize(tokens.len(), true);
        Sample { tokens, scored, slices: vec![("depth", share(100) as u32)] }
    }
}

type Pieces = (Vec<u32>, Vec<u32>, Vec<HiddenNumber>);

fn pieces(tokens: &dyn ModelTokenizer) -> Result<Pieces, String> {
    let piece = |text: &str| tokens.encode(text, Around::LeftOut);
    let question = piece(QUESTION)?;
    let mut rng = ChaCha8Rng::seed_from_u64(NUMBERS_SEED);
    let mut number = || {
        let digits = rng.random_range(10_000..100_000_u32);
        let answered = piece(&format!("{QUESTION} {digits}"))?;
        // The question's own length may differ: its last token may merge with the following text.
        let answer = question.iter().zip(&answered).take_while(|(a, b)| a == b).count();
        let statement =
            piece(&format!("The pass key is {digits}. Remember it. {digits} is the pass key.\n"))?;
        Ok::<_, String>(HiddenNumber { statement, answered, answer })
    };
    let numbers = (0..NUMBERS).map(|_| number()).collect::<Result<Vec<_>, _>>()?;
    let paragraph = piece(PARAGRAPH)?;
    if paragraph.is_empty() || numbers.iter().any(|n| n.answer == 0 || n.answer >= n.answered.len())
    {
        return Err("its tokens do not separate a question from its answer".to_owned());
    }
    Ok((tokens.encode(INTRODUCTION, Around::Added)?, paragraph, numbers))
}

impl Task for Passkey {
    stated!(META, SPLITS);

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        let least = self.own_tokens();
        if (least..=MAX_LEN).contains(&len) {
            return Ok(());
        }
        let expected = format!("between {least} (the prompt without filler) and {MAX_LEN}");
        Err(TaskError::InvalidLen { task: META.id, len, expected })
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let depth = rng.random_range(0..self.depths);
        self.sample(len, depth, rng)
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
        Ok((0..count).map(|k| self.sample(len, k % self.depths, &mut rng)).collect())
    }

    /// Share of the most frequent pass key.
    fn chance(&self) -> Option<f64> {
        let mut answers = self.numbers.iter().map(|number| &number.answered).collect::<Vec<_>>();
        answers.sort_unstable();
        let most = answers.chunk_by(|a, b| a == b).map(<[_]>::len).max()?;
        Some(most as f64 / answers.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use sha2::Digest as _;

    use super::*;

    /// Tokenizer with one token per byte, and a first token where special tokens are requested.
    #[derive(Debug)]
    struct Bytes;

    impl ModelTokenizer for Bytes {
        fn encode(&self, text: &str, around: Around) -> Result<Vec<u32>, String> {
            let first = (around == Around::Added).then_some(256);
            Ok(first.into_iter().chain(text.bytes().map(u32::from)).collect())
        }

        fn decode(&self, tokens: &[u32]) -> Result<String, String> {
            let bytes = tokens.iter().filter_map(|token| u8::try_from(*token).ok()).collect();
            String::from_utf8(bytes).map_err(|e| e.to_string())
        }
    }

    #[test]
    fn the_answer_is_the_number_that_was_hidden_at_its_depth() {
        let task = Passkey::new(&Bytes, 257, 5).unwrap();
        let (introduction, paragraph, numbers) = pieces(&Bytes).unwrap();
        let numbers = numbers.into_iter().flat_map(|n| [n.statement, n.answered]).flatten();
        let all = [introduction, paragraph].concat().into_iter().chain(numbers);
        let bytes = all.flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        let sha256 = reports::store::hex(&sha2::Sha256::digest(&bytes));
        assert_eq!(task.data_sha256(), Some(&*sha256));
        assert_eq!(task.chance(), Some(2.0 / 1000.0), "a number that was drawn twice");
        for len in [400, 1000, 3001] {
            let samples = task.eval_set("depths", len, 10, 1).unwrap();
            for (k, sample) in samples.iter().enumerate() {
                let tokens = &sample.tokens;
                assert!(tokens.len() <= len && tokens.len() + PARAGRAPH.len() > len - 10);
                assert_eq!((tokens[0], tokens.len()), (256, sample.scored.len()));
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
        assert!(Passkey::new(&Bytes, 257, 0).unwrap_err().to_string().contains("depths"));
    }
}
