//! # Latent list: a property of a list after operations on it
//! ## What it asks of an encoding
//! Following a list that is never shown, through operations that change it and operations that do not: its length is a
//! count of two kinds of tokens with opposite signs, an element of it is a state that depends on the order of the
//! operations.
//!
//! ## Predicted order
//! `length`: encodings that count what gates select (CoPE) before NoPE, which counts by its causal mask, before RoPE
//! and relative biases beyond the trained lengths; because the list has bounds, its length is not a mere difference of
//! counts. `sum` and `element`: as state tracking with `answer = "final"`, PaTH and Selective RoPE before RoPE and
//! NoPE, and none of them for many operations in few layers. We know of no measurement.
//!
//! ## Definition
//! Operations on a list that is empty at first, one token each: `+v` appends a number, uniform below `values`; `pop`
//! removes the last number; `reverse` reverses the list; `pass` does nothing. Each is `pass` with the probability
//! `pass_rate`, otherwise `+v`, `pop` or `reverse` with the weights 2, 2 and 1. An operation that is impossible is drawn
//! again: a list is never longer than `max_size`, `pop` needs a number, and the list is not empty at the end. Then `?`, the
//! question and its answer, the only scored token: `length`, `sum` (modulo `values`) or `element i`, the i-th number
//! from the front, `i` uniform from 1 to the length. `question = "any"`: each of the three with the same probability.
//! `len` counts the operations: in training their number is uniform in `min_len ..= len`, in evaluation it is
//! exactly `len`.
//!
//! Settings: `question` `any`, `values` 10 (2 to 65536), `max_size` 8 (1 to 1024), `pass_rate` 0.2 (0 to 0.9),
//! `min_len` 1. Slices: `question`, 0 for `length`, 1 for `sum`, 2 for `element`, and `size`, the length of the list at the
//! end. Chance: one over `values` for `sum` and `element`, otherwise the share of the most frequent answer among simulated
//! samples.
//!
//! ## Sample
//! ```text
//! reverse reverse reverse +1 pass pop pass pass pass +4 ? element 1 4
//!                                                                   ^
//! ```
//!
//! ## Source
//! Vodrahalli et al.: Michelangelo, 2024, arXiv 2409.12640, task Latent List: operations on a list in Python, with and
//! without effect, then a question about the list. Theirs is code for pretrained language models; here an operation is a
//! token, so that a small model can learn the task from scratch.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generator, simulated_chance};
use crate::random::{Weighted, below};
use crate::task::{MAX_LEN, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

/// Operations without a number, then the signs of questions.
const SIGNS: &[&str] = &["pop", "reverse", "pass", "?", "length", "sum", "element"];

/// Question about the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListQuestion {
    /// Each of the others with the same probability.
    Any,
    /// The number of elements.
    Length,
    /// The sum of the elements, modulo the number of values.
    Sum,
    /// The i-th element from the front.
    Element,
}

/// Settings of latent list. Token ids: the operations that append, `pop`, `reverse`, `pass`, `?`, `length`, `sum`,
/// `element`, the numbers from 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatentListConfig {
    /// Question about the list.
    pub question: ListQuestion,
    /// Number of values of the elements, 2 to 65536.
    pub values: u32,
    /// Greatest length of the list, 1 to 1024.
    pub max_size: u32,
    /// Probability that an operation is one without effect, 0 to 0.9.
    pub pass_rate: f64,
    /// Fewest operations in training.
    pub min_len: usize,
}

impl Default for LatentListConfig {
    fn default() -> Self {
        Self { question: ListQuestion::Any, values: 10, max_size: 8, pass_rate: 0.2, min_len: 1 }
    }
}

impl LatentListConfig {
    /// Token of a sign, by its place in [`SIGNS`].
    fn sign(&self, place: u32) -> u32 {
        self.values + place
    }

    fn first_number(&self) -> u32 {
        self.values + SIGNS.len() as u32
    }

