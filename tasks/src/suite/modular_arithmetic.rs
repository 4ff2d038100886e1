//! # Modular arithmetic: the value of an expression
//! ## What it asks of an encoding
//! Distinguishing neighbours from distant tokens: a number belongs to the sign before it, and products come before
//! sums. Then adding all terms, wherever they are.
//!
//! ## Predicted order
//! No order beyond the trained lengths: Deletang et al. 2023 find transformers near chance with all of their five
//! encodings, and randomised positions (Ruoss et al. 2023) help only a little. Within the trained lengths, encodings
//! that can attend to the neighbour (RoPE, relative, learned absolute) before NoPE.
//!
//! ## Definition
//! `e = v`. In `e` numbers below `modulus` alternate with signs, all independent and uniform. `v`, the only scored
//! token, is the value of `e` modulo `modulus`, with products before sums. `len` counts the symbols of `e`. In training
//! it is uniform in `min_len ..= len`, in evaluation it is exactly `len`. Even lengths are lowered by one, as in the
//! source, and so is an even `min_len`. A sequence has `len + 2` tokens.
//!
//! Settings: `modulus` 5 (2 to 10), `operators` `all` (`+`, `-`, `*`) or `plus-minus`, `min_len` 1 (shortest training
//! expression, in symbols). Slice: `length` of `e`. Chance: the probability of the most frequent value. If there are
//! products, this is the value 0.
//!
//! ## Sample
//! ```text
//! 3 * 2 - 3 - 0 + 4 = 2
//!                     ^
//! ```
//!
//! ## Source
//! DeepMind's `neural_networks_chomsky_hierarchy`, task `modular_arithmetic` (without brackets; trained up to length 40
//! and tested from 41 to 100; Deletang et al. 2023, arXiv 2207.02098), here as next-token prediction.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::Generator;
use crate::random::below;
use crate::settings::settings;
use crate::strings::UNIFORM;
use crate::task::{MAX_LEN, check_range, check_setting};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

const PLUS: u32 = 0;
const MINUS: u32 = 1;
const EQUALS: u32 = 3;

/// Signs of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operators {
    /// `+`, `-` and `*`.
    All,
    /// `+` and `-` only.
    PlusMinus,
}

impl Operators {
    /// Number of signs, taken from the start of `+`, `-`, `*`.
    fn count(self) -> u32 {
        match self {
            Operators::All => 3,
            Operators::PlusMinus => 2,
        }
    }
}

settings! {
    /// Settings of modular arithmetic; the defaults are those of the source. Token ids: the numbers, then `+`, `-`, `*`,
    /// `=`.
    #[derive(Eq)]
    pub struct ModularArithmeticConfig {
        /// Modulus of all values, 2 to 10.
        pub modulus: u32 = 5,
        /// Signs of an expression.
        pub operators: Operators = Operators::All,
        /// Shortest training expression, in symbols.
        pub min_len: usize = 1,
    }
}

