//! Tasks on strings, `$ s | answer .`: trained up to a length and evaluated beyond it, length by length.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Range, RangeInclusive};

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::TaskError;
use crate::generator::Generator;
use crate::random::below;
use crate::sample::Sample;
use crate::task::{MAX_LEN, Split, TaskMeta, check_range, check_setting};
use crate::vocabulary::TokenGroup;

/// Only split of the tasks that are evaluated length by length.
pub(crate) const UNIFORM: &[Split] =
    &[Split::as_trained("uniform", "Random strings of exactly the given length.")];

/// Signs after the letters: start of the string, start of the answer, end of the answer.
pub(crate) const SIGNS: TokenGroup = TokenGroup::Signs(&["$", "|", "."]);

/// Rule that determines the answer to a string. Letters are numbered from 0.
pub trait StringRule: Debug + Clone + PartialEq + Send + Sync + 'static {
    /// Facts about the task that hold for all settings.
    const META: &'static TaskMeta;

    /// Text of the file; see [`Generator::SOURCE`].
    const SOURCE: &'static str;

    /// Default size of the alphabet.
    const LETTERS: u32;

    /// Sizes of the alphabet that the setting `letters` may have; a task with a single size has no such setting.
    const ALPHABETS: RangeInclusive<u32> = 2..=26;

    /// Length of the answer to a string of this length: as long as the string, unless the rule says otherwise.
    fn answer_len(len: usize) -> usize {
        len
    }

    /// Appends the answer to the string in this range of `tokens`.
    fn answer(tokens: &mut Vec<u32>, string: Range<usize>, letters: u32);

    /// Whether this string has an answer; strings without an answer are drawn again.
    fn is_asked(_string: &[u32], _letters: u32) -> bool {
        true
    }

    /// Second slice of the sample besides `length`; `None` if the task has none.
    fn slice(_string: &[u32], _letters: u32) -> Option<(&'static str, u32)> {
        None
    }

    /// Whether the answer counts this letter of a string; `None` for rules that count nothing.
    fn counts(_letter: u32) -> Option<bool> {
        None
    }

    /// Chance level at a length: [`StringRule::chance`], otherwise that of an answer which states every letter of a
    /// random string.
    fn chance_at(letters: u32, len: usize) -> f64 {
        Self::chance(letters).unwrap_or_else(|| uniform_chance(letters, len))
    }

    /// Chance level if it is the same for all lengths.
    fn chance(_letters: u32) -> Option<f64> {
        None
    }
}

/// Settings of a task `$ s | answer .`. Token ids: the letters, then `$`, `|`, `.`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, bound = "R: StringRule")]
pub struct StringConfig<R: StringRule> {
    /// Size of the alphabet, 2 to 26.
    #[serde(skip_serializing_if = "is_fixed::<R>")]
    pub letters: u32,
    /// Shortest training string, in letters.
    pub min_len: usize,
    #[serde(skip)]
    rule: PhantomData<R>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_fixed<R: StringRule>(letters: &u32) -> bool {
    // Another size is refused by `check`, which must see it.
    R::ALPHABETS == (*letters..=*letters)
}

impl<R: StringRule> StringConfig<R> {
    /// Returns settings with this alphabet and shortest training string.
    pub fn new(letters: u32, min_len: usize) -> Self {
        Self { letters, min_len, rule: PhantomData }
    }
}

impl<R: StringRule> Default for StringConfig<R> {
    fn default() -> Self {
        Self::new(R::LETTERS, 1)
    }
}

impl<R: StringRule> Generator for StringConfig<R> {
    const META: &'static TaskMeta = R::META;
    const SOURCE: &'static str = R::SOURCE;
    const SPLITS: &'static [Split] = UNIFORM;

    fn check(&self) -> Result<(), TaskError> {
        check_setting(R::META, "letters", self.letters, &R::ALPHABETS)?;
        check_setting(R::META, "min_len", self.min_len, &(1..=MAX_LEN))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::symbols(self.letters), SIGNS]
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_add(R::answer_len(len)).saturating_add(3)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(R::META, len, self.min_len, "min_len sets the minimum")
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

/// Chance level of an answer of `len` independent uniform letters.
pub(crate) fn uniform_chance(letters: u32, len: usize) -> f64 {
    f64::from(letters).powf(-(len as f64))
}
