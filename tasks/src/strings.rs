//! Tasks on strings, `$ s | answer .`: trained to a length and tested beyond it, length by length.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use crate::generator::{Generated, Generator};
use crate::random::below;
use crate::task::{MAX_LEN, check_range, check_setting};
use crate::{Sample, Split, TaskError, TaskMeta};

/// The one split of tasks that are tested length by length.
pub(crate) const UNIFORM: &[Split] = &[Split {
    name: "uniform",
    in_distribution: true,
    about: "Random strings of exactly the given length.",
}];

/// What the answer to a string is. Letters are numbered from 0.
pub trait StringRule: Send + Sync + Debug {
    /// What is true of the task whatever its settings.
    const META: &'static TaskMeta;

    /// Length of the answer to a string of this length.
    fn answer_len(len: usize) -> usize;

    /// Appends the answer to the string that stands in this range of `tokens`.
    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, letters: u32);

    /// Whether this string has an answer; one that has none is drawn again.
    fn is_asked(_string: &[u32], _letters: u32) -> bool {
        true
    }

    /// A slice beside `length`, if the task has one.
    fn slice(_string: &[u32], _letters: u32) -> Option<(&'static str, u32)> {
        None
    }

    /// Whether the answer is counted from this letter of a string; `None` for rules that count nothing.
    fn counts(_letter: u32) -> Option<bool> {
        None
    }

    /// Chance level at a length.
    fn chance_at(letters: u32, len: usize) -> f64;

    /// Chance level if it is the same for all lengths.
    fn chance(_letters: u32) -> Option<f64> {
        None
    }
}

/// A task `$ s | answer .`. Token ids: the letters, then `$`, `|`, `.`.
#[derive(Debug, Clone)]
pub struct Strings<R> {
    letters: u32,
    min_len: usize,
    rule: PhantomData<R>,
}

impl<R: StringRule> Strings<R> {
    /// Checks the settings and makes the task.
    pub(crate) fn build(letters: u32, min_len: usize) -> Result<Generated<Self>, TaskError> {
        check_setting(R::META, "letters", letters, &(2..=26))?;
        check_setting(R::META, "min_len", min_len, &(1..=MAX_LEN))?;
        Ok(Generated(Self { letters, min_len, rule: PhantomData }))
    }
}

impl<R: StringRule> Generator for Strings<R> {
    const META: &'static TaskMeta = R::META;

    fn splits(&self) -> &'static [Split] {
        UNIFORM
    }

    fn vocab_size(&self) -> usize {
        self.letters as usize + 3
    }

    fn token_text(&self, token: u32) -> String {
        let letter = |t| char::from_u32(u32::from('a') + t).unwrap_or('?');
        let text = match token.checked_sub(self.letters) {
            None => letter(token),
            Some(0) => '$',
            Some(1) => '|',
            Some(2) => '.',
            Some(_) => '?',
        };
        text.to_string()
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_add(R::answer_len(len)).saturating_add(3)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(R::META, len, self.min_len, "min_len is the shortest")
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let [start, middle, end] = [0, 1, 2].map(|k| self.letters + k);
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        tokens.push(start);
        loop {
            tokens.extend((0..len).map(|_| below(rng, self.letters)));
            if R::is_asked(&tokens[1..], self.letters) {
                break;
            }
            tokens.truncate(1);
        }
        let mut slices = vec![("length", len as u32)];
        slices.extend(R::slice(&tokens[1..], self.letters));
        tokens.push(middle);
        R::answer(&mut tokens, 1..len + 1, self.letters);
        tokens.push(end);
        Sample::scored_from(len + 2, tokens, slices)
    }

    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let string = 0..sample.scored.iter().position(|scored| *scored)?;
        let mut marks = vec![false; sample.tokens.len()];
        for t in string.filter(|t| sample.tokens[*t] < self.letters) {
            marks[t] = R::counts(sample.tokens[t])?;
        }
        Some(marks)
    }

    fn chance(&self) -> Option<f64> {
        R::chance(self.letters)
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(R::chance_at(self.letters, len))
    }
}

/// Chance level of an answer of `len` letters that are independent and uniform.
pub(crate) fn uniform_chance(letters: u32, len: usize) -> f64 {
    f64::from(letters).powf(-(len as f64))
}

/// What the tests of such tasks share.
#[cfg(test)]
pub(crate) mod testing {
    use std::collections::BTreeMap;

    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use crate::TaskConfig;

    /// The string and how much of the answer is given, of a prefix `$ s | ...`.
    pub(crate) fn parts(prefix: &[String]) -> Option<(&[String], usize)> {
        let bar = prefix.iter().position(|text| text == "|")?;
        assert_eq!(prefix[0], "$");
        Some((&prefix[1..bar], prefix.len() - bar - 1))
    }

    /// What follows when `done` letters of this answer are given.
    pub(crate) fn next(answer: &[String], done: usize) -> String {
        answer.get(done).cloned().unwrap_or_else(|| ".".to_owned())
    }

    /// Training lengths are uniform from `min_len` to the one asked for, evaluation lengths exact; bad settings are
    /// refused by name. `min_len` must be 3 in `config`.
    pub(crate) fn trained_to_a_length(config: &TaskConfig) {
        let task = config.build().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut counts = BTreeMap::new();
        for _ in 0..8000 {
            *counts.entry(task.train_sample(10, &mut rng).slices[0].1).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), (3..=10).collect::<Vec<_>>());
        assert!(counts.values().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
        for len in [3, 10, 47] {
            let set = task.eval_set("uniform", len, 20, 5).unwrap();
            assert!(set.iter().all(|s| s.tokens.len() == task.max_tokens(len)));
            assert!(set.iter().all(|s| s.slices[0] == ("length", len as u32)));
        }
        assert!(task.check_len(2).unwrap_err().to_string().contains("min_len is the shortest"));
        let id = config.meta().id;
        let said = |json: &str| {
            let config: TaskConfig = serde_json::from_str(json).unwrap();
            config.build().unwrap_err().to_string()
        };
        let expected = format!("{id}: min_len is 0, must be between 1");
        assert!(said(&format!(r#"{{"kind": "{id}", "min_len": 0}}"#)).starts_with(&expected));
    }

    /// The alphabet is 2 to 26 letters.
    pub(crate) fn alphabet_is_checked(id: &str) {
        for letters in [1, 27] {
            let json = format!(r#"{{"kind": "{id}", "letters": {letters}}}"#);
            let config: TaskConfig = serde_json::from_str(&json).unwrap();
            let said = config.build().unwrap_err().to_string();
            assert_eq!(said, format!("{id}: letters is {letters}, must be between 2 and 26"));
        }
    }
}
