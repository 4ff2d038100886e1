//! Trained model of a run: read from kept weights, or trained.

use std::ops::ControlFlow;

use burn::module::Module;
use burn::tensor::Device;
use reports::stats::median;
use reports::{RunRecord, Status, TrainSummary, WeightsAt};

use super::checkpoint::Moment;
use super::finite;
use super::hooks::{RunEvent, RunHooks};
use super::kept::KeptTraining;
use super::train::{Diverged, TrainObserver, TrainProgress, Trainer, train};
use super::{Progress, Training};
use crate::experiment::{TrainConfig, TrainingId};
use crate::host;
use crate::model::Decoder;

/// Training of a run, and the place of its weights.
pub(super) struct TrainingRun<'a> {
    /// Id of the encoding, for errors.
    pub(super) id: &'a str,
    /// Seed of data, dropout and random positions.
    pub(super) seed: u64,
    pub(super) training: Training<'a>,
    /// Identity of the training, and the weights that are evaluated.
    pub(super) kept: Option<(TrainingId, WeightsAt)>,
}

impl TrainingRun<'_> {
    /// Reads or trains the model and describes its training in the record. `model` is the initial one, on an autodiff
    /// device; the trained one is without autodiff. There is none to evaluate if the training ended with a status.
    ///
    /// # Errors
    ///
    /// Message, if the training fails or the weights to evaluate are not there.
    pub(super) fn model(
        self,
        record: &mut RunRecord,
        model: Decoder,
        device: &Device,
        hooks: &mut RunHooks<'_>,
    ) -> Result<ControlFlow<Status, Decoder>, String> {
        if let Some(kept) = self.find(hooks)? {
            // Kept weights have no adapters; new ones are zero.
            let model = kept.restore(model.valid().merged()).map_err(|error| error.to_string())?;
            kept.describe_in(record);
            return Ok(ControlFlow::Continue(model));
        }
        let Self { id, seed, training: Training { config, dropout, task }, kept } = self;
        let mut trainer = Trainer::new(model, id, config, dropout, task, seed, device);
        if let Some(replicas) = hooks.replicas(&record.backend, config)? {
            trainer = trainer.across(replicas);
        }
        hooks.resume(trainer.state_mut());
        let told = Told::of(&trainer.state().progress);
        let training = kept.as_ref().map(|(training, _)| training);
        let mut observer = Hooked { config, hooks, record, training, told };
        let load_before = host::load();
        let trained = train(trainer, &mut observer).map_err(|error| error.to_string())?;
        record.train = TrainSummary {
            machine_load: load_before.into_iter().chain(host::load()).reduce(f64::max),
            data_parallel: hooks.data_parallel(),
            ..summary(&trained.progress, config)
        };
        if let Some(Diverged { step, reason }) = trained.progress.diverged {
            return Ok(ControlFlow::Break(Status::Diverged { step: step as u64, reason }));
        }
        if let Some(stop) = trained.stopped {
            return Ok(ControlFlow::Break(stop));
        }
        let model = trained.model.merged();
        let steps = trained.progress.step;
        if let Some(parameter) = finite::first_non_finite(&model) {
            let step = steps.saturating_sub(1) as u64;
            let reason =
                format!("the last update left parameter `{parameter}` without finite values");
            return Ok(ControlFlow::Break(Status::Diverged { step, reason }));
        }
        let Some((training, at)) = kept else { return Ok(ControlFlow::Continue(model)) };
        if let Some(step) = best_step(&trained.progress) {
            hooks.finish_best(&training, record, step);
        }
        let weights = hooks.keep(&training, &model, record, WeightsAt::Last, steps, true);
        if at == WeightsAt::Last {
            record.weights = weights;
            return Ok(ControlFlow::Continue(model));
        }
        let best = hooks.kept(&training, at)?.ok_or(
            "`eval.weights` is best, and the weights of the best validation were not kept; run the cell with \
             --keep-weights best",
        )?;
        let model = best.restore(model).map_err(|error| error.to_string())?;
        record.weights = best.record.weights;
        Ok(ControlFlow::Continue(model))
    }

    fn find(&self, hooks: &mut RunHooks<'_>) -> Result<Option<KeptTraining>, String> {
        self.kept.as_ref().map_or(Ok(None), |(training, at)| hooks.reusable(training, *at))
    }
}

/// Step of the validation with the lowest negative log-likelihood, the first of equal ones. NaN is never the lowest.
fn best_step(progress: &TrainProgress) -> Option<usize> {
    let validations = progress.validations.iter().filter(|validation| !validation.nll.is_nan());
    Some(validations.min_by(|a, b| a.nll.total_cmp(&b.nll))?.step as usize)
}

/// Calls a run's hooks after each training step.
struct Hooked<'a, 'b> {
    config: &'a TrainConfig,
    hooks: &'a mut RunHooks<'b>,
    record: &'a RunRecord,
    training: Option<&'a TrainingId>,
    told: Told,
}

/// Number of points and validations that were reported as events.
struct Told {
    points: usize,
    validations: usize,
}

impl Told {
    fn of(progress: &TrainProgress) -> Self {
        Self { points: progress.curve.len(), validations: progress.validations.len() }
    }
}

impl TrainObserver for Hooked<'_, '_> {
    fn stepped(&mut self, trainer: &Trainer<'_>, loss: f64) -> ControlFlow<Status> {
        let state = trainer.state();
        let progress = &state.progress;
        let (done, of) = (progress.step, progress.end(self.config));
        self.hooks.tell(RunEvent::Progress(Progress::Train { done, of, loss: Some(loss) }));
        for point in &progress.curve[self.told.points..] {
            self.hooks.tell(RunEvent::Point(*point));
        }
        for validation in &progress.validations[self.told.validations..] {
            self.hooks.tell(RunEvent::Validated(*validation));
        }
        self.told = Told::of(progress);
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
fn summary(progress: &TrainProgress, config: &TrainConfig) -> TrainSummary {
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
    use reports::Validation;

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
