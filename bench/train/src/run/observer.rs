//! Observer of a run's training: events, checkpoints and weights after each step.

use std::ops::ControlFlow;

use records::{RunRecord, Status, TrainSummary, WeightsAt};
use stats::median;

use super::Progress;
use super::checkpoint::Moment;
use super::hooks::{RunEvent, RunHooks};
use super::train::{TrainObserver, TrainProgress, Trainer};
use crate::experiment::{TrainConfig, TrainingId};

/// Step of the validation with the lowest negative log-likelihood, the first of equal ones. NaN is never the lowest.
pub(super) fn best_step(progress: &TrainProgress) -> Option<usize> {
    let validations = progress.validations.iter().filter(|validation| !validation.nll.is_nan());
    Some(validations.min_by(|a, b| a.nll.total_cmp(&b.nll))?.step as usize)
}

/// Calls a run's hooks after each training step.
pub(super) struct HookObserver<'a, 'b> {
    pub(super) config: &'a TrainConfig,
    pub(super) hooks: &'a mut RunHooks<'b>,
    pub(super) record: &'a RunRecord,
    /// Identity of the training; `None`: weights are not kept.
    pub(super) training: Option<&'a TrainingId>,
    pub(super) reported: Reported,
}

/// Number of points and validations that were reported as events.
pub(super) struct Reported {
    points: usize,
    validations: usize,
}

impl Reported {
    pub(super) fn of(progress: &TrainProgress) -> Self {
        Self { points: progress.curve.len(), validations: progress.validations.len() }
    }
}

impl TrainObserver for HookObserver<'_, '_> {
    fn stepped(&mut self, trainer: &Trainer<'_>, loss: f64) -> ControlFlow<Status> {
        let state = trainer.state();
        let progress = &state.progress;
        let (done, of) = (progress.step, progress.end(self.config));
        self.hooks.tell(RunEvent::Progress(Progress::Train { done, of, loss: Some(loss) }));
        for point in &progress.curve[self.reported.points..] {
            self.hooks.tell(RunEvent::Point(*point));
        }
        for validation in &progress.validations[self.reported.validations..] {
            self.hooks.tell(RunEvent::Validated(*validation));
        }
        self.reported = Reported::of(progress);
        // Before the checkpoint, after which this validation is not repeated.
        if let Some(training) = self.training
            && best_step(progress) == Some(done)
        {
            let record = RunRecord { train: summary(progress, self.config), ..self.record.clone() };
            self.hooks.keep(training, &state.model, &record, WeightsAt::Best, done, false);
        }
        let stop = self.hooks.reason_to_stop(|| format!("{done} of {of} steps"));
        let moment = match (&stop, progress.is_over(self.config)) {
            (Some(_), _) => Moment::Stop,
            (None, true) => Moment::End,
            (None, false) => Moment::Step,
        };
        self.hooks.checkpoint(trainer, moment);
        stop.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

/// Summary of a training for its record.
pub(super) fn summary(progress: &TrainProgress, config: &TrainConfig) -> TrainSummary {
    let median = median(&progress.step_seconds);
    let steps = progress.step_seconds.len();
    TrainSummary {
        steps: steps as u64,
        batch_size: config.batch_size as u64,
        tokens: progress.tokens,
        final_loss: progress.curve.last().map(|point| point.loss),
        seconds: progress.seconds(),
        step_seconds_median: median,
        machine_load: None,
        data_parallel: None,
        tokens_per_second: median
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| progress.tokens as f64 / steps as f64 / seconds),
        curve: progress.curve.clone(),
        validations: progress.validations.clone(),
        split_validations: progress.split_validations.clone(),
        solved: progress.solved,
        stopped_early: progress.stops_early(config),
    }
}

#[cfg(test)]
mod tests {
    use records::Validation;

    use super::*;

    #[test]
    fn the_best_step_is_the_first_of_the_lowest_losses_and_none_without_a_number() {
        let progress = |losses: &[f64]| {
            let validation = |(step, nll): (u64, &f64)| Validation {
                step,
                exact_match: 0.0,
                token_accuracy: 0.0,
                nll: *nll,
                samples: 1,
                seconds: 0.0,
            };
            let mut progress = TrainProgress::default();
            progress.validations.extend((1..).zip(losses).map(validation));
            progress
        };
        // The sign of a NaN decides whether it is below or above all numbers for `total_cmp`.
        let nan = f64::NAN.copysign(-1.0);
        assert_eq!(best_step(&progress(&[2.0, nan, 1.0, 1.0])), Some(3));
        assert_eq!(best_step(&progress(&[nan, f64::NAN])), None);
    }
}
