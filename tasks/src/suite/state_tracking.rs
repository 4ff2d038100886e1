//! # State tracking: where do the moves lead?
//! ## What it asks of an encoding
//! To follow a state through moves whose order matters: no average and no single look back will do. With all answers
//! asked for in turn (`answer = "prefixes"`) the state is at hand, and the encoding has only to line up answer and
//! move.
//!
//! ## Predicted order
//! `final`: none with attention of few layers; the word problem of S5 and A5 is complete for NC1 (Merrill et al.
//! 2024), S3's is not, and shows first who can. Encodings that transform with content (PaTH, Selective RoPE) claim a
//! lead over RoPE and NoPE. `prefixes`: as string copy.
//!
//! ## Definition
//! `g1 ... gn = p`: moves, independent and uniform over the elements of `group`, and their product from left to right
//! (`g1` first). An element is written as what becomes of `123` or `12345`. Scored is `p` alone (`answer = "final"`)
//! or, for `"prefixes"`, all of `p1 ... pn` behind the sign, `pt` being the product of the first `t` moves. `len`
//! counts the moves: in training their number is uniform in `min_len ..= len`, in evaluation it is exactly `len`.
//!
//! Settings: `group` `s3` (6 elements), `s5` (120) or `a5` (60, the even ones of `s5`); `answer` `final`; `min_len` 1.
//! Slice: `length`. Chance: one over the number of elements, to the power of `len` for `prefixes`.
//!
//! ## Sample
//! ```text
//! 312 312 213 231 312 231 123 132 = 312
//!                                   ^^^
//! ```
//!
//! ## Source
//! Merrill, Petty, Sabharwal: The Illusion of State in State-Space Models, 2024, arXiv 2404.08819
//! (`jopetty/word-problem`: input and product). `Selective RoPE` (`timurcarstensen/selective-rope`) trains S3 to 128
//! moves and tests to 512, asking at every move, which next-token prediction cannot do without giving the state away.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator};
use crate::random::below;
use crate::strings::{UNIFORM, uniform_chance};
use crate::task::{MAX_LEN, check_range, check_setting};
use crate::{Headline, Sample, Split, TaskError, TaskMeta, TokenSlice};

/// What is true of state tracking whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "state-tracking",
    label: "State tracking",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "symbols",
    summary: "Multiply out a word of permutations.",
    source: "Merrill, Petty, Sabharwal 2024, arXiv 2404.08819",
    takes_path: false,
};

/// What the moves are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// All orders of 3 things.
    S3,
    /// All orders of 5 things.
    S5,
    /// The even orders of 5 things.
    A5,
}

impl Group {
    /// Its elements in alphabetical order, each as what becomes of `0, 1, 2, ...`.
    fn elements(self) -> Vec<Vec<u8>> {
        let (things, even_only) = match self {
            Group::S3 => (3, false),
            Group::S5 => (5, false),
            Group::A5 => (5, true),
        };
        let mut orders: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..things {
            orders = orders
                .iter()
                .flat_map(|order| {
                    let rest = (0..things).filter(|thing| !order.contains(thing));
                    rest.map(|thing| [&order[..], &[thing]].concat())
                })
                .collect();
        }
        orders.retain(|order| !even_only || inversions(order).is_multiple_of(2));
        orders
    }
}

fn inversions(order: &[u8]) -> usize {
    (0..order.len()).map(|k| order[k..].iter().filter(|later| **later < order[k]).count()).sum()
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The product of all moves.
    Final,
    /// The product of the first move, of the first two, and so on.
    Prefixes,
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateTrackingConfig {
    /// What the moves are taken from.
    pub group: Group,
    /// What is asked for.
    pub answer: Answer,
    /// Fewest moves in training.
    pub min_len: usize,
}

impl Default for StateTrackingConfig {
    fn default() -> Self {
        Self { group: Group::S3, answer: Answer::Final, min_len: 1 }
    }
}

impl StateTrackingConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<StateTracking>, TaskError> {
        check_setting(&META, "min_len", self.min_len, &(1..=MAX_LEN))?;
        let elements = self.group.elements();
        let place = |product: &Vec<u8>| elements.iter().position(|e| e == product).unwrap_or(0);
        let products = elements
            .iter()
            .flat_map(|first| elements.iter().map(move |second| (first, second)))
            .map(|(first, second)| first.iter().map(|thing| second[*thing as usize]).collect())
            .map(|product| place(&product) as u32)
            .collect();
        Ok(Generated(StateTracking { settings: self.clone(), elements, products }))
    }
}

/// The state tracking task. Token ids: the elements, then `=`.
#[derive(Debug, Clone)]
pub struct StateTracking {
    settings: StateTrackingConfig,
    elements: Vec<Vec<u8>>,
    /// Row by row: the element that is `row`, then `column`.
    products: Vec<u32>,
}

impl StateTracking {
    fn order(&self) -> u32 {
        self.elements.len() as u32
    }
}

impl Generator for StateTracking {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        UNIFORM
    }

    fn vocab_size(&self) -> usize {
        self.elements.len() + 1
    }

    fn token_text(&self, token: u32) -> String {
        match self.elements.get(token as usize) {
            Some(element) => element.iter().map(|thing| (thing + 1).to_string()).collect(),
            None if token == self.order() => "=".to_owned(),
            None => "?".to_owned(),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        let answers = if self.settings.answer == Answer::Final { 1 } else { len };
        len.saturating_add(answers).saturating_add(1)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, self.settings.min_len, "min_len is the shortest")
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.settings.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let order = self.order();
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        tokens.extend((0..len).map(|_| below(rng, order)));
        tokens.push(order);
        // The first in alphabetical order changes nothing.
        let mut state = 0;
        for t in 0..len {
            state = self.products[(state * order + tokens[t]) as usize];
            if self.settings.answer == Answer::Prefixes || t + 1 == len {
                tokens.push(state);
            }
        }
        Sample::scored_from(len + 1, tokens, vec![("length", len as u32)])
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let asked = sample.scored.iter().filter(|scored| **scored).count() as u32;
        let moves = sample.tokens.len() as u32 - 1 - asked;
        vec![("moves", (moves - asked + 1..=moves).collect())]
    }

    fn chance(&self) -> Option<f64> {
        (self.settings.answer == Answer::Final).then(|| 1.0 / f64::from(self.order()))
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        self.chance().or_else(|| Some(uniform_chance(self.order(), len)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
