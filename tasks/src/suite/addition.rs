//! # Addition: add two numbers, digit by digit
//! ## What it asks of an encoding
//! Aligning digit `k` of the first number, of the second number and of the sum. The two distances differ between
//! problems and are constant within a problem. Beyond the trained sizes, digits must be aligned at indices that never
//! occurred in training.
//!
//! ## Predicted order
//! According to Zhu et al. 2025 (TAPE; trained up to 40 digits, mean over the grid up to 80): TAPE before FIRE before
//! randomised positions, which score as RoPE does. Encodings designed for digits (Abacus) generalise to more digits
//! (McLeish et al. 2024). NoPE and learned tables are last.
//!
//! ## Definition
//! `a + b = c .`, with one token per digit. All numbers begin with their least significant digit (`order = "reversed"`)
//! or with their most significant one (`"plain"`). `a` has `i` digits and `b` has `j`, both uniform among the numbers
//! of that size (no leading zero; 1 to 9 for one digit). `c` and the final `.` are scored. `len` is the greatest number
//! of digits: in training `i` and `j` are uniform in `1 ..= len`. The split `grid` enumerates the `len * len` pairs of
//! sizes, evenly for any number of samples (100 for each pair: `100 len * len` samples); `diagonal` has `i = j = len`,
//! which is not the training distribution. A sequence has at most `3 len + 4` tokens.
//!
//! Setting: `order`. Slices: `digits-a` and `digits-b`, the axes of a heat map; `carries`, the longest run of digits
//! that produce a carry. Slice of tokens: `place`, the index of the digit in `c`, 0 for the least significant; the `.`
//! has the index after the last digit. Chance, on `grid`: one in `9 len * len` (nine one-digit problems have the sum
//! 10).
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

use crate::generator::Generator;
use crate::random::below;
use crate::task::check_range;
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta, TokenSlice};

const PLUS: u32 = 10;
const EQUALS: u32 = 11;
const END: u32 = 12;

/// Number of the split `diagonal`.
const DIAGONAL: usize = 1;

/// Order of the digits of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DigitOrder {
    /// Least significant digit first: a carry comes from the previous digit.
    #[default]
    Reversed,
    /// Most significant digit first, as people write.
    Plain,
}

/// Settings of addition; the default is the source's. Token ids: the digits, then `+`, `=`, `.`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdditionConfig {
    /// Order of the digits of a number.
    pub order: DigitOrder,
}

/// Appends a number of exactly this many digits, the least significant first.
fn draw_number(digits: usize, tokens: &mut Vec<u32>, rng: &mut ChaCha8Rng) {
    tokens.extend((1..digits).map(|_| below(rng, 10)));
    tokens.push(1 + below(rng, 9));
}

