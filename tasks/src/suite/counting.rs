//! # Counting: the value of a variable after its increments
//! ## What it asks of an encoding
//! Counting only the increments of one variable since it was last set, among many statements without effect. Counting
//! by attention needs positions that advance with content, not with tokens.
//!
//! ## Predicted order
//! CoPE before relative before learned absolute: Golovneva et al. 2024 report errors of 0, 1.1 and 5.3% with one
//! variable, 1.2, 17.8 and 67.6% with three, and 7.4, 22.4 and 71.5% with five. For CoPE and relative they report 0 and
//! 8.8% with more `pass;`, and 4.0 and 34.1% with fewer.
//!
//! ## Definition
//! A program has `n` statements, `n` uniform in `3 ..= max_ops`, `max_ops = len * max_ops_per_token`. Each statement is
//! `v = 0 ;` for a uniform variable, `pass;`, or `v ++;` for a uniform variable among those already set, with the
//! weights `set_weight`, `pass_weight` and `increment_weight`. An impossible statement (nothing set yet, or the value
//! would exceed `max_value`) is drawn again with its kind. Then follow `print v`, for a uniform variable among those
//! set, and its value, the only scored token. A program that sets nothing is drawn again with its `n`. Names, `=`, `;`,
//! `++;`, `pass;`, `print` and each value are one token each.
//!
//! `len` is the longest sequence in tokens, question and answer included: longer programs lose statements on the
//! **left**, as in the authors' data. This can remove the `set` on which the answer depends (slice `set-lost`). With
//! one variable it happens in 2% of the training samples at length 64, in 0.4% at 128 and in none of 4000 at 512; with
//! five variables in 4%, 2% and 0.3%. Such evaluation samples, up to 10% in the split `fewer-pass` at length 64, are
//! drawn again, at most 100 times. With extreme settings some remain; the slice `set-lost` shows them.
//!
//! Settings: `variables` 1 (1 to 26), `pass_weight` 50, `pass_weight_more` 100 and `pass_weight_fewer` 10 (for the
//! splits), `set_weight` 1, `increment_weight` 7, `max_value` 10, `max_ops_per_token` 1 (statements per token of
//! `len`), `train_samples` (left out: unlimited; the authors use 10,000, and fewer in their figure 2). `train_samples`
//! makes the training set finite: a fixed sequence of samples, of which a smaller set has the first. The defaults are
//! the authors' values. Chance: the share of the most frequent answer among simulated samples. Slices: `answer`;
//! `span`, tokens before truncation from the last `set` of the variable to the answer; `set-lost` 0 or 1.
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
//! `projects/cope/scripts/count_data_gen.py` (`facebookresearch/RAM` at 42a13702). The authors' code stops after 100
//! impossible statements or 1000 programs. Here the settings are restricted so that neither loop is long.

mod program;

use rand_chacha::ChaCha8Rng;

use crate::generator::{Generator, simulated_chance};
use crate::random::Weighted;
use crate::settings::settings;
use crate::task::{check_range, check_setting, invalid, invalid_len};
use crate::vocabulary::TokenGroup;
use crate::{Sample, Split, TaskError, TaskMeta};

use program::Rules;
pub use program::{CountingProgram, Statement};

const PASS: u32 = 0;
const EQUALS: u32 = 1;
const SEMICOLON: u32 = 2;
const PLUS: u32 = 3;
const PRINT: u32 = 4;
const VALUE: u32 = 5;

/// Fewest statements of a program, as in the authors' generator.
const MIN_OPS: u32 = 3;
/// Shortest program, `a = 0 ; pass; pass; print a 0`; in anything shorter, every sample would lose its `set`.
const MIN_LEN: usize = 9;

/// Slice of the samples that lost the `set` on which their answer depends.
const SET_LOST: (&str, u32) = ("set-lost", 1);
/// Maximum number of redraws of an evaluation sample that lost its `set`. Only extreme settings need more than a few.
const MAX_REDRAWS: usize = 100;

settings! {
    /// Settings of counting; the defaults are the authors'. Token ids: `pass;`, `=`, `;`, `++;`, `print`, the values from
    /// 0, the variables.
    pub struct CountingConfig {
        /// Number of variables, 1 to 26.
        pub variables: u32 = 1,
        /// Weight of `pass;` in training and in the split `in-distribution`.
        pub pass_weight: f64 = 50.0,
        /// Weight of `pass;` in the split `more-pass`.
        pub pass_weight_more: f64 = 100.0,
        /// Weight of `pass;` in the split `fewer-pass`.
        pub pass_weight_fewer: f64 = 10.0,
        /// Weight of `v = 0 ;`.
        pub set_weight: f64 = 1.0,
        /// Weight of `v ++;`.
        pub increment_weight: f64 = 7.0,
        /// Highest value of a variable, 1 to 1000.
        pub max_value: u32 = 10,
        /// Greatest number of statements of a program, per token of `len`.
        pub max_ops_per_token: f64 = 1.0,
        /// Size of the training set; `None`: every sample is new.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub train_samples: Option<u32> = None,
    }
}

