//! # Addition: add two numbers, digit by digit
//! ## What it asks of an encoding
//! To line up digit `k` of the first number, of the second and of the sum: two distances that differ from problem to
//! problem and stay the same within one. Beyond the trained sizes, to do so for places never met.
//!
//! ## Predicted order
//! After Zhu et al. 2025 (TAPE; trained to 40 digits, mean over the grid to 80): TAPE before FIRE before randomised
//! positions, which equal RoPE there. Encodings made for digits (Abacus) reach further still (McLeish et al. 2024).
//! NoPE and learned tables at the end.
//!
//! ## Definition
//! `a + b = c .` with all numbers from their least significant digit on (`order = "reversed"`) or as people write
//! them (`"plain"`); one token for each digit. `a` has `i` digits and `b` has `j`, both uniform among the numbers of
//! that size (no leading zero; 1 to 9 for one digit). `c` and the final `.` are scored. `len` is the most digits:
//! in training `i` and `j` are uniform in `1 ..= len`. The split `grid` goes through the `len * len` cells in turn,
//! evenly for any count of samples (100 for each cell: `100 len * len` samples); `diagonal` has `i = j = len`. A
//! sequence has at most `3 len + 4` tokens.
//!
//! Setting: `order`. Slices: `digits-a` and `digits-b`, the axes of a heat map; `carries`, the longest run of digits
//! that hand on a carry. Slice of tokens: `place`, the digit's place in `c` from the least significant, 0 on; the `.`
//! has the place after the last. Chance, on `grid`: one in `9 len * len` (nine one-digit problems have the sum 10).
//!
//! ## Sample
//! ```text
//! 7 4 5 6 6 + 0 1 8 5 5 = 7 5 3 2 2 1 .
//!                         ^ ^ ^ ^ ^ ^ ^
//! ```
//!
//! ## Source
//! McLeish et al.: Transformers Can Do Arithmetic with the Right Embeddings, 2024, arXiv 2405.17399
//! (`create_data_split.py`: bucket method, `reverse_all`, no padding), used by Zhu et al. 2025, arXiv 2501.00712, with
//! 20 or 40 digits in training and twice that in evaluation.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator};
use crate::random::below;
use crate::task::check_range;
use crate::{Headline, Sample, Split, TaskError, TaskMeta, TokenSlice};

/// What is true of addition whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "addition",
    label: "Addition",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "symbols",
    summary: "Add two numbers of up to so many digits.",
    source: "McLeish et al. 2024, arXiv 2405.17399",
    takes_path: false,
};

const PLUS: u32 = 10;
const EQUALS: u32 = 11;
const END: u32 = 12;

const SPLITS: &[Split] = &[
    Split {
        name: "grid",
        in_distribution: true,
        about: "Every pair of sizes up to the given number of digits, equally often.",
    },
    Split {
        name: "diagonal",
        in_distribution: true,
        about: "Both numbers have exactly the given number of digits.",
    },
];

/// Number of the split in which both numbers have all digits.
const DIAGONAL: usize = 1;

/// From which end numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The least significant digit first: a carry comes from the digit just said.
    Reversed,
    /// The most significant digit first, as people write.
    Plain,
}

/// Settings; the default is the source's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdditionConfig {
    /// From which end numbers are written.
    pub order: Order,
}

impl Default for AdditionConfig {
    fn default() -> Self {
        Self { order: Order::Reversed }
    }
}

impl AdditionConfig {
    /// Makes the task.
    ///
    /// # Errors
    /// None: every setting that can be written is valid.
    pub fn build(&self) -> Result<Generated<Addition>, TaskError> {
        Ok(Generated(Addition { order: self.order }))
    }
}

/// The addition task. Token ids: the digits, then `+`, `=`, `.`.
#[derive(Debug, Clone)]
pub struct Addition {
    order: Order,
}

/// Appends a number of exactly this many digits, the least significant first.
fn draw_number(digits: usize, tokens: &mut Vec<u32>, rng: &mut ChaCha8Rng) {
    tokens.extend((1..digits).map(|_| below(rng, 10)));
    tokens.push(1 + below(rng, 9));
}

/// Cell number `index` of a walk through an `n` by `n` grid that is even from its first step on and meets every cell
/// once in each round: strides of about 0.618 rounds.
fn cell(index: usize, n: usize) -> [usize; 2] {
    let cells = (n * n) as u128;
    let mut stride = (cells * 618 / 1000).max(1);
    while gcd(stride, cells) > 1 {
        stride += 1;
    }
    let at = (index as u128 * stride % cells) as usize;
    [at / n + 1, at % n + 1]
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Addition {
    /// A problem with numbers of these sizes.
    fn problem(&self, [i, j]: [usize; 2], rng: &mut ChaCha8Rng) -> Sample {
        let longest = i.max(j);
        let mut tokens = Vec::with_capacity(i + j + longest + 4);
        draw_number(i, &mut tokens, rng);
        tokens.push(PLUS);
        draw_number(j, &mut tokens, rng);
        tokens.push(EQUALS);
        let (mut carry, mut run, mut longest_run) = (0, 0, 0);
        for k in 0..longest {
            let a = if k < i { tokens[k] } else { 0 };
            let b = if k < j { tokens[i + 1 + k] } else { 0 };
            let sum = a + b + carry;
            carry = u32::from(sum > 9);
            run = (run + 1) * carry;
            longest_run = longest_run.max(run);
            tokens.push(sum - 10 * carry);
        }
        if carry == 1 {
            tokens.push(1);
        }
        if self.order == Order::Plain {
            tokens[..i].reverse();
            tokens[i + 1..=i + j].reverse();
            tokens[i + j + 2..].reverse();
        }
        tokens.push(END);
        let slices = vec![("digits-a", i as u32), ("digits-b", j as u32), ("carries", longest_run)];
        Sample::scored_from(i + j + 2, tokens, slices)
    }
}

impl Generator for Addition {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn vocab_size(&self) -> usize {
        END as usize + 1
    }

    fn token_text(&self, token: u32) -> String {
        match token {
            0..PLUS => token.to_string(),
            PLUS => "+".to_owned(),
            EQUALS => "=".to_owned(),
            END => ".".to_owned(),
            _ => "?".to_owned(),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_mul(3).saturating_add(4)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, 1, "the most digits that a number has")
    }

    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut size = || if split == DIAGONAL { len } else { 1 + below(rng, len as u32) as usize };
        let sizes = [size(), size()];
        self.problem(sizes, rng)
    }

    fn eval_sample(&self, split: usize, len: usize, index: usize, rng: &mut ChaCha8Rng) -> Sample {
        self.problem(if split == DIAGONAL { [len, len] } else { cell(index, len) }, rng)
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let asked = sample.scored.iter().filter(|scored| **scored).count() as u32;
        let digits = asked.saturating_sub(1);
        let mut places: Vec<u32> = (0..digits).collect();
        if self.order == Order::Plain {
            places.reverse();
        }
        places.push(digits);
        vec![("place", places)]
    }

    /// The commonest sum is 10: no other has as many one-digit problems, and larger ones are spread thin.
    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(1.0 / (9.0 * len as f64 * len as f64))
    }
}

#[cfg(test)]
pub(crate) mod tests;
