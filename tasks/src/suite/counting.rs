//! # Counting: what is the value of a variable after its increments?
//! ## What it asks of an encoding
//! To count the increments of one variable since it was last set, and only those, among many statements that do
//! nothing. Counting by attention needs positions that advance with meaning, not with tokens.
//!
//! ## Predicted order
//! CoPE before relative before learned absolute: Golovneva et al. 2024 report errors of 0, 1.1 and 5.3 % with one
//! variable, 1.2, 17.8 and 67.6 % with three, 7.4, 22.4 and 71.5 % with five; with more `pass;` 0 and 8.8 % for CoPE
//! and relative, with fewer 4.0 and 34.1 %.
//!
//! ## Definition
//! A program has `n` statements, `n` uniform in `3 ..= max_ops`, `max_ops = len * max_ops_per_token`. Each statement
//! is drawn with weights `set_weight`, `pass_weight`, `increment_weight`: `v = 0 ;` for a uniform variable, `pass;`,
//! or `v ++;` for a uniform variable among those already set. A statement that is impossible (nothing set yet, or the
//! value would exceed `max_value`) is drawn again, kind and all. Then `print v` for a uniform variable among those
//! set, and its value, the one scored token. A program that sets nothing is drawn again as a whole, its `n` too.
//! Names, `=`, `;`, `++;`, `pass;`, `print` and each value are one token each.
//!
//! `len` is the longest sequence in tokens, question and answer included: longer programs lose statements from the
//! **left**, as in the authors' data. That can cut off the `set` that the answer depends on (slice `set-lost`). How
//! often: with one variable 2 % of the samples at length 64, 0.4 % at 128, none in 4000 at 512; with five 4 %, 2 %
//! and 0.3 %, in the split `fewer-pass` up to 10 % at length 64.
//!
//! Settings: `variables` 1 (1 to 26), `pass_weight` 50, `pass_weight_more` 100 and `pass_weight_fewer` 10 (for the
//! splits), `set_weight` 1, `increment_weight` 7, `max_value` 10, `max_ops_per_token` 1 (statements per token of
//! `len`), `train_samples` (left out: no end; the authors have 10,000 and less in their figure 2), which makes the
//! training set finite: one fixed sequence of samples, of which a smaller set has the first. The defaults are the
//! authors'. Chance: the share of the commonest answer among samples drawn for the purpose. Slices: `answer`; `span` in tokens from the `set` that counts to the
//! answer, cut or not; `set-lost` 0 or 1.
//!
//! ## Sample
//! ```text
//! pass; pass; pass; pass; a = 0 ; pass; pass; pass; a ++; pass; pass; pass;
//! pass; pass; a ++; a ++; pass; pass; pass; pass; pass; pass; pass; pass; pass;
//! a ++; pass; pass; pass; pass; print a 4
//!                                       ^
//! ```
//!
//! ## Source
//! Golovneva, Wang, Weston, Sukhbaatar: Contextual Position Encoding, 2024, arXiv 2405.18719, and the authors'
//! `projects/cope/scripts/count_data_gen.py` (`facebookresearch/RAM` at 42a13702). They give up after 100 impossible
//! statements or 1000 programs; here the settings are restricted so that neither can go on for long.

mod program;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::generator::{Generated, Generator, simulated_chance};
use crate::random::Weighted;
use crate::task::{check_range, check_setting, invalid};
use crate::{Headline, Sample, Split, TaskError, TaskMeta};

use program::Rules;
pub use program::{Program, Statement};

/// What is true of counting whatever its settings.
pub const META: TaskMeta = TaskMeta {
    id: "counting",
    label: "Counting",
    version: 1,
    headline: Headline::ExactMatch,
    len_unit: "tokens",
    summary: "Count the increments of a variable since it was last set.",
    source: "Golovneva et al. 2024 (CoPE), arXiv 2405.18719",
    takes_path: false,
};