impl CountingConfig {
    /// Draws a program of the split with this number (0: in distribution, 1: more `pass`, 2: fewer), of any length up to the
    /// limit for `len`, not truncated.
    ///
    /// # Panics
    /// If `split` is above 2.
    pub fn program(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> CountingProgram {
        let pass = [self.pass_weight, self.pass_weight_more, self.pass_weight_fewer][split];
        let rules = Rules {
            odds: Weighted::new([self.set_weight, pass, self.increment_weight]),
            ops: MIN_OPS..=self.max_ops(len),
            variables: self.variables,
            max_value: self.max_value,
        };
        rules.draw(rng)
    }

    /// The program as tokens, question and answer included, and the index of the `set` that the answer depends on.
    pub fn tokens(&self, program: &CountingProgram) -> (Vec<u32>, usize) {
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
}

impl Generator for CountingConfig {
    const META: &'static TaskMeta = &TaskMeta {
        id: "counting",
        label: "Counting",
        version: 2,
        summary: "Count the increments of a variable since it was last set.",
        source: "Golovneva et al. 2024 (CoPE), arXiv 2405.18719",
        ..TaskMeta::GENERATED
    };
    const SOURCE: &'static str = include_str!("counting.rs");
    const SPLITS: &'static [Split] = &[
        Split::as_trained("in-distribution", "As many empty statements as in training."),
        Split::shifted("more-pass", "More empty statements: increments are further apart."),
        Split::shifted("fewer-pass", "Fewer empty statements: more increments to count."),
    ];

    fn check(&self) -> Result<(), TaskError> {
        let variables = 1..=program::MAX_VARIABLES as u32;
        check_setting(Self::META, "variables", self.variables, &variables)?;
        check_setting(Self::META, "max_value", self.max_value, &(1..=1000))?;
        check_setting(Self::META, "max_ops_per_token", self.max_ops_per_token, &(0.001..=100.0))?;
        check_setting(Self::META, "set_weight", self.set_weight, &(1e-6..=1e6))?;
        if let Some(count) = self.train_samples {
            check_setting(Self::META, "train_samples", count, &(1..=u32::MAX))?;
        }
        for (field, weight) in [
            ("pass_weight", self.pass_weight),
            ("pass_weight_more", self.pass_weight_more),
            ("pass_weight_fewer", self.pass_weight_fewer),
            ("increment_weight", self.increment_weight),
        ] {
            // Rarer sets would mean drawing thousands of programs for one with an answer.
            let most = 1000.0 * self.set_weight;
            if !(0.0..=most).contains(&weight) {
                let expected = format!("between 0 and {most} (1000 times set_weight)");
                return Err(invalid(Self::META, field, &weight, expected));
            }
        }
        Ok(())
    }

    fn vocabulary(&self) -> Vec<TokenGroup> {
        vec![
            TokenGroup::Signs(&["pass;", "=", ";", "++;", "print"]),
            TokenGroup::Numbered("", self.max_value + 1),
            TokenGroup::symbols(self.variables),
        ]
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        check_range(
            Self::META,
            len,
            MIN_LEN,
            "the minimum fits the shortest program with its question",
        )?;
        if self.max_ops(len) >= MIN_OPS {
            return Ok(());
        }
        let per_token = self.max_ops_per_token;
        let min = (f64::from(MIN_OPS) / per_token).ceil();
        let expected = format!(
            "at least {min} tokens for {MIN_OPS} statements at max_ops_per_token {per_token}"
        );
        Err(invalid_len(Self::META, len, expected))
    }

    fn train_samples(&self) -> Option<u32> {
        self.train_samples
    }

    fn sample(&self, split: usize, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let program = self.program(split, len, rng);
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

    /// Evaluation samples whose `set` was truncated have no answer and are drawn again, at most `MAX_REDRAWS` times.
    fn eval_sample(&self, split: usize, len: usize, _index: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut sample = self.sample(split, len, rng);
        for _ in 0..MAX_REDRAWS {
            if !sample.slices.contains(&SET_LOST) {
                break;
            }
            sample = self.sample(split, len, rng);
        }
        sample
    }

    /// Marks each `++;` of the variable in the question since the variable was last set.
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

    /// Programs have any number of tokens and statements up to the limits for a length.
    fn has_trained_size(&self, sample: &Sample, _len: usize, train_len: usize) -> bool {
        let ends = [PASS, SEMICOLON, PLUS];
        let statements = sample.tokens.iter().filter(|token| ends.contains(token)).count();
        sample.tokens.len() <= train_len && statements <= self.max_ops(train_len) as usize
    }

    fn chance_at(&self, len: usize) -> Option<f64> {
        Some(simulated_chance(self, len))
    }
}

#[cfg(test)]
pub(crate) mod tests;
