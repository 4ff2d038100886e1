//! Training with the next-token cross-entropy of the scored labels.

mod feed;
mod micro_batch;
mod progress;
mod replicas;
mod threads;

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Result, anyhow};
use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::Device;
use pe_zoo::encoding::PositionRequest;
use pe_zoo::erased::positions;
use pe_zoo::{PeError, Positions};
use rand_chacha::ChaCha8Rng;
use records::{SplitValidation, Status, Validation};
use tasks::{Batch, Task};

use feed::StepBatches;
use micro_batch::{MicroBatch, MicroBatchResult};
pub use progress::{Diverged, TrainProgress};
pub use replicas::Replicas;

use crate::experiment::{TrainConfig, ValidationConfig};
use crate::run::evaluate::{EvalRequest, evaluate};
use crate::run::optimizer::Optimizer;
use crate::run::scored::reused;
use crate::streams::{Stream, stream};
use pe_zoo::model::Decoder;

/// Result of a training.
#[derive(Debug)]
pub struct Trained {
    /// The trained model, without autodiff.
    pub model: Decoder,
    /// Progress at the end.
    pub progress: TrainProgress,
    /// Status with which the training was stopped from outside; `None`: it ended by itself.
    pub stopped: Option<Status>,
}

/// Observer of a training, called after each step; it may stop the training.
pub trait TrainObserver {
    /// Called after a step with a finite loss, which the [`TrainProgress`] of the trainer already includes. Returns the
    /// status of the run to stop it.
    fn stepped(&mut self, trainer: &Trainer<'_>, loss: f64) -> ControlFlow<Status>;
}

/// State on which the rest of a training depends.
#[derive(Debug)]
pub struct TrainState {
    /// The model, on an autodiff device.
    pub model: Decoder,
    /// Moments and step count of the optimizer.
    pub optimizer: Optimizer,
    /// Progress of the training so far.
    pub progress: TrainProgress,
    /// Generator of the data, after the last batch that was trained on.
    pub data_rng: ChaCha8Rng,
    /// Generator of dropout masks.
    pub dropout_rng: ChaCha8Rng,
    /// Generator of random positions.
    pub position_rng: ChaCha8Rng,
}

/// Training in progress, which can be advanced step by step.
pub struct Trainer<'a> {
    state: TrainState,
    config: &'a TrainConfig,
    dropout: f64,
    task: &'a dyn Task,
    id: String,
    device: Device,
    /// Devices that share the micro-batches; `None`: all are computed on `device`.
    replicas: Option<Replicas>,
    at: Option<Positions>,
}

impl std::fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("id", &self.id)
            .field("step", &self.state.progress.step)
            .finish_non_exhaustive()
    }
}

impl<'a> Trainer<'a> {
    /// Trainer at step 0 for a model on an autodiff device.
    pub fn new(
        model: Decoder,
        id: &str,
        config: &'a TrainConfig,
        dropout: f64,
        task: &'a dyn Task,
        seed: u64,
        device: &Device,
    ) -> Self {
        let state = TrainState {
            model,
            optimizer: Optimizer::default(),
            progress: TrainProgress::default(),
            data_rng: stream(seed, Stream::Data),
            dropout_rng: stream(seed, Stream::Dropout),
            position_rng: stream(seed, Stream::Positions),
        };
        let (id, device) = (id.to_owned(), device.clone());
        Self { state, config, dropout, task, id, device, replicas: None, at: None }
    }

    /// Distributes the micro-batches of each step over several devices. No bit of the training changes.
    #[must_use]
    pub fn across(self, replicas: Replicas) -> Self {
        Self { replicas: Some(replicas), ..self }
    }

    /// Complete state of the training, for a checkpoint.
    pub fn state(&self) -> &TrainState {
        &self.state
    }

    /// Mutable state of the training, for restoring a checkpoint.
    pub fn state_mut(&mut self) -> &mut TrainState {
        &mut self.state
    }

    /// Draws a batch and takes one optimizer step; returns the mean loss and the tokens seen. A training draws its batches on
    /// another thread instead, see [`train`].
    ///
    /// # Errors
    /// If the encoding has no positions for the batch, or a device's thread cannot be started.
    pub fn step(&mut self) -> Result<(f64, usize)> {
        let drawn = StepBatches::draw(self.task, self.config, &mut self.state.data_rng.clone());
        self.step_on(drawn)
    }

    fn step_on(&mut self, drawn: StepBatches) -> Result<(f64, usize)> {
        let start = Instant::now();
        let StepBatches { batches, rng_after } = drawn;
        let tokens = batches.iter().map(|batch| batch.inputs.len()).sum();
        let micro_batches = self.micro_batches(batches)?;
        let model = &self.state.model;
        let (mut value, mut gradients) = (0.0, GradientsAccumulator::new());
        let mut dropout_rng = None;
        let mut add = |result: MicroBatchResult| {
            value += result.loss;
            if value.is_finite() {
                gradients.accumulate(model, result.gradients);
            }
            dropout_rng = Some(result.dropout_rng);
        };
        match &self.replicas {
            Some(replicas) => replicas.run(model, micro_batches, &self.device, &mut add)?,
            None => micro_batches.into_iter().for_each(|one| add(one.run(model, &self.device))),
        }
        if let Some(rng) = dropout_rng {
            self.state.dropout_rng = rng;
        }
        if value.is_finite() {
            self.learn(gradients.grads());
        }
        self.state.data_rng = rng_after;
        self.state.progress.count(value, tokens, start.elapsed().as_secs_f64(), self.config);
        Ok((value, tokens))
    }

