//! Tasks whose samples are drawn: a [`Generator`] defines one sample, [`Generated`] makes it a [`Task`].
//!
//! Random streams, splits, training lengths and finite training sets are implemented here for all of them.

use std::collections::BTreeMap;
use std::fmt::Debug;

use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::TaskError;
use crate::random::{below, eval_rng, train_rng};
use crate::sample::Sample;
use crate::task::{Split, Task, TaskMeta, TokenSlice, find_split, invalid};
use crate::vocabulary::{self, TokenGroup};

/// Settings of a task, which draw its samples.
///
/// All methods from [`Generator::sample`] on are called only with lengths that [`Generator::check_len`] accepts.
pub trait Generator:
    Debug + Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Facts about the task that hold for all settings.
    const META: &'static TaskMeta;

    /// Text of the file that defines the task. Its `//!` comment is the task's card.
    const SOURCE: &'static str;

    /// Distributions to evaluate on. The first is that of the training samples.
    const SPLITS: &'static [Split];

    /// Checks the settings.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for the first setting out of range.
    fn check(&self) -> Result<(), TaskError> {
        Ok(())
    }

    /// Splits under these settings.
    fn splits(&self) -> &'static [Split] {
        Self::SPLITS
    }

    /// Groups of token ids, from id 0 on.
    fn vocabulary(&self) -> Vec<TokenGroup>;

    /// Upper bound of the tokens in a sample of this length in any split.
    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    /// Upper bound of the tokens in a training sample of this length.
    fn max_train_tokens(&self, len: usize) -> usize {
        self.max_tokens(len)
    }

    /// Checks that there are samples of this length.
    ///
    /// # Errors
    /// [`TaskError::InvalidLen`].
    fn check_len(&self, len: usize) -> Result<(), TaskError>;

    /// Shortest training length, the setting `min_len`, which [`Generator::check_len`] must accept. Training lengths are
    /// then uniform from here to the requested one. `None`: every training sample has the requested length, as every
    /// evaluation sample does.
    fn min_train_len(&self) -> Option<usize> {
        None
    }

    /// Size of a finite training set, from which training draws with replacement; `None`: every sample is new.
    fn train_samples(&self) -> Option<u32> {
        None
    }

    /// Draws one sample of exactly this length from the split with this number in [`Generator::splits`].
    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample;

    /// Draws number `index` of an evaluation set, for tasks whose sets enumerate their cases.
    fn eval_sample(&self, split: usize, len: usize, _index: usize, rng: &mut ChaCha8Rng) -> Sample {
        self.sample(split, len, rng)
    }

    /// Properties of scored tokens; see [`Task::token_slices`].
    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        Vec::new()
    }

    /// Tokens that are counted; see [`Task::counted`].
    fn counted(&self, _sample: &Sample) -> Option<Vec<bool>> {
        None
    }

    /// Whether a sample has a size that occurs in training; see [`Task::has_trained_size`].
    fn has_trained_size(&self, _sample: &Sample, len: usize, train_len: usize) -> bool {
        len <= train_len
    }

    /// Chance level if it is the same for all lengths; see [`Task::chance`].
    fn chance(&self) -> Option<f64> {
        None
    }

    /// Chance level at a length; see [`Task::chance_at`].
    fn chance_at(&self, _len: usize) -> Option<f64> {
        self.chance()
    }
}

/// Task of a generator whose settings are valid.
#[derive(Debug, Clone)]
pub struct Generated<G>(pub(crate) G);

impl<G: Generator> Generated<G> {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// See [`Generator::check`]; also if there are no samples of the shortest training length.
    pub fn new(generator: G) -> Result<Self, TaskError> {
        generator.check()?;
        if let Some(min_len) = generator.min_train_len() {
            generator.check_len(min_len).map_err(|error| match error {
                TaskError::InvalidLen { len, expected, .. } => {
                    invalid(G::META, "min_len", &len, expected)
                }
                other => other,
            })?;
        }
        Ok(Self(generator))
    }
}

