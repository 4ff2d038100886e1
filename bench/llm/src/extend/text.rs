//! Text in the tokens of a pretrained model: windows of any length, results by position.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use tasks::data::{Part, Parts};
use tasks::{Headline, Sample, Split, Task, TaskError, TaskMeta, TokenSlice};

use super::facts::{Facts, stated};
use crate::pretrained::ModelTokenizer;

const META: TaskMeta = TaskMeta {
    id: "text",
    label: "Text, by the model's tokens",
    headline: Headline::Perplexity,
    summary: "Predict the next token of real text.",
    source: "perplexity by length as in Chen et al. 2023, arXiv 2306.15595",
    takes_path: true,
    ..TaskMeta::GENERATED
};

const SPLITS: &[Split] =
    &[Split::as_trained("validation", "Windows spread evenly over the text's validation part.")];

/// Number of groups of positions per trained length.
const PARTS: usize = 8;

/// Windows of a text for a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextWindows {
    /// Length of the sequences that the model was trained on, in tokens.
    pub context: usize,
    /// Special tokens that each window begins with; they are not scored.
    pub before: Vec<u32>,
}

/// Tokenized text. The documents of a part are concatenated, because windows are longer than most documents.
#[derive(Clone)]
pub struct LongText {
    train: Vec<u32>,
    validation: Vec<u32>,
    /// Special tokens that each window begins with.
    before: Vec<u32>,
    facts: Facts,
    /// Number of positions per group.
    group: usize,
    bytes_per_token: f64,
}

impl std::fmt::Debug for LongText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LongText")
            .field("train_tokens", &self.train.len())
            .field("validation_tokens", &self.validation.len())
            .finish_non_exhaustive()
    }
}

impl LongText {
    /// Tokenizes a text.
    ///
    /// # Errors
    /// [`TaskError::ModelTokenizer`] if the tokenizer rejects the text.
    pub fn new(
        parts: &Parts,
        tokens: &dyn ModelTokenizer,
        vocabulary: usize,
        TextWindows { context, before }: TextWindows,
    ) -> Result<Self, TaskError> {
        let text = |part: Part| parts.texts(part).collect::<String>();
        let encode = |text: &str| {
            tokens.encode(text).map_err(|error| TaskError::ModelTokenizer {
                task: META.id,
                reason: error.to_string(),
            })
        };
        let kept = text(Part::Validation);
        let (train, validation) = (encode(&text(Part::Train))?, encode(&kept)?);
        let facts = if before.is_empty() {
            Facts::of_text(train.iter().chain(&validation), vocabulary)
        } else {
            Facts::of_pieces([&*before, &train, &validation].into_iter(), vocabulary)
        };
        Ok(Self {
            facts,
            before,
            bytes_per_token: kept.len() as f64 / validation.len().max(1) as f64,
            group: (context / PARTS).max(1),
            train,
            validation,
        })
    }

    /// Window of these tokens of the text, all but the first `unscored` of them scored.
    fn window(&self, text: &[u32], unscored: usize) -> Sample {
        let tokens = [&*self.before, text].concat();
        let mut scored = vec![true; tokens.len()];
        scored[..self.before.len() + unscored].fill(false);
        Sample { tokens, scored, slices: Vec::new() }
    }

    fn check_fit(&self, part: &'static str, len: usize, count: usize) -> Result<(), TaskError> {
        let least = self.before.len().max(1);
        if len < least {
            let expected = format!("at least {least}");
            return Err(TaskError::InvalidLen { task: META.id, len, expected });
        }
        let tokens = if part == "training" { self.train.len() } else { self.validation.len() };
        let window = len.saturating_add(1);
        let fits = tokens / window;
        if fits >= count {
            return Ok(());
        }
        let (task, documents) = (META.id, 1);
        Err(TaskError::TextTooShort { task, part, tokens, documents, window, count, fits })
    }
}