    /// Micro-batches of a step with the random choices that they have when they run one after the other.
    fn micro_batches(&mut self, batches: Vec<Batch>) -> Result<Vec<MicroBatch>, PeError> {
        let labels = batches.iter().map(scored_labels).sum::<usize>();
        let labels = (batches.len() > 1).then_some(labels);
        let mut dropout_rng = self.state.dropout_rng.clone();
        let mut micro_batches = Vec::with_capacity(batches.len());
        for batch in batches {
            let at = self.positions(batch.len)?;
            let draws = if self.dropout > 0.0 {
                self.state.model.dropout_draws(batch.inputs.len())
            } else {
                0
            };
            let next = MicroBatch::new(batch, at, labels, self.dropout, dropout_rng, draws);
            dropout_rng = next.rng_after();
            micro_batches.push(next);
        }
        Ok(micro_batches)
    }

    fn learn(&mut self, grads: GradientsParams) {
        let state = &mut self.state;
        let rate = state.progress.next_rate(self.config);
        let config = &self.config.optimizer;
        let biases = state.model.encoding.bias_ids();
        let model = state.model.take();
        state.model = state.optimizer.step(model, grads, config, rate, &biases);
    }

    /// Positions of a batch, those of the last batch if they are equal.
    fn positions(&mut self, tokens: usize) -> Result<Positions, PeError> {
        let request = PositionRequest {
            cached_tokens: 0,
            new_tokens: tokens,
            training_rng: Some(&mut self.state.position_rng),
        };
        let at = positions(&self.state.model.encoding, &self.id, request)?;
        Ok(reused(&mut self.at, at))
    }

    /// Validates the model on fresh samples of the training distribution and of the further splits.
    fn validate(&mut self) -> Result<()> {
        let Some(config) = &self.config.validation else { return Ok(()) };
        let model = self.state.model.valid();
        let first = self.task.splits().first().map_or("", |split| split.name);
        let point = self.validation(&model, config, first)?;
        self.state.progress.validated(point, self.config);
        for split in &config.splits {
            let result = self.validation(&model, config, split)?;
            let split = split.clone();
            self.state.progress.split_validations.push(SplitValidation { split, result });
        }
        Ok(())
    }

    fn validation(
        &self,
        model: &Decoder,
        config: &ValidationConfig,
        split: &str,
    ) -> Result<Validation> {
        let step = self.state.progress.step;
        let request = EvalRequest {
            split,
            len: self.config.len,
            samples: self
                .task
                .max_eval_samples(self.config.len)
                .map_or(config.samples, |most| most.min(config.samples)),
            batch_size: self.config.batch_size,
            seed: config.seed,
            train_len: self.config.len,
            slices: false,
        };
        let seen = evaluate(model, &self.id, self.task, request, &self.device.clone().inner())
            .map_err(|error| anyhow!("validation after {step} steps: {error}"))?;
        Ok(Validation {
            step: step as u64,
            exact_match: seen.exact_match,
            token_accuracy: seen.token_accuracy,
            nll: seen.nll,
            samples: seen.samples,
            seconds: self.state.progress.seconds(),
        })
    }
}

fn scored_labels(batch: &Batch) -> usize {
    batch.scored.iter().filter(|scored| **scored).count()
}

/// Trains a model from its current state to the end. Batches are drawn in a separate thread.
///
/// # Errors
/// If the encoding has no positions for a batch, a validation fails, or a thread cannot be started.
pub fn train(mut trainer: Trainer<'_>, watch: &mut dyn TrainObserver) -> Result<Trained> {
    let stopped = std::thread::scope(|scope| {
        let (task, config) = (trainer.task, trainer.config);
        let batches = feed::spawn(scope, task, config, trainer.state.data_rng.clone())?;
        while !trainer.state.progress.is_over(config) {
            let (loss, _) = match batches.recv() {
                Ok(drawn) => trainer.step_on(drawn)?,
                // The thread has panicked; the scope propagates the panic.
                Err(_) => return Ok(None),
            };
            if trainer.state.progress.asks_for_validation(config) {
                trainer.validate()?;
            }
            if loss.is_finite()
                && let ControlFlow::Break(stop) = watch.stepped(&trainer, loss)
            {
                return Ok(Some(stop));
            }
        }
        Ok::<_, anyhow::Error>(None)
    })?;
    let TrainState { model, progress, .. } = trainer.state;
    Ok(Trained { model: model.valid(), progress, stopped })
}