/// Returns position `index` of a walk through an `n` by `n` grid that covers the grid evenly after any number of steps
/// and visits every position once in each round: strides of about 0.618 rounds.
fn grid_position(index: usize, n: usize) -> [usize; 2] {
    let positions = (n * n) as u128;
    let mut stride = (positions * 618 / 1000).max(1);
    while gcd(stride, positions) > 1 {
        stride += 1;
    }
    let at = (index as u128 * stride % positions) as usize;
    [at / n + 1, at % n + 1]
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl AdditionConfig {
    /// Draws a problem with numbers of `i` and `j` digits.
    fn problem(&self, i: usize, j: usize, rng: &mut ChaCha8Rng) -> Sample {
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
        if self.order == DigitOrder::Plain {
            tokens[..i].reverse();
            tokens[i + 1..=i + j].reverse();
            tokens[i + j + 2..].reverse();
        }
        tokens.push(END);
        let slices = vec![("digits-a", i as u32), ("digits-b", j as u32), ("carries", longest_run)];
        Sample::scored_from(i + j + 2, tokens, slices)
    }
}

impl Generator for AdditionConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "addition",
        label: "Addition",
        len_unit: "symbols",
        summary: "Add two numbers of up to the given number of digits.",
        source: "McLeish et al. 2024, arXiv 2405.17399",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("addition.rs");
    const SPLITS: &'static [Split] = &[
        Split::as_trained(
            "grid",
            "Every pair of sizes up to the given number of digits, equally often.",
        ),
        Split::part("diagonal", "Both numbers have exactly the given number of digits."),
    ];

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::Numbered("", 10), TokenGroup::Signs(&["+", "=", "."])]
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_mul(3).saturating_add(4)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(Self::META, len, 1, "the length is the maximum number of digits")
    }

    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut size = || if split == DIAGONAL { len } else { 1 + below(rng, len as u32) as usize };
        let (i, j) = (size(), size());
        self.problem(i, j, rng)
    }

    fn eval_sample(&self, split: usize, len: usize, index: usize, rng: &mut ChaCha8Rng) -> Sample {
        let [i, j] = if split == DIAGONAL { [len, len] } else { grid_position(index, len) };
        self.problem(i, j, rng)
    }

    fn token_slices(&self, sample: &Sample) -> Vec<TokenSlice> {
        let digits = sample.answer_len().saturating_sub(1) as u32;
        let mut places: Vec<u32> = (0..digits).collect();
        if self.order == DigitOrder::Plain {
            places.reverse();
        }
        places.push(digits);
        vec![("place", places)]
    }

    fn has_trained_size(&self, sample: &Sample, _len: usize, train_len: usize) -> bool {
        sample.slices[..2].iter().all(|(_, digits)| *digits as usize <= train_len)
    }

    /// Chance level of the guess 10, the most frequent sum; larger sums are less frequent.
    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(1.0 / (9.0 * len as f64 * len as f64))
    }
}

