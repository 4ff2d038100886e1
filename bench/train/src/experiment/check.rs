//! Checks of an experiment before anything is built.

use anyhow::{Result, anyhow};
use records::WeightsAt;

use super::{EvalConfig, Experiment, TrainConfig, out_of_range};
use pe_zoo::model::MOST_STEP_OPERATIONS;

/// Maximum number of training steps.
const MOST_STEPS: usize = 1_000_000_000;

/// Maximum number of sequences of a batch or an evaluation.
pub const MOST_SEQUENCES: usize = 1 << 24;

/// Maximum number of tokens of a sequence.
const MOST_TOKENS: usize = 1 << 26;

/// Maximum number of tokens of an evaluation.
pub const MOST_EVAL_TOKENS: usize = 1 << 40;

/// Refuses values that are 0 or above their limit; each with the name of its field.
fn check_numbers(numbers: &[(&'static str, usize, usize)]) -> Result<()> {
    match numbers.iter().find(|(_, value, most)| *value == 0 || value > most) {
        None => Ok(()),
        Some((field, value, most)) => Err(out_of_range(field, value, format!("1 to {most}"))),
    }
}

/// Returns the first value that is listed again.
pub fn repeated<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find_map(|(at, value)| values[..at].contains(value).then_some(value))
}

impl TrainConfig {
    /// Checks steps and batches.
    ///
    /// # Errors
    /// If a number is out of range, with the field.
    pub fn check_sizes(&self) -> Result<()> {
        check_numbers(&[
            ("train.steps", self.steps, MOST_STEPS),
            ("train.batch_size", self.batch_size, MOST_SEQUENCES),
            ("train.curve_points", self.curve_points, MOST_STEPS),
            ("train.micro_batch_size", self.at_once(), self.batch_size.min(MOST_SEQUENCES)),
        ])
    }
}

impl Experiment {
    /// Checks the configuration before anything is trained.
    ///
    /// # Errors
    /// If a setting is out of range or does not fit the task, with the field.
    pub fn check(&self, task: &dyn tasks::Task) -> Result<()> {
        self.model.check()?;
        self.train.check_sizes()?;
        check_numbers(&[
            ("eval.samples", self.eval.samples, MOST_SEQUENCES),
            ("eval.tokens", self.eval.tokens.unwrap_or(1), MOST_EVAL_TOKENS),
            ("eval.batch_size", self.eval.batch_size, MOST_SEQUENCES),
        ])?;
        self.check_evaluations()?;
        self.train.optimizer.check()?;
        self.check_validation(task)?;
        self.check_weights(task)?;
        let at = |field| move |source| anyhow!("{field}: {source}");
        task.check_len(self.train.len).map_err(at("train.len"))?;
        for len in self.eval.lens_or(&self.train.len) {
            task.check_len(*len).map_err(at("eval.lens"))?;
        }
        self.check_operations(task)?;
        let validated = self.train.validation.iter().flat_map(|validation| &validation.splits);
        for split in self.eval.splits.iter().flatten().chain(validated) {
            // Refuses an unknown split, with the nearest name.
            task.eval_set(split, self.train.len, 1, 0)?;
        }
        self.encoding.check(&self.dims(task))?;
        self.encoding.biases()?;
        Ok(())
    }

    /// Refuses a training whose operations exceed what a counter can hold.
    fn check_operations(&self, task: &dyn tasks::Task) -> Result<()> {
        let [tokens, longest] = self.token_lens(task);
        for (field, batch_size, len) in [
            ("train.batch_size", self.train.at_once(), tokens),
            ("eval.batch_size", self.eval.batch_size, longest),
        ] {
            let operations = self.model.step_operations(task.vocab_size(), len, batch_size);
            if operations > MOST_STEP_OPERATIONS {
                let expected = format!(
                    "a smaller value or a smaller model: {batch_size} sequences of {len} tokens take about \
                     {operations:.0e} operations, more than {MOST_STEP_OPERATIONS:e}"
                );
                return Err(out_of_range(field, batch_size, expected));
            }
        }
        Ok(())
    }

    /// Refuses lengths and splits that would count the same evaluation several times, and a list of no splits.
    fn check_evaluations(&self) -> Result<()> {
        let EvalConfig { lens, splits, .. } = &self.eval;
        let splits = splits.as_deref();
        let once = |value: String| format!("each value once, but {value} is repeated");
        let (field, value, expected) = if let Some(len) = repeated(lens) {
            ("eval.lens", format!("{lens:?}"), once(len.to_string()))
        } else if let Some(split) = splits.and_then(repeated) {
            ("eval.splits", format!("{:?}", splits.unwrap_or_default()), once(format!("{split:?}")))
        } else if splits.is_some_and(<[_]>::is_empty) {
            let expected = "at least one split (leave out the list for all splits)".to_owned();
            ("eval.splits", "[]".to_owned(), expected)
        } else {
            return Ok(());
        };
        Err(out_of_range(field, value, expected))
    }

    fn check_weights(&self, task: &dyn tasks::Task) -> Result<()> {
        let [train, _] = self.token_lens(task);
        let possible = train..=train.max(MOST_TOKENS);
        if let Some(tokens) = self.eval.trained_for.filter(|tokens| !possible.contains(tokens)) {
            let expected = format!(
                "at least {train}, the number of tokens of a training sequence, and at most \
                 {MOST_TOKENS}"
            );
            return Err(out_of_range("eval.trained_for", tokens, expected));
        }
        let validation = self.train.validation.as_ref();
        if self.eval.weights == WeightsAt::Best
            && validation.is_none_or(|validation| validation.every_steps.is_none())
        {
            let expected = "last, because best needs train.validation.every_steps";
            return Err(out_of_range("eval.weights", "best", expected));
        }
        Ok(())
    }

    fn check_validation(&self, task: &dyn tasks::Task) -> Result<()> {
        let Some(validation) = &self.train.validation else { return Ok(()) };
        let limit = validation.solved_exact_match;
        let splits = &validation.splits;
        let first = task.splits().first().map(|split| split.name);
        let own =
            repeated(splits).is_none() && splits.iter().all(|split| Some(split.as_str()) != first);
        let checks = [
            (
                "train.validation.every_steps",
                validation.every_steps.unwrap_or(1).to_string(),
                validation.every_steps != Some(0),
                "at least 1, or no value",
            ),
            (
                "train.validation.samples",
                validation.samples.to_string(),
                (1..=MOST_SEQUENCES).contains(&validation.samples),
                "1 to 16777216",
            ),
            (
                "train.validation.splits",
                splits.join(", "),
                own,
                "each split once, and not the first split, which is always validated",
            ),
            (
                "train.validation.stop.cooldown_steps",
                validation.stop.as_ref().map_or(0, |stop| stop.cooldown_steps).to_string(),
                validation.stop.as_ref().is_none_or(|stop| stop.cooldown_steps <= MOST_STEPS),
                "at most 1000000000",
            ),
            (
                "train.validation.solved_checks",
                validation.solved_checks.to_string(),
                validation.solved_checks > 0,
                "at least 1",
            ),
            (
                "train.validation.solved_exact_match",
                limit.to_string(),
                limit > 0.0 && limit <= 1.0,
                "a share above 0 and at most 1",
            ),
            (
                "train.validation.seed",
                validation.seed.to_string(),
                validation.seed != self.eval.seed,
                "a seed that differs from eval.seed, because only the final evaluation may see those samples (texts are \
                 exempt: their validations and evaluations may share windows)",
            ),
        ];
        match checks.into_iter().find(|(_, _, fine, _)| !fine) {
            None => Ok(()),
            Some((field, value, _, expected)) => Err(out_of_range(field, value, expected)),
        }
    }
}