const PASS: u32 = 0;
const EQUALS: u32 = 1;
const SEMICOLON: u32 = 2;
const PLUS: u32 = 3;
const PRINT: u32 = 4;
const VALUE: u32 = 5;
const TEXTS: [&str; 5] = ["pass;", "=", ";", "++;", "print"];

/// Fewest statements of a program, as in the authors' generator.
const MIN_OPS: u32 = 3;
/// `a = 0 ; pass; pass; print a 0`: below this length every sample would lose its `set`.
const MIN_LEN: usize = 9;

const SPLITS: &[Split] = &[
    Split {
        name: "in-distribution",
        in_distribution: true,
        about: "As many empty statements as in training.",
    },
    Split {
        name: "more-pass",
        in_distribution: false,
        about: "More empty statements: increments lie further apart.",
    },
    Split {
        name: "fewer-pass",
        in_distribution: false,
        about: "Fewer empty statements: more increments to count.",
    },
];

/// Settings; the defaults are the authors'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CountingConfig {
    /// How many variables, 1 to 26.
    pub variables: u32,
    /// Weight of `pass;` in training and in the split `in-distribution`.
    pub pass_weight: f64,
    /// Weight of `pass;` in the split `more-pass`.
    pub pass_weight_more: f64,
    /// Weight of `pass;` in the split `fewer-pass`.
    pub pass_weight_fewer: f64,
    /// Weight of `v = 0 ;`.
    pub set_weight: f64,
    /// Weight of `v ++;`.
    pub increment_weight: f64,
    /// Highest value of a variable, 1 to 1000.
    pub max_value: u32,
    /// Most statements of a program, per token of `len`.
    pub max_ops_per_token: f64,
    /// Size of the training set; left out: every sample is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_samples: Option<u32>,
}

impl Default for CountingConfig {
    fn default() -> Self {
        Self {
            variables: 1,
            pass_weight: 50.0,
            pass_weight_more: 100.0,
            pass_weight_fewer: 10.0,
            set_weight: 1.0,
            increment_weight: 7.0,
            max_value: 10,
            max_ops_per_token: 1.0,
            train_samples: None,
        }
    }
}

impl CountingConfig {
    /// Checks the settings and makes the task.
    ///
    /// # Errors
    /// [`TaskError::InvalidSetting`] for a setting out of range.
    pub fn build(&self) -> Result<Generated<Counting>, TaskError> {
        check_setting(&META, "variables", self.variables, &(1..=program::MAX_VARIABLES as u32))?;
        check_setting(&META, "max_value", self.max_value, &(1..=1000))?;
        check_setting(&META, "max_ops_per_token", self.max_ops_per_token, &(0.001..=100.0))?;
        check_setting(&META, "set_weight", self.set_weight, &(1e-6..=1e6))?;
        if let Some(count) = self.train_samples {
            check_setting(&META, "train_samples", count, &(1..=u32::MAX))?;
        }
        for (field, weight) in [
            ("pass_weight", self.pass_weight),
            ("pass_weight_more", self.pass_weight_more),
            ("pass_weight_fewer", self.pass_weight_fewer),
            ("increment_weight", self.increment_weight),
        ] {
            // Rarer sets would mean drawing thousands of programs for one that can be asked about.
            let most = 1000.0 * self.set_weight;
            if !(0.0..=most).contains(&weight) {
                let expected = format!("between 0 and {most} (1000 times set_weight)");
                return Err(invalid(&META, field, &weight, expected));
            }
        }
        let odds = |pass| Weighted::new([self.set_weight, pass, self.increment_weight]);
        let odds = [self.pass_weight, self.pass_weight_more, self.pass_weight_fewer].map(odds);
        Ok(Generated(Counting {
            odds,
            variables: self.variables,
            max_value: self.max_value,
            max_ops_per_token: self.max_ops_per_token,
            train_samples: self.train_samples,
        }))
    }
}

/// The counting task. Token ids: `pass;`, `=`, `;`, `++;`, `print`, the values from 0, the variables.
#[derive(Debug, Clone)]
pub struct Counting {
    /// Of set, pass, increment in each split.
    odds: [Weighted<3>; 3],
    variables: u32,
    max_value: u32,
    max_ops_per_token: f64,
    train_samples: Option<u32>,
}

