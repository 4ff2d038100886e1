//! Progress of a training, and its schedule of validations, cool-down and end.

use records::{CurvePoint, Solved, SplitValidation, Validation};
use serde::{Deserialize, Serialize};

use crate::experiment::TrainConfig;

/// Divergence of a training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diverged {
    /// The step, from 0.
    pub step: usize,
    /// The value that was not finite.
    pub reason: String,
}

/// Progress of a training.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainProgress {
    /// Optimizer steps done so far.
    pub step: usize,
    /// Tokens that went through the model.
    pub tokens: u64,
    /// Training curve: loss over steps.
    pub curve: Vec<CurvePoint>,
    /// Wall time of each step.
    pub step_seconds: Vec<f64>,
    /// Validations during the training.
    pub validations: Vec<Validation>,
    /// Validations of further splits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub split_validations: Vec<SplitValidation>,
    /// Step and time at which the training was solved.
    pub solved: Option<Solved>,
    /// Divergence that ended the training, if the last loss was not finite.
    pub diverged: Option<Diverged>,
    /// Sum and number of the losses since the last point of the curve.
    unplotted: (f64, u32),
    /// Learning rate of the last step.
    learning_rate: f64,
    /// First step of the cool-down before an early end.
    cooled_from: Option<usize>,
}

impl TrainProgress {
    /// Seconds of training so far, without validations.
    pub fn seconds(&self) -> f64 {
        self.step_seconds.iter().sum()
    }

    /// Step at which the training ends, if nothing changes.
    pub fn end(&self, config: &TrainConfig) -> usize {
        let cooldown = config.validation.as_ref().and_then(|v| v.stop.as_ref());
        match (self.cooled_from, cooldown) {
            (Some(from), Some(stop)) => from.saturating_add(stop.cooldown_steps).min(config.steps),
            _ => config.steps,
        }
    }

    /// Whether nothing is left to do.
    pub fn is_over(&self, config: &TrainConfig) -> bool {
        self.diverged.is_some() || self.step >= self.end(config)
    }

    /// Whether training ended, or will end, before its last step because it was solved.
    pub fn stops_early(&self, config: &TrainConfig) -> bool {
        self.end(config) < config.steps
    }

    /// The learning rate of the next step.
    pub(super) fn next_rate(&self, config: &TrainConfig) -> f64 {
        let rate = config.optimizer.learning_rate_at(self.step, config.steps);
        match self.cooled_from {
            Some(from) => {
                let left = self.end(config).saturating_sub(self.step);
                rate * left as f64 / self.end(config).saturating_sub(from).max(1) as f64
            }
            None => rate,
        }
    }

    /// Counts a finished step.
    pub(super) fn count(&mut self, loss: f64, tokens: usize, seconds: f64, config: &TrainConfig) {
        let learning_rate = self.next_rate(config);
        let step = self.step;
        self.step += 1;
        self.step_seconds.push(seconds);
        self.tokens += tokens as u64;
        if !loss.is_finite() {
            self.diverged = Some(Diverged { step, reason: format!("the loss became {loss}") });
            return;
        }
        self.unplotted.0 += loss;
        self.unplotted.1 += 1;
        self.learning_rate = learning_rate;
        let every = config.steps.div_ceil(config.curve_points);
        if self.step.is_multiple_of(every) || self.is_over(config) {
            self.plot();
        }
    }

    /// Appends the mean of the losses since the last point to the curve.
    fn plot(&mut self) {
        let (sum, count) = std::mem::take(&mut self.unplotted);
        if count > 0 {
            self.curve.push(CurvePoint {
                step: self.step as u64,
                loss: sum / f64::from(count),
                learning_rate: self.learning_rate,
                seconds: self.seconds(),
            });
        }
    }

    /// Whether a validation is due.
    pub(super) fn asks_for_validation(&self, config: &TrainConfig) -> bool {
        let every = config.validation.as_ref().and_then(|v| v.every_steps);
        self.diverged.is_none()
            && (self.is_over(config) || every.is_some_and(|every| self.step.is_multiple_of(every)))
    }

