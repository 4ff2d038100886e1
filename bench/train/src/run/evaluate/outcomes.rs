//! Answers to the questions of an evaluation, and the chance of guessing them.

use std::collections::BTreeMap;

use records::{Answers, Losses, Outcomes, QuestionMarks, Unseen};
use sha2::{Digest, Sha256};
use tasks::{Headline, Sample, Task};

/// Answer to one question.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuestionAnswer {
    /// Whether all of its scored tokens are right.
    pub(super) exact: bool,
    /// Number of scored tokens that are right.
    pub(super) right: u64,
    /// Number of scored tokens.
    pub(super) tokens: u64,
    /// Sum of their losses in nats.
    pub(super) loss: f64,
}

/// Answers to the questions so far, one per sample.
#[derive(Default)]
pub(super) struct Questions(Vec<QuestionAnswer>);

impl Questions {
    /// Adds the answer to the next question.
    pub(super) fn add(&mut self, question: QuestionAnswer) {
        self.0.push(question);
    }

    /// Returns the results on the marked questions, with the exact match of guessing them.
    pub(super) fn unseen(
        &self,
        questions: QuestionMarks,
        chance: Option<f64>,
        task: &dyn Task,
        samples: &[Sample],
    ) -> Unseen {
        let marked = |index: &usize| questions.0[*index];
        let places: Vec<usize> = (0..questions.0.len()).filter(marked).collect();
        let answers = || places.iter().map(|place| &self.0[*place]);
        let tokens = answers().map(|answer| answer.tokens).sum::<u64>() as f64;
        let nll = answers().map(|answer| answer.loss).sum::<f64>() / tokens;
        let bytes: Option<u64> =
            places.iter().map(|place| task.scored_bytes(&samples[*place])).sum();
        let bytes_per_token = bytes.map(|bytes| bytes as f64 / tokens).or(task.bytes_per_token());
        let right = answers().map(|answer| answer.right).sum::<u64>() as f64;
        let exact = answers().filter(|answer| answer.exact).count() as f64;
        Unseen {
            exact_match: exact / places.len() as f64,
            token_accuracy: Some(right / tokens),
            nll: Some(nll),
            bits_per_byte: bytes_per_token.map(|bytes| nll / std::f64::consts::LN_2 / bytes),
            chance,
            questions,
        }
    }

    /// Returns the answers for the record, of the metric that ranks encodings; `None` if a loss is not finite.
    pub(super) fn outcomes(self, headline: Headline, samples: &[Sample]) -> Option<Outcomes> {
        let answers = match headline {
            Headline::ExactMatch => {
                Answers::ExactMatch(self.0.iter().map(|answer| answer.exact).collect())
            }
            Headline::Perplexity => {
                let losses: Vec<f64> = self.0.iter().map(|answer| answer.loss).collect();
                let tokens: Vec<u64> = self.0.iter().map(|answer| answer.tokens).collect();
                Answers::Nll(Losses::of(&losses, &tokens)?)
            }
        };
        Some(Outcomes { questions: digest(samples), answers })
    }
}

/// Returns 16 hex digits of the SHA-256 of the samples: tokens, and which of them are scored.
fn digest(samples: &[Sample]) -> String {
    let mut hash = Sha256::new();
    for sample in samples {
        hash.update((sample.tokens.len() as u64).to_le_bytes());
        for (token, scored) in sample.tokens.iter().zip(&sample.scored) {
            hash.update(token.to_le_bytes());
            hash.update([u8::from(*scored)]);
        }
    }
    records::store::hex(&hash.finalize()[..8])
}

/// Returns the exact match of guessing, for tasks ranked by exact match: the most frequent answer of the same length
/// among the other samples. `None` with fewer than two samples.
pub fn chance(headline: Headline, samples: &[Sample]) -> Option<f64> {
    if headline != Headline::ExactMatch || samples.len() < 2 {
        return None;
    }
    let mut counts: BTreeMap<usize, BTreeMap<Vec<u32>, u64>> = BTreeMap::new();
    for sample in samples {
        let scored = sample.tokens.iter().zip(&sample.scored).filter(|(_, scored)| **scored);
        let answer: Vec<u32> = scored.map(|(token, _)| *token).collect();
        *counts.entry(answer.len()).or_default().entry(answer).or_default() += 1;
    }
    // A sample does not count as its own guess: answers that occur once are never guessed.
    let commonest = counts.values().filter_map(|answers| answers.values().max());
    let right: u64 = commonest.map(|count| count - 1).sum();
    Some(right as f64 / (samples.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use tasks::TaskConfig;

    use super::*;

    #[test]
    fn the_chance_of_questions_is_near_the_one_that_the_task_knows() {
        for id in ["counting", "flip-flop", "selective-counting", "copy"] {
            let task = TaskConfig::from_id(id).unwrap().build().unwrap();
            let split = task.splits()[0].name;
            for len in [16, 32] {
                let Some(known) = task.chance_at(len) else { continue };
                let samples = task.eval_set(split, len, 2000, 5).unwrap();
                let found = chance(Headline::ExactMatch, &samples).unwrap();
                // The commonest answer of 2000 is a little commoner than it should be.
                assert!((found - known).abs() < 0.04, "{id} at {len}: {found}, known {known}");
            }
        }
        let task = TaskConfig::from_id("copy").unwrap().build().unwrap();
        let samples = task.eval_set(task.splits()[0].name, 32, 50, 5).unwrap();
        assert_eq!(chance(Headline::ExactMatch, &samples), Some(0.0), "answers that occur once");
        assert_eq!(chance(Headline::Perplexity, &samples), None);
        assert_eq!(chance(Headline::ExactMatch, &samples[..1]), None);
    }

    #[test]
    fn the_digest_is_that_of_tokens_and_mask() {
        let sample = |scored| Sample { tokens: vec![1, 2], scored, slices: Vec::new() };
        let (one, other) = (sample(vec![false, true]), sample(vec![false, false]));
        assert_eq!(digest(std::slice::from_ref(&one)).len(), 16);
        assert_ne!(digest(std::slice::from_ref(&one)), digest(std::slice::from_ref(&other)));
        let asked = Sample { tokens: vec![1, 3], ..one.clone() };
        assert_ne!(digest(std::slice::from_ref(&one)), digest(&[asked]));
        assert_ne!(digest(&[one.clone(), one.clone()]), digest(&[one]));
    }
}