impl<G: Generator> Task for Generated<G> {
    fn meta(&self) -> &'static TaskMeta {
        G::META
    }

    fn vocab_size(&self) -> usize {
        vocabulary::vocab_size(&self.0.vocabulary())
    }

    fn token_text(&self, token: u32) -> String {
        vocabulary::token_text(&self.0.vocabulary(), token)
    }

    fn splits(&self) -> &'static [Split] {
        self.0.splits()
    }

    fn max_tokens(&self, len: usize) -> usize {
        self.0.max_tokens(len)
    }

    fn max_train_tokens(&self, len: usize) -> usize {
        self.0.max_train_tokens(len)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        self.0.check_len(len)
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let fresh = |rng: &mut ChaCha8Rng| {
            let drawn = match self.0.min_train_len() {
                Some(min) => min + below(rng, (len - min) as u32 + 1) as usize,
                None => len,
            };
            self.0.sample(0, drawn, rng)
        };
        match self.0.train_samples() {
            None => fresh(rng),
            Some(count) => fresh(&mut train_rng(G::META.id, len, below(rng, count))),
        }
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
        let mut rng = eval_rng(G::META.id, split.name, len, seed);
        Ok((0..count).map(|index| self.0.eval_sample(number, len, index, &mut rng)).collect())
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        self.0.token_slices(sample)
    }

    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        self.0.counted(sample)
    }

    fn has_trained_size(&self, sample: &Sample, len: usize, train_len: usize) -> bool {
        self.0.has_trained_size(sample, len, train_len)
    }

    fn chance(&self) -> Option<f64> {
        self.0.chance()
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        self.check_len(len).ok().and_then(|()| self.0.chance_at(len))
    }
}

/// Estimates the chance level of a task without a formula for it, from evaluation samples of a fixed stream.
pub(crate) fn simulated_chance<G: Generator>(generator: &G, len: usize) -> f64 {
    guessed_share(&answers_of(generator, len))
}

/// Estimates the chance level of a task whose answers are equally frequent, each with the share `uniform`, or nearly so:
/// `uniform` if no answer is more frequent than is to be expected by chance.
pub(crate) fn simulated_above<G: Generator>(generator: &G, len: usize, uniform: f64) -> f64 {
    let answers = answers_of(generator, len);
    let most = most_frequent(&answers).map_or(0, |(_, count)| count);
    let expected = answers.len() as f64 * uniform;
    // The largest of a thousand Poisson counts is seldom further from the mean.
    let is_by_chance = most as f64 <= expected + 4.0 * expected.sqrt() + 8.0;
    if is_by_chance { uniform } else { guessed_share(&answers) }
}

/// Number of samples from which chance is estimated, enough for two digits at usual lengths: as many as have about four
/// million tokens, but 64 to 16,384.
fn draws(len: usize) -> usize {
    ((1 << 22) / len.max(1)).clamp(64, 16_384)
}

fn answers_of<G: Generator>(generator: &G, len: usize) -> Vec<Vec<u32>> {
    let sample = |index, rng: &mut ChaCha8Rng| generator.eval_sample(0, len, index, rng);
    drawn_answers(G::META.id, len, sample)
}

/// Returns the answers of samples of a length, drawn from a fixed stream by index.
pub(crate) fn drawn_answers(
    task: &str,
    len: usize,
    sample: impl Fn(usize, &mut ChaCha8Rng) -> Sample,
) -> Vec<Vec<u32>> {
    let mut rng = eval_rng(task, "chance", len, 0);
    (0..draws(len)).map(|index| sample(index, &mut rng).into_answer()).collect()
}

/// Returns the most frequent answer, the greatest of several, and how often it occurs.
pub(crate) fn most_frequent(answers: &[Vec<u32>]) -> Option<(&Vec<u32>, usize)> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count)
}

/// Share of the most frequent answer of each half of the draws in the other half. Among the draws that it is found in its
/// share is too high: it is the largest of many that scatter.
pub(crate) fn guessed_share(answers: &[Vec<u32>]) -> f64 {
    let (first, second) = answers.split_at(answers.len() / 2);
    let hits = |found: &[Vec<u32>], measured: &[Vec<u32>]| {
        let guess = most_frequent(found).map(|(guess, _)| guess);
        measured.iter().filter(|answer| Some(*answer) == guess).count()
    };
    (hits(first, second) + hits(second, first)) as f64 / answers.len() as f64
}

/// One over the number of ordered choices of `count` different things among `n`.
pub(crate) fn one_of_orders(count: usize, n: u32) -> f64 {
    (0..count).map(|k| 1.0 / (f64::from(n) - k as f64)).product()
}

#[cfg(test)]
mod tests {
    use super::{guessed_share, one_of_orders};

    #[test]
    fn a_guess_is_measured_where_it_was_not_found() {
        let answers = |words: [u32; 8]| words.map(|word| vec![word]).to_vec();
        let share = |words| guessed_share(&answers(words));
        assert!((share([1, 1, 1, 2, 3, 1, 1, 4]) - 5.0 / 8.0).abs() < 1e-12, "one for all");
        // 1 is guessed after the first half, 5 after the second.
        assert!((share([1, 1, 5, 2, 5, 5, 1, 3]) - 2.0 / 8.0).abs() < 1e-12);
        assert!(share([1, 2, 3, 4, 5, 6, 7, 8]) < 1e-12, "answers that occur once");
    }

    #[test]
    fn ordered_choices_are_counted() {
        assert!((one_of_orders(2, 5) - 1.0 / 20.0).abs() < 1e-12);
        assert!((one_of_orders(0, 5) - 1.0).abs() < 1e-12);
    }
}