impl Counting {
    /// Draws a program with the training weights, as long as one of length `len` may be before it is truncated.
    pub fn program(&self, len: usize, rng: &mut ChaCha8Rng) -> Program {
        self.draw_program(0, len, rng)
    }

    /// The program as tokens, question and answer included, and the place of the `set` that the answer depends on.
    pub fn tokens(&self, program: &Program) -> (Vec<u32>, usize) {
        let variable = VALUE + self.max_value + 1;
        let mut tokens = Vec::with_capacity(2 * program.statements.len());
        let mut set_at = 0;
        for statement in &program.statements {
            match *statement {
                Statement::Pass => tokens.push(PASS),
                Statement::Increment(v) => tokens.extend([variable + v, PLUS]),
                Statement::Set(v) => {
                    if v == program.query {
                        set_at = tokens.len();
                    }
                    tokens.extend([variable + v, EQUALS, VALUE, SEMICOLON]);
                }
            }
        }
        tokens.extend([PRINT, variable + program.query, VALUE + program.answer]);
        (tokens, set_at)
    }

    fn max_ops(&self, len: usize) -> u32 {
        (len as f64 * self.max_ops_per_token) as u32
    }

    fn draw_program(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Program {
        let rules = Rules {
            odds: &self.odds[split],
            ops: MIN_OPS..=self.max_ops(len),
            variables: self.variables,
            max_value: self.max_value,
        };
        rules.draw(rng)
    }
}

impl Generator for Counting {
    const META: &'static TaskMeta = &META;

    fn splits(&self) -> &'static [Split] {
        SPLITS
    }

    fn vocab_size(&self) -> usize {
        (VALUE + self.max_value + 1 + self.variables) as usize
    }

    fn token_text(&self, token: u32) -> String {
        let Some(value) = token.checked_sub(VALUE) else {
            return TEXTS[token as usize].to_owned();
        };
        match value.checked_sub(self.max_value + 1) {
            None => value.to_string(),
            Some(v) if v < self.variables => {
                char::from_u32(u32::from('a') + v).unwrap_or('?').to_string()
            }
            Some(_) => "?".to_owned(),
        }
    }

    fn max_tokens(&self, len: usize) -> usize {
        len
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(&META, len, MIN_LEN, "the shortest program with its question")?;
        if self.max_ops(len) >= MIN_OPS {
            return Ok(());
        }
        let min = (f64::from(MIN_OPS) / self.max_ops_per_token).ceil();
        Err(TaskError::InvalidLen {
            task: META.id,
            len,
            expected: format!(
                "at least {min} tokens for {MIN_OPS} statements at max_ops_per_token {}",
                self.max_ops_per_token
            ),
        })
    }

    fn train_samples(&self) -> Option<u32> {
        self.train_samples
    }

    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let program = self.draw_program(split, len, rng);
        let (mut tokens, set_at) = self.tokens(&program);
        let span = tokens.len() - 1 - set_at;
        let lost = tokens.len().saturating_sub(len);
        tokens.drain(..lost);
        let slices = vec![
            ("answer", program.answer),
            ("span", span as u32),
            ("set-lost", u32::from(lost > set_at)),
        ];
        Sample::scored_from(tokens.len() - 1, tokens, slices)
    }

    /// The `++;` of the variable that is asked for, since it was last set.
    fn counted(&self, sample: &Sample) -> Option<Vec<bool>> {
        let tokens = &sample.tokens;
        let asked = tokens[tokens.len() - 2];
        let set = tokens.windows(2).rposition(|pair| pair == [asked, EQUALS]).unwrap_or(0);
        let mut counted = vec![false; tokens.len()];
        for t in set.max(1)..tokens.len() {
            counted[t] = tokens[t] == PLUS && tokens[t - 1] == asked;
        }
        Some(counted)
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(simulated_chance(self, len))
    }
}

#[cfg(test)]
pub(crate) mod tests;