/// Tests of addition.
#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use rand::SeedableRng;

    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 94144722c9d2e9ca2d7f71f7bb1a38f80ae7d9f94c7993106704f823fbba7fd3";

    fn config(order: DigitOrder) -> TaskConfig {
        TaskConfig::from(AdditionConfig { order })
    }

    pub(crate) fn example() -> Example {
        Example::synthetic(config(DigitOrder::Reversed), 7, oracle, GOLDEN)
            .with_chance_config(config(DigitOrder::Plain), 1)
    }

    fn number(text: &[String]) -> u128 {
        text.concat().parse().unwrap()
    }

    /// Adds the numbers as integers and returns the digits of the sum in the order of the problem.
    fn sum_of(problem: &[String], reversed: bool) -> Vec<String> {
        let plus = problem.iter().position(|text| text == "+").unwrap();
        let turned = |digits: &[String]| {
            let mut digits = digits.to_vec();
            if reversed {
                digits.reverse();
            }
            digits
        };
        let sum = number(&turned(&problem[..plus])) + number(&turned(&problem[plus + 1..]));
        let digits: Vec<String> = sum.to_string().chars().map(String::from).collect();
        [turned(&digits), vec![".".to_owned()]].concat()
    }

    fn oracle(prefix: &[String]) -> Option<String> {
        let equals = prefix.iter().position(|text| text == "=")?;
        sum_of(&prefix[..equals], true).get(prefix.len() - equals - 1).cloned()
    }

    #[test]
    fn plain_order_is_right_too_and_places_count_from_the_right() {
        let task = config(DigitOrder::Plain).build().unwrap();
        for sample in task.eval_set("grid", 12, 200, 1).unwrap() {
            let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
            let equals = texts.iter().position(|text| text == "=").unwrap();
            assert_eq!(texts[equals + 1..], sum_of(&texts[..equals], false));
            let slices = task.token_slices(&sample);
            let digits = (texts.len() - equals - 2) as u32;
            let expected: Vec<u32> = (0..digits).rev().chain([digits]).collect();
            assert_eq!(slices, [("place", expected)]);
        }
    }

    #[test]
    fn grid_meets_every_cell_equally_often_and_evenly_from_the_start() {
        let task = AdditionConfig::default().build().unwrap();
        let counts = |n: usize, count| {
            let mut counts = BTreeMap::new();
            for sample in task.eval_set("grid", n, count, 2).unwrap() {
                *counts.entry([sample.slices[0].1, sample.slices[1].1]).or_insert(0) += 1;
            }
            counts
        };
        for n in [1, 2, 7, 10] {
            let full = counts(n, 3 * n * n);
            assert_eq!(full.len(), n * n);
            assert!(full.values().all(|c| *c == 3));
        }
        // A third of the cells: no quarter of the grid is missed or crowded.
        let part = counts(40, 533);
        assert_eq!(part.len(), 533);
        for (rows, columns) in [(0, 0), (0, 20), (20, 0), (20, 20)] {
            let inside = |cell: &&[u32; 2]| {
                (rows + 1..=rows + 20).contains(&cell[0])
                    && (columns + 1..=columns + 20).contains(&cell[1])
            };
            assert!(part.keys().filter(inside).count().abs_diff(133) < 25);
        }
    }

    #[test]
    fn diagonal_has_all_digits_and_numbers_never_start_with_zero() {
        let task = AdditionConfig::default().build().unwrap();
        for sample in task.eval_set("diagonal", 9, 200, 3).unwrap() {
            assert_eq!(sample.slices[..2], [("digits-a", 9), ("digits-b", 9)]);
            assert!(sample.tokens[8] > 0 && sample.tokens[18] > 0);
        }
        let trained: Vec<&str> =
            task.splits().iter().filter(|s| s.in_distribution).map(|s| s.name).collect();
        assert_eq!(trained, ["grid"], "training draws both sizes");
    }

    #[test]
    fn training_sizes_are_uniform_and_independent() {
        let task = AdditionConfig::default().build().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut counts = BTreeMap::new();
        for _ in 0..9000 {
            let sample = task.train_sample(3, &mut rng);
            *counts.entry([sample.slices[0].1, sample.slices[1].1]).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 9);
        assert!(counts.values().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
    }

    #[test]
    fn chance_is_that_of_the_commonest_sum_among_all_problems() {
        let task = AdditionConfig::default().build().unwrap();
        for n in [1, 2, 3_u32] {
            let mut sums = BTreeMap::new();
            let numbers = |digits: u32| 10_u32.pow(digits - 1)..10_u32.pow(digits);
            for i in 1..=n {
                for j in 1..=n {
                    let problems = f64::from(n * n) * (numbers(i).len() * numbers(j).len()) as f64;
                    for a in numbers(i) {
                        for b in numbers(j) {
                            *sums.entry(a + b).or_insert(0.0) += 1.0 / problems;
                        }
                    }
                }
            }
            let commonest = sums.into_values().reduce(f64::max).unwrap();
            assert!((task.chance_at(n as usize).unwrap() - commonest).abs() < 1e-9, "{n}");
        }
    }

    #[test]
    fn carries_are_the_longest_run() {
        let task = AdditionConfig::default().build().unwrap();
        for sample in task.eval_set("diagonal", 6, 300, 5).unwrap() {
            let [mut carry, mut run, mut longest] = [0; 3];
            for k in 0..6 {
                carry = (sample.tokens[k] + sample.tokens[7 + k] + carry) / 10;
                run = if carry == 1 { run + 1 } else { 0 };
                longest = longest.max(run);
            }
            assert_eq!(sample.slices[2], ("carries", longest));
        }
    }

    #[test]
    fn bad_settings_and_lengths_are_refused() {
        let unknown = serde_json::from_str::<AdditionConfig>(r#"{"order": "backwards"}"#);
        assert!(unknown.unwrap_err().to_string().contains("expected `reversed` or `plain`"));
        let task = AdditionConfig::default().build().unwrap();
        assert!(
            task.check_len(0).unwrap_err().to_string().contains("the maximum number of digits")
        );
    }
}