    /// Adds the result of a validation.
    pub(super) fn validated(&mut self, point: Validation, config: &TrainConfig) {
        let Some(validation) = &config.validation else { return };
        self.validations.push(point);
        let limit = validation.solved_exact_match;
        let meets = self.validations.iter().rev().take_while(|v| v.exact_match >= limit);
        let run = meets.take(validation.solved_checks).collect::<Vec<_>>();
        if self.solved.is_some() || run.len() < validation.solved_checks {
            return;
        }
        if let Some(first) = run.last() {
            let (step, seconds) = (first.step, first.seconds);
            self.solved = Some(Solved { step, seconds, exact_match: limit });
            self.cooled_from = validation.stop.is_some().then_some(self.step);
            if self.is_over(config) {
                self.plot();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Decay, OptimizerConfig};
    use crate::experiment::{EarlyStop, ValidationConfig};

    fn config(stop: Option<EarlyStop>) -> TrainConfig {
        TrainConfig {
            steps: 100,
            curve_points: 10,
            micro_batch_size: None,
            gradient_checkpointing: false,
            optimizer: OptimizerConfig {
                learning_rate: 1.0,
                warmup_steps: 0,
                decay: Decay::Constant,
                ..OptimizerConfig::default()
            },
            validation: Some(ValidationConfig {
                every_steps: Some(5),
                solved_exact_match: 0.9,
                solved_checks: 2,
                stop,
                ..ValidationConfig::default()
            }),
            ..TrainConfig::default()
        }
    }

    /// Simulates a training whose validations are right from step `right_from` on, with one exception.
    fn trained(config: &TrainConfig, right_from: usize, slip: usize) -> (TrainProgress, Vec<f64>) {
        let (mut course, mut rates) = (TrainProgress::default(), Vec::new());
        while !course.is_over(config) {
            rates.push(course.next_rate(config));
            course.count(2.0, 10, 0.5, config);
            if course.asks_for_validation(config) {
                let right = course.step >= right_from && course.step != slip;
                let point = Validation {
                    step: course.step as u64,
                    exact_match: if right { 0.95 } else { 0.5 },
                    token_accuracy: 1.0,
                    nll: 0.0,
                    samples: 4,
                    seconds: course.seconds(),
                };
                course.validated(point, config);
            }
        }
        (course, rates)
    }

    #[test]
    fn solved_is_the_first_of_two_looks_in_a_row_and_changes_nothing_by_itself() {
        let config = config(None);
        let (course, rates) = trained(&config, 30, 35);
        assert_eq!((course.step, course.validations.len()), (100, 20));
        let solved = course.solved.unwrap();
        assert_eq!((solved.step, solved.seconds, solved.exact_match), (40, 20.0, 0.9));
        assert!(!course.stops_early(&config));
        assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 1e-12));
    }

    #[test]
    fn a_solved_training_cools_down_and_ends() {
        let config = config(Some(EarlyStop { cooldown_steps: 4 }));
        let (course, rates) = trained(&config, 30, 0);
        assert_eq!(course.step, 39);
        assert!(course.stops_early(&config));
        assert_eq!(rates[34..], [1.0, 1.0, 0.75, 0.5, 0.25][..rates.len() - 34]);
        assert_eq!(course.curve.last().unwrap().step, 39);
        assert_eq!(course.validations.last().unwrap().step, 39);
    }

    #[test]
    fn without_a_cooldown_it_ends_where_it_is_seen() {
        let config = config(Some(EarlyStop::default()));
        let (course, _) = trained(&config, 30, 0);
        assert_eq!((course.step, course.curve.last().unwrap().step), (35, 35));
    }

    #[test]
    fn a_cooldown_beyond_the_last_step_ends_with_it() {
        let config = config(Some(EarlyStop { cooldown_steps: 50 }));
        let (course, rates) = trained(&config, 90, 0);
        assert_eq!((course.step, rates.len()), (100, 100));
        assert!(!course.stops_early(&config));
    }

    #[test]
    fn losses_that_are_no_numbers_end_it_and_every_loss_is_in_one_point() {
        let config = config(None);
        let mut course = TrainProgress::default();
        for step in 0..15_u8 {
            course.count(f64::from(step), 10, 0.5, &config);
        }
        let losses = course.curve.iter().map(|point| point.loss).collect::<Vec<_>>();
        assert_eq!(losses, [4.5]);
        course.count(f64::NAN, 10, 0.5, &config);
        assert!(course.is_over(&config) && !course.asks_for_validation(&config));
        assert_eq!(course.diverged.as_ref().unwrap().step, 15);
        assert_eq!((course.tokens, course.step), (160, 16));
    }
}
