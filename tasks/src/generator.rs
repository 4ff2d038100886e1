//! The shape shared by tasks that are drawn: a [`Generator`] says what one sample is, [`Generated`] makes a [`Task`] of it.
//!
//! Streams, splits, training to a length and finite training sets are settled here, once for all of them.

use std::fmt::Debug;

use rand_chacha::ChaCha8Rng;

use crate::random::{below, eval_rng, train_rng};
use crate::task::find_split;
use crate::{Sample, Split, Task, TaskError, TaskMeta, TokenSlice};

/// What a task that is drawn has to say.
pub trait Generator: Send + Sync + Debug {
    /// What is true of it whatever its settings.
    const META: &'static TaskMeta;

    /// What it can be evaluated on; training follows the rules of the first.
    fn splits(&self) -> &'static [Split];

    /// Number of token ids; all tokens are below it.
    fn vocab_size(&self) -> usize;

    /// The text of a token, for people. An id outside the vocabulary gives `?`.
    fn token_text(&self, token: u32) -> String;

    /// Longest sequence, in tokens, that samples of this length have in any split.
    fn max_tokens(&self, len: usize) -> usize;

    /// Longest sequence, in tokens, that training samples of this length have.
    fn max_train_tokens(&self, len: usize) -> usize {
        self.max_tokens(len)
    }

    /// Says whether there are samples of this length.
    ///
    /// # Errors
    /// [`TaskError::InvalidLen`].
    fn check_len(&self, len: usize) -> Result<(), TaskError>;

    /// Shortest length in training, of which the lengths are then uniform from here to the one asked for. `None`:
    /// training has exactly the length asked for, as evaluation always has.
    fn min_train_len(&self) -> Option<usize> {
        None
    }

    /// Size of a finite training set, from which training draws with replacement; `None`: every sample is new.
    fn train_samples(&self) -> Option<u32> {
        None
    }

    /// Draws one sample of exactly this length, of the split with this number in [`Generator::splits`].
    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample;

    /// Draws number `index` of an evaluation set, for tasks whose sets go through their cases in turn.
    fn eval_sample(&self, split: usize, len: usize, _index: usize, rng: &mut ChaCha8Rng) -> Sample {
        self.sample(split, len, rng)
    }

    /// As [`Task::token_slices`].
    fn token_slices(&self, _sample: &Sample) -> Vec<TokenSlice> {
        Vec::new()
    }

    /// As [`Task::counted`].
    fn counted(&self, _sample: &Sample) -> Option<Vec<bool>> {
        None
    }

    /// Chance level if it is the same for all lengths; as [`Task::chance`].
    fn chance(&self) -> Option<f64> {
        None
    }

    /// Chance level at a length that [`Generator::check_len`] accepts; as [`Task::chance_at`].
    fn chance_at(&self, _len: usize) -> Option<f64> {
        self.chance()
    }
}

/// The task made of a generator.
#[derive(Debug, Clone)]
pub struct Generated<G>(pub(crate) G);

impl<G> Generated<G> {
    /// What draws the samples.
    pub fn generator(&self) -> &G {
        &self.0
    }
}

impl<G: Generator> Task for Generated<G> {
    fn meta(&self) -> &'static TaskMeta {
        G::META
    }

    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    fn token_text(&self, token: u32) -> String {
        self.0.token_text(token)
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
        let split = find_split(self, split)?;
        self.check_len(len)?;
        let number = self.splits().iter().position(|s| s.name == split.name).unwrap_or(0);
        let mut rng = eval_rng(G::META.id, split.name, len, seed);
        Ok((0..count).map(|index| self.0.eval_sample(number, len, index, &mut rng)).collect())
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        self.0.token_slices(sample)
    }

    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        self.0.counted(sample)
    }

    fn chance(&self) -> Option<f64> {
        self.0.chance()
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        self.check_len(len).ok().and_then(|()| self.0.chance_at(len))
    }
}

/// The share of the commonest answer among samples drawn from a stream of its own: the chance level of a task that
/// has no formula for it. The same each time.
pub(crate) fn simulated_chance<G: Generator>(generator: &G, len: usize) -> f64 {
    // Enough for two digits at usual lengths, and never more than about four million tokens.
    let count = ((1 << 22) / len.max(1)).clamp(64, 16_384);
    let mut rng = eval_rng(G::META.id, "chance", len, 0);
    let mut answers: Vec<Vec<u32>> = (0..count)
        .map(|_| {
            let sample = generator.sample(0, len, &mut rng);
            let tokens = sample.tokens.into_iter().zip(sample.scored);
            tokens.filter(|(_, scored)| *scored).map(|(token, _)| token).collect()
        })
        .collect();
    answers.sort_unstable();
    let commonest = answers.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
    commonest as f64 / count as f64
}

/// One over the number of ordered choices of `count` different things among `n`.
pub(crate) fn one_of_orders(count: usize, n: u32) -> f64 {
    (0..count).map(|k| 1.0 / (f64::from(n) - k as f64)).product()
}

/// The text of one of `of` interchangeable symbols: a letter if there are letters enough, `s` and a number if not.
pub(crate) fn symbol_text(symbol: u32, of: u32) -> String {
    if of <= 26 {
        char::from_u32(u32::from('a') + symbol).unwrap_or('?').to_string()
    } else {
        format!("s{symbol}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;
    use crate::suite::counting::CountingConfig;

    #[test]
    fn finite_training_set_has_that_many_samples_and_a_smaller_one_is_part_of_it() {
        let drawn = |train_samples, len| -> BTreeSet<Vec<u32>> {
            let config = CountingConfig { train_samples, ..CountingConfig::default() };
            let task = config.build().unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            (0..2000).map(|_| task.train_sample(len, &mut rng).tokens).collect()
        };
        let (five, twenty) = (drawn(Some(5), 64), drawn(Some(20), 64));
        assert_eq!((five.len(), twenty.len()), (5, 20));
        assert!(five.is_subset(&twenty));
        assert!(drawn(None, 64).len() > 1900);
        assert!(twenty.is_disjoint(&drawn(Some(20), 65)));
    }

    #[test]
    fn finite_training_set_does_not_touch_evaluation() {
        let set = |train_samples| {
            let config = CountingConfig { train_samples, ..CountingConfig::default() };
            config.build().unwrap().eval_set("in-distribution", 64, 50, 1).unwrap()
        };
        assert_eq!(set(None), set(Some(3)));
    }

    #[test]
    fn ordered_choices_are_counted() {
        assert!((one_of_orders(2, 5) - 1.0 / 20.0).abs() < 1e-12);
        assert!((one_of_orders(0, 5) - 1.0).abs() < 1e-12);
    }
}