impl Task for LongText {
    stated!(META, SPLITS);

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_add(1).saturating_add(self.before.len())
    }

    fn max_train_tokens(&self, len: usize) -> usize {
        len.saturating_add(1)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        self.check_fit("training", len, 1)?;
        self.check_fit("validation", len, 1)
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        // The model reads `len` tokens, those before the text included, which shifted groups divide.
        let text = len + 1 - self.before.len();
        let start = rng.random_range(0..self.train.len() + 1 - text);
        self.window(&self.train[start..start + text], usize::from(self.before.is_empty()))
    }

    fn eval_set(
        &self,
        _split: &str,
        len: usize,
        count: usize,
        _seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        self.check_fit("validation", len, count.max(1))?;
        let start = |k: usize| k * self.validation.len() / count;
        // The first token of the text is not scored, so that the same tokens are with and without those before it.
        let window = |k: usize| self.window(&self.validation[start(k)..=start(k) + len], 1);
        Ok((0..count).map(window).collect())
    }

    fn max_eval_samples(&self, len: usize) -> Option<usize> {
        Some(self.validation.len() / len.saturating_add(1))
    }

    fn bytes_per_token(&self) -> Option<f64> {
        Some(self.bytes_per_token)
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let group = |position: usize| (position / self.group * self.group) as u32;
        // A token is predicted at the position before its own; positions are those in the text.
        let scored = sample.scored.iter().skip(self.before.len() + 1).enumerate();
        let scored = scored.filter(|(_, scored)| **scored);
        vec![("position", scored.map(|(position, _)| group(position)).collect())]
    }
}

#[cfg(test)]
mod tests {
    use tasks::data::{SplitRule, TextDocument};

    use super::*;

    /// Tokenizer with one token per letter.
    #[derive(Debug)]
    struct Letters;

    impl ModelTokenizer for Letters {
        fn encode(&self, text: &str) -> anyhow::Result<Vec<u32>> {
            Ok(text.bytes().map(|byte| u32::from(byte) - 97).collect())
        }

        fn decode(&self, _tokens: &[u32]) -> anyhow::Result<String> {
            anyhow::bail!("not asked for")
        }
    }

    #[test]
    fn windows_do_not_overlap_and_positions_are_grouped_by_parts_of_the_context() {
        let document = TextDocument { name: String::new(), text: "abcdefghij".repeat(40) };
        let parts = SplitRule::ByNumber.parts(vec![document]).unwrap();
        let windows = |before: &[u32]| TextWindows { context: 32, before: before.to_vec() };
        let task = LongText::new(&parts, &Letters, 26, windows(&[])).unwrap();
        assert_eq!(task.max_eval_samples(9), Some(4));
        // Of 0 to 9, forty times, as 32-bit numbers, the lowest byte first.
        let sha256 = "5e1b3e7fc849dbd175f0f291df9ebd249d13405d40b10fced52922a8ec1641a2";
        assert_eq!(task.data_sha256(), Some(sha256));
        assert_eq!([25, 26].map(|token| task.token_text(token)), ["<25>", "?"]);
        let samples = task.eval_set("validation", 9, 4, 0).unwrap();
        let expected = (0..10).collect::<Vec<u32>>();
        assert!(samples.iter().all(|sample| sample.tokens == expected));
        let [(name, positions)] = task.token_slices(&samples[0]).try_into().unwrap();
        assert_eq!((name, positions), ("position", vec![0, 0, 0, 0, 4, 4, 4, 4, 8]));
        assert!((task.bytes_per_token().unwrap() - 1.0).abs() < 1e-12);
        for len in [0, 40, usize::MAX] {
            task.check_len(len).unwrap_err();
        }
        let said = task.eval_set("validation", 9, 5, 0).unwrap_err().to_string();
        assert!(said.contains("validation"), "{said}");

        // The same tokens are scored after a token before each window.
        let after = LongText::new(&parts, &Letters, 27, windows(&[26])).unwrap();
        assert_eq!((after.max_tokens(9), after.max_eval_samples(9)), (11, Some(4)));
        let begun = after.eval_set("validation", 9, 4, 0).unwrap();
        for (sample, plain) in begun.iter().zip(&samples) {
            assert_eq!((sample.tokens[0], &sample.tokens[1..]), (26, &*plain.tokens));
            assert_eq!((sample.scored[0], &sample.scored[1..]), (false, &*plain.scored));
            assert_eq!(after.token_slices(sample), task.token_slices(plain));
        }
        assert_ne!(after.data_sha256(), task.data_sha256());
        let mut rng = <ChaCha8Rng as rand_chacha::rand_core::SeedableRng>::seed_from_u64(0);
        let trained = after.train_sample(8, &mut rng);
        assert_eq!(
            (trained.tokens[0], trained.tokens.len(), after.max_train_tokens(8)),
            (26, 9, 9)
        );
        assert_eq!(trained.scored.iter().filter(|scored| **scored).count(), 8);
    }
}
