//! Questions of an evaluation that lie outside of the training distribution.
//!
//! An evaluation at a longer length can contain samples of trained sizes: the length of some tasks is an upper bound. Only
//! the others count as longer.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::TaskError;
use crate::random::eval_rng;
use crate::sample::Sample;
use crate::task::{Split, Task, find_split};

/// Tokens of the training samples from which the frequencies of answers are estimated.
const DRAWN_TOKENS: usize = 1 << 21;
/// Least number of questions with a token in their answer from which its frequency is compared with that in training.
const LEAST_QUESTIONS: u32 = 5;
/// Share of the training samples below which a token of the answers practically never occurs in training.
const RARE: f64 = 1.0 / 4000.0;
/// How many times as frequent as in training a token must be in an evaluation to be one that training lacks.
const MORE_FREQUENT: f64 = 10.0;

/// A split at a length, evaluated after training at another.
#[derive(Debug, Clone, Copy)]
pub struct EvaluatedSplit<'a> {
    task: &'a dyn Task,
    /// Distribution of the samples.
    pub split: &'static Split,
    /// Length of the samples.
    pub len: usize,
    /// Length of the samples in training.
    pub train_len: usize,
}

impl<'a> EvaluatedSplit<'a> {
    /// Finds the split by its name.
    ///
    /// # Errors
    /// [`TaskError::UnknownSplit`].
    pub fn new(
        task: &'a dyn Task,
        split: &str,
        len: usize,
        train_len: usize,
    ) -> Result<Self, TaskError> {
        Ok(Self { task, split: find_split(task, split)?.1, len, train_len })
    }

    /// Whether samples have the distribution of training and a trained length.
    pub fn in_distribution(&self) -> bool {
        self.split.in_distribution && self.len <= self.train_len
    }

    /// Whether a sample of the evaluation, which is not in distribution, is outside of the training distribution in the
    /// way that the evaluation is: too large for training if the evaluation is longer, of another split otherwise.
    pub fn is_unseen(&self, sample: &Sample) -> bool {
        let trained_size = self.task.has_trained_size(sample, self.len, self.train_len);
        !trained_size || (self.len <= self.train_len && !self.split.part_of_training)
    }

    /// Share of the questions whose answers consist of tokens that occur as answers in training: the best exact match that
    /// can be expected. `None` if all do.
    ///
    /// A token counts as one that training lacks if fewer than one in 4,000 training samples have it in their answer,
    /// and ten times as many of these questions.
    pub fn ceiling<'s>(&self, questions: impl Iterator<Item = &'s Sample> + Clone) -> Option<f64> {
        let asked = frequencies(questions.clone());
        let tokens = self.task.max_train_tokens(self.train_len).max(1);
        let draws = (DRAWN_TOKENS / tokens).clamp(64, 1 << 15);
        let mut rng = eval_rng(self.task.meta().id, "trained answers", self.train_len, 0);
        let trained: Vec<Sample> =
            (0..draws).map(|_| self.task.train_sample(self.train_len, &mut rng)).collect();
        let trained = frequencies(trained.iter());
        let count = questions.clone().count() as f64;
        let is_lacking = |(token, asked): (&u32, &u32)| {
            let drawn = f64::from(trained.get(token).copied().unwrap_or(0));
            // Three more than were drawn: a token that was not drawn is hardly as frequent.
            let at_most = (drawn + 3.0) / draws as f64;
            let lacks = *asked >= LEAST_QUESTIONS
                && drawn < RARE * draws as f64
                && f64::from(*asked) / count > MORE_FREQUENT * at_most;
            lacks.then_some(*token)
        };
        let lacking: BTreeSet<u32> = asked.iter().filter_map(is_lacking).collect();
        let is_known = |sample: &&Sample| sample.answer().all(|token| !lacking.contains(&token));
        (!lacking.is_empty()).then(|| questions.filter(is_known).count() as f64 / count)
    }
}

/// Number of samples whose answer has a token, by token.
fn frequencies<'s>(samples: impl Iterator<Item = &'s Sample>) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    for sample in samples {
        for token in sample.answer().collect::<BTreeSet<u32>>() {
            *counts.entry(token).or_insert(0) += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskConfig;

    /// The questions of an evaluation that are unseen, of 2000.
    fn unseen(task: &dyn Task, split: &str, len: usize, train_len: usize) -> (usize, Option<f64>) {
        let evaluation = EvaluatedSplit::new(task, split, len, train_len).unwrap();
        let samples = task.eval_set(split, len, 2000, 0).unwrap();
        let unseen = samples.iter().filter(|sample| evaluation.is_unseen(sample));
        (unseen.clone().count(), evaluation.ceiling(unseen))
    }

    #[test]
    fn sums_of_trained_sizes_are_not_longer() {
        let task = TaskConfig::from_id("addition").unwrap().build().unwrap();
        // 9 of 16 and 9 of 36 pairs of sizes have at most three digits.
        assert_eq!(unseen(task.as_ref(), "grid", 4, 3), (2000 - 1125, None));
        assert_eq!(unseen(task.as_ref(), "grid", 6, 3), (2000 - 500, None));
        assert_eq!(unseen(task.as_ref(), "diagonal", 3, 3).0, 0);
        assert_eq!(unseen(task.as_ref(), "diagonal", 4, 3).0, 2000);
    }

    #[test]
    fn short_programs_are_not_longer_and_their_other_frequencies_count() {
        let task = TaskConfig::from_id("counting").unwrap().build().unwrap();
        let (count, ceiling) = unseen(task.as_ref(), "in-distribution", 96, 48);
        assert!((1500..1620).contains(&count), "{count}");
        assert_eq!(ceiling, None);
        assert_eq!(unseen(task.as_ref(), "fewer-pass", 48, 48).0, 2000);
        assert!(unseen(task.as_ref(), "fewer-pass", 96, 48).0 < 2000);
    }

    #[test]
    fn numbers_that_training_lacks_are_a_ceiling() {
        let json = r#"{"kind": "selective-counting", "classes": 3, "max_targets": 1, "noise": 4, "max_count": 16}"#;
        let task = serde_json::from_str::<TaskConfig>(json).unwrap().build().unwrap();
        // Counts above 8 are 6 and 28% of the answers.
        for (len, share) in [(36, 0.94), (48, 0.72)] {
            let (count, ceiling) = unseen(task.as_ref(), "in-distribution", len, 24);
            assert_eq!(count, 2000);
            assert!((ceiling.unwrap() - share).abs() < 0.015, "{len}: {ceiling:?}");
        }
    }
}