    /// Appends operations that leave a list with elements, and returns it.
    fn operate(&self, len: usize, tokens: &mut Vec<u32>, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let effect = 1.0 - self.pass_rate;
        let kinds = Weighted::new([0.4 * effect, 0.4 * effect, 0.2 * effect, self.pass_rate]);
        let mut list = Vec::with_capacity(self.max_size as usize);
        while tokens.len() < len {
            let (kind, _) = kinds.draw(rng);
            let size = match kind {
                0 => list.len() + 1,
                // Below zero without an element.
                1 => list.len().wrapping_sub(1),
                _ => list.len(),
            };
            let least = usize::from(tokens.len() + 1 == len);
            if !(least..=self.max_size as usize).contains(&size) {
                continue;
            }
            match kind {
                0 => list.push(below(rng, self.values)),
                1 => _ = list.pop(),
                2 => list.reverse(),
                _ => {}
            }
            let token = match kind {
                0 => list.last().copied(),
                _ => None,
            };
            tokens.push(token.unwrap_or_else(|| self.sign(kind as u32 - 1)));
        }
        list
    }
}

impl Generator for LatentListConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "latent-list",
        label: "Latent list",
        len_unit: "symbols",
        summary: "Give the length, an element or the sum of a list after a sequence of operations.",
        source: "Vodrahalli et al. 2024 (Michelangelo), arXiv 2409.12640",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("latent_list.rs");
    const SPLITS: &'static [Split] =
        &[Split::as_trained("uniform", "Random operations, exactly as many as the given length.")];

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "values", self.values, &(2..=1 << 16))?;
        check_setting(Self::META, "max_size", self.max_size, &(1..=1024))?;
        check_setting(Self::META, "pass_rate", self.pass_rate, &(0.0..=0.9))?;
        check_setting(Self::META, "min_len", self.min_len, &(1..=MAX_LEN))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            TokenGroup::Numbered("+", self.values),
            TokenGroup::Signs(SIGNS),
            TokenGroup::Numbered("", self.values.max(self.max_size + 1)),
        ]
    }

    fn max_tokens(&self, len: usize) -> usize {
        // The number of an element stands in its question only.
        let question = match self.question {
            ListQuestion::Length | ListQuestion::Sum => 2,
            ListQuestion::Any | ListQuestion::Element => 3,
        };
        len.saturating_add(question + 1)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(Self::META, len, self.min_len, "min_len sets the minimum")
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut tokens = Vec::with_capacity(self.max_tokens(len));
        let list = self.operate(len, &mut tokens, rng);
        let size = list.len() as u32;
        let question = match self.question {
            ListQuestion::Any => below(rng, 3),
            ListQuestion::Length => 0,
            ListQuestion::Sum => 1,
            ListQuestion::Element => 2,
        };
        tokens.extend([self.sign(3), self.sign(4 + question)]);
        let answer = match question {
            0 => size,
            1 => {
                (list.iter().map(|value| u64::from(*value)).sum::<u64>() % u64::from(self.values))
                    as u32
            }
            _ => {
                let place = below(rng, size);
                tokens.push(self.first_number() + place + 1);
                list[place as usize]
            }
        };
        tokens.push(self.first_number() + answer);
        let asked = tokens.len() - 1;
        Sample::scored_from(asked, tokens, vec![("question", question), ("size", size)])
    }

    /// Marks the operations that change the length, if it is what is asked for.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let changes = |token: &u32| *token <= self.sign(0);
        (self.question == ListQuestion::Length).then(|| sample.tokens.iter().map(changes).collect())
    }

    fn chance(&self) -> Option<f64> {
        let is_uniform = matches!(self.question, ListQuestion::Sum | ListQuestion::Element);
        is_uniform.then(|| 1.0 / f64::from(self.values))
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        self.chance().or_else(|| Some(simulated_chance(self, len)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