impl Generator for ModularArithmeticConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "modular-arithmetic",
        label: "Modular arithmetic",
        len_unit: "symbols",
        summary: "Reduce an expression of sums and products modulo 5.",
        source: "Deletang et al. 2023, arXiv 2207.02098",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("modular_arithmetic.rs");
    const SPLITS: &'static [Split] = UNIFORM;

    fn check(&self) -> Result<(), TaskError> {
        check_setting(Self::META, "modulus", self.modulus, &(2..=10))?;
        check_setting(Self::META, "min_len", self.min_len, &(1..=MAX_LEN))
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![TokenGroup::Numbered("", self.modulus), TokenGroup::Signs(&["+", "-", "*", "="])]
    }

    fn max_tokens(&self, len: usize) -> usize {
        len.saturating_add(2)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(Self::META, len, self.min_len, "min_len sets the minimum")
    }

    fn min_train_len(&self) -> Option<usize> {
        Some(self.min_len)
    }

    fn sample(&self, _split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let Self { modulus, operators, .. } = *self;
        let symbols = len - usize::from(len.is_multiple_of(2));
        let mut tokens = Vec::with_capacity(symbols + 2);
        // The sum of the finished terms, and the term that further factors multiply.
        let mut sum = 0;
        let mut term = below(rng, modulus);
        tokens.push(term);
        while tokens.len() < symbols {
            let sign = below(rng, operators.count());
            let number = below(rng, modulus);
            tokens.extend([modulus + sign, number]);
            match sign {
                PLUS => (sum, term) = (sum + term, number),
                MINUS => (sum, term) = (sum + term, modulus - number),
                _ => term = term * number % modulus,
            }
            sum %= modulus;
        }
        tokens.extend([modulus + EQUALS, (sum + term) % modulus]);
        Sample::scored_from(symbols + 1, tokens, vec![("length", symbols as u32)])
    }

    /// An even length has the expressions of the odd one below it.
    fn has_trained_size(&self, sample: &Sample, _len: usize, train_len: usize) -> bool {
        sample.tokens.len() <= self.max_tokens(train_len)
    }

    /// Computes the chance level by propagating the joint distribution of the finished sum and the open term from
    /// sign to sign.
    fn chance_at(&self, len: usize) -> Option<f64> {
        let m = self.modulus as usize;
        let signs = f64::from(self.operators.count());
        let uniform = 1.0 / m as f64;
        let mut joint = vec![0.0; m * m];
        joint[..m].fill(uniform);
        // The distribution converges long before this many signs.
        for _ in 0..((len.max(1) - 1) / 2).min(200) {
            let mut next = vec![0.0; m * m];
            for (state, p) in joint.iter().enumerate() {
                let (sum, term) = (state / m, state % m);
                for number in 0..m {
                    // `+` and `-` alike: minus a uniform number is a uniform number.
                    next[(sum + term) % m * m + number] += p * uniform * 2.0 / signs;
                    next[sum * m + term * number % m] += p * uniform * (signs - 2.0) / signs;
                }
            }
            joint = next;
        }
        let mut values = vec![0.0; m];
        for (state, p) in joint.iter().enumerate() {
            values[(state / m + state % m) % m] += p;
        }
        values.into_iter().reduce(f64::max)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::TaskSettings as _;
    use crate::testing::Example;
    use crate::{Task, TaskConfig};

    /// Golden output of `checks::golden`: generator version and hash.
    const GOLDEN: &str = "v1 2c05796d0aa220891d7c56c225da4aeb93f6da957212d616c850b7b1a81dafc2";

    pub(crate) fn example() -> Example {
        let config = TaskConfig::from(ModularArithmeticConfig::default());
        Example::synthetic(config.clone(), 15, oracle, GOLDEN).with_chance_config(config, 5)
    }

    /// Splits the text at `+` and `-`, multiplies out each piece and adds up.
    fn oracle(prefix: &[String]) -> Option<String> {
        let (equals, expression) = prefix.split_last()?;
        assert_eq!(equals, "=");
        let value = |text: &String| text.parse::<i64>().unwrap();
        let (mut total, mut sign) = (0, 1);
        for piece in expression.split_inclusive(|text| text == "+" || text == "-") {
            let product = piece.iter().step_by(2).map(value).fold(1, |product, n| product * n % 5);
            total += sign * product;
            sign = if piece.last()? == "-" { -1 } else { 1 };
        }
        Some(total.rem_euclid(5).to_string())
    }

    #[test]
    fn even_lengths_are_lowered_by_one() {
        let task = ModularArithmeticConfig::default().build().unwrap();
        for (len, symbols) in [(1, 1), (2, 1), (9, 9), (10, 9)] {
            for sample in task.eval_set("uniform", len, 10, 0).unwrap() {
                assert_eq!(sample.tokens.len(), symbols + 2);
                assert_eq!(sample.slices, [("length", symbols as u32)]);
            }
        }
    }

    #[test]
    fn chance_is_even_without_products_and_tilts_to_zero_with_them() {
        let chance = |operators, len| {
            let config =
                ModularArithmeticConfig { operators, ..ModularArithmeticConfig::default() };
            config.build().unwrap().chance_at(len).unwrap()
        };
        assert!((chance(Operators::PlusMinus, 21) - 0.2).abs() < 1e-12);
        // One sign: two thirds uniform; one third a product, 9 of whose 25 cases are 0.
        let three = 2.0 / 3.0 * 0.2 + 1.0 / 3.0 * 9.0 / 25.0;
        assert!((chance(Operators::All, 3) - three).abs() < 1e-12);
        assert!((0.2..0.21).contains(&chance(Operators::All, 41)));
    }

    #[test]
    fn settings_choose_signs_and_numbers() {
        let config: ModularArithmeticConfig =
            serde_json::from_str(r#"{"modulus": 3, "operators": "plus-minus"}"#).unwrap();
        let task = config.build().unwrap();
        let set = task.eval_set("uniform", 31, 50, 1).unwrap();
        let mut texts: Vec<String> =
            set.iter().flat_map(|s| &s.tokens).map(|t| task.token_text(*t)).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts, ["+", "-", "0", "1", "2", "="]);
    }

    #[test]
    fn bad_settings_name_the_field() {
        let said = |json| {
            let config: ModularArithmeticConfig = serde_json::from_str(json).unwrap();
            config.build().unwrap_err().to_string()
        };
        assert_eq!(
            said(r#"{"modulus": 11}"#),
            "modular-arithmetic: modulus is 11, must be between 2 and 10"
        );
        assert!(said(r#"{"min_len": 0}"#).contains("min_len is 0, must be between 1"));
        let unknown = serde_json::from_str::<ModularArithmeticConfig>(r#"{"operators": "plus"}"#);
        assert!(unknown.unwrap_err().to_string().contains("unknown variant `plus`"));
    }
}
