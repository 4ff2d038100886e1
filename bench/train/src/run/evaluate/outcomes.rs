//! Answers to the questions of an evaluation, and the chance of guessing them.

use std::collections::BTreeMap;

use reports::{Answers, Losses, Outcomes};
use sha2::{Digest, Sha256};
use tasks::{Headline, Sample};

/// Answers to the questions so far, one per sample.
#[derive(Default)]
pub(super) struct Questions {
    right: Vec<bool>,
    tokens: Vec<u64>,
    losses: Vec<f64>,
}

impl Questions {
    /// Adds a sample: whether all of its scored tokens are right, their number, and the sum of their losses.
    pub(super) fn add(&mut self, right: bool, tokens: u64, loss: f64) {
        self.right.push(right);
        self.tokens.push(tokens);
        self.losses.push(loss);
    }

    /// Returns the answers for the record, of the metric that ranks encodings; `None` if a loss is not finite.
    pub(super) fn outcomes(self, headline: Headline, samples: &[Sample]) -> Option<Outcomes> {
        let answers = match headline {
            Headline::ExactMatch => Answers::ExactMatch(self.right),
            Headline::Perplexity => Answers::Nll(Losses::of(&self.losses, &self.tokens)?),
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
    reports::store::hex(&hash.finalize()[..8])
}

/// Returns the exact match of guessing, for tasks ranked by exact match: the most frequent answer of the same length
/// among the other samples. `None` with fewer than two samples.
pub(super) fn chance(headline: Headline, samples: &[Sample]) -> Option<f64> {
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
