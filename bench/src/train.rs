//! Training: next-token cross-entropy on the scored labels only.

use std::time::Instant;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use pe_zoo::attention::Weights;
use pe_zoo::encoding::{PositionRequest, positions};
use pe_zoo::{PeError, PositionEncoding, Positions};
use rand_chacha::ChaCha8Rng;
use reports::CurvePoint;
use tasks::{Batch, Sample, Task};

use crate::cell::TrainConfig;
use crate::model::{Decoder, Dropout};
use crate::optimizer::Optimizer;
use crate::streams::{Stream, stream};

/// A trained model and how its training went.
#[derive(Debug)]
pub struct Trained<M> {
    /// The model.
    pub model: M,
    /// Loss over time.
    pub curve: Vec<CurvePoint>,
    /// Tokens that went through the model.
    pub tokens: u64,
    /// Wall time of the whole training.
    pub seconds: f64,
    /// Wall time of each step.
    pub step_seconds: Vec<f64>,
    /// The step at which the loss was no longer finite, with the reason; training ended there.
    pub diverged: Option<(usize, String)>,
}

/// Told about each step: steps done, of how many, and the latest mean loss.
pub type Progress<'a> = dyn FnMut(usize, usize, f64) + 'a;

/// Predictions asked for by a batch.
pub(crate) struct Scored {
    /// Rows of `[B * T]` whose label is scored, `[N]`.
    pub(crate) rows: Tensor<1, Int>,
    /// Their labels, `[N]`.
    pub(crate) labels: Tensor<1, Int>,
    /// Token ids, `[B, T]`.
    pub(crate) inputs: Tensor<2, Int>,
}

impl Scored {
    pub(crate) fn of(batch: &Batch, device: &Device) -> Self {
        let ints = |values: Vec<i32>| {
            let len = values.len();
            Tensor::<1, Int>::from_data(TensorData::new(values, [len]), device)
        };
        let rows = (0..batch.scored.len()).filter(|row| batch.scored[*row]).collect::<Vec<_>>();
        let labels = rows.iter().map(|row| batch.targets[*row] as i32).collect();
        Self {
            labels: ints(labels),
            rows: ints(rows.into_iter().map(|row| row as i32).collect()),
            inputs: ints(batch.inputs.iter().map(|t| *t as i32).collect())
                .reshape([batch.batch_size, batch.len]),
        }
    }

    /// Log-probabilities over the vocabulary at the scored rows, `[N, V]`.
    pub(crate) fn log_probabilities<P: PositionEncoding>(
        &self,
        model: &Decoder<P>,
        at: &Positions,
        dropout: Dropout<'_>,
    ) -> Tensor<2> {
        let hidden = model.forward(self.inputs.clone(), at, None, dropout, Weights::Drop).hidden;
        let [batch, tokens, width] = hidden.dims();
        let [scored] = self.rows.dims();
        let rows = hidden.reshape([batch * tokens, width]);
        let rows = if scored == batch * tokens { rows } else { rows.select(0, self.rows.clone()) };
        log_softmax(model.logits(rows), 1)
    }

    /// Negative log-likelihood of each scored label, `[N]`.
    pub(crate) fn losses(&self, log_probabilities: Tensor<2>) -> Tensor<1> {
        log_probabilities.gather(1, self.labels.clone().unsqueeze_dim(1)).squeeze_dim::<1>(1).neg()
    }
}

/// A trainer in the middle of its work: steps can be taken one by one.
pub struct Trainer<'a, P: PositionEncoding> {
    model: Decoder<P>,
    optimizer: Optimizer,
    config: &'a TrainConfig,
    dropout: f64,
    task: &'a dyn Task,
    id: &'static str,
    device: Device,
    data_rng: ChaCha8Rng,
    dropout_rng: ChaCha8Rng,
    position_rng: ChaCha8Rng,
    at: Option<Positions>,
    step: usize,
}

impl<P: PositionEncoding> std::fmt::Debug for Trainer<'_, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("id", &self.id)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

impl<'a, P: PositionEncoding> Trainer<'a, P> {
    /// Takes a model that was built on an autodiff device.
    pub fn new(
        model: Decoder<P>,
        id: &'static str,
        config: &'a TrainConfig,
        dropout: f64,
        task: &'a dyn Task,
        seed: u64,
        device: &Device,
    ) -> Self {
        Self {
            model,
            optimizer: Optimizer::default(),
            config,
            dropout,
            task,
            id,
            device: device.clone(),
            data_rng: stream(seed, Stream::Data),
            dropout_rng: stream(seed, Stream::Dropout),
            position_rng: stream(seed, Stream::Positions),
            at: None,
            step: 0,
        }
    }

    /// Draws a batch and takes one optimizer step; returns the mean loss and the tokens seen.
    ///
    /// # Errors
    /// [`PeError`] if the encoding has no positions for the batch.
    pub fn step(&mut self) -> Result<(f64, usize), PeError> {
        let samples = (0..self.config.batch_size)
            .map(|_| self.task.train_sample(self.config.len, &mut self.data_rng))
            .collect::<Vec<Sample>>();
        let batch = Batch::collate(&samples);
        let scored = Scored::of(&batch, &self.device);
        let at = self.positions(batch.len)?;
        let dropout = Dropout { rate: self.dropout, rng: Some(&mut self.dropout_rng) };
        let log_probabilities = scored.log_probabilities(&self.model, &at, dropout);
        let loss = scored.losses(log_probabilities).mean();
        let value = f64::from(loss.clone().into_scalar::<f32>());
        if value.is_finite() {
            self.learn(&loss);
        }
        self.step += 1;
        Ok((value, batch.inputs.len()))
    }

    fn learn(&mut self, loss: &Tensor<1>) {
        let grads = GradientsParams::from_grads(loss.backward(), &self.model);
        let config = &self.config.optimizer;
        let rate = config.learning_rate_at(self.step, self.config.steps);
        self.model = self.optimizer.step(self.model.clone(), grads, config, rate);
    }

    /// Positions of a batch; the last ones are used again where they are equal, so that what
    /// encodings have made of them is too.
    fn positions(&mut self, tokens: usize) -> Result<Positions, PeError> {
        let request = PositionRequest {
            cached_tokens: 0,
            new_tokens: tokens,
            training_rng: Some(&mut self.position_rng),
        };
        let at = positions(&self.model.encoding, self.id, request)?;
        if self.at.as_ref() != Some(&at) {
            self.at = Some(at.clone());
        }
        Ok(self.at.clone().unwrap_or(at))
    }
}

/// Trains a model to the end.
///
/// # Errors
/// [`PeError`] if the encoding has no positions for a batch.
pub fn train<P: PositionEncoding>(
    mut trainer: Trainer<'_, P>,
    progress: &mut Progress<'_>,
) -> Result<Trained<Decoder<P>>, PeError> {
    let steps = trainer.config.steps;
    let every = steps.div_ceil(trainer.config.curve_points);
    let start = Instant::now();
    let (mut curve, mut step_seconds) = (Vec::new(), Vec::with_capacity(steps));
    let (mut sum, mut counted, mut tokens) = (0.0, 0, 0);
    let mut diverged = None;
    for step in 0..steps {
        let step_start = Instant::now();
        let (loss, step_tokens) = trainer.step()?;
        step_seconds.push(step_start.elapsed().as_secs_f64());
        tokens += step_tokens as u64;
        if !loss.is_finite() {
            diverged = Some((step, format!("the loss became {loss}")));
            break;
        }
        sum += loss;
        counted += 1;
        if (step + 1) % every == 0 || step + 1 == steps {
            curve.push(CurvePoint {
                step: step as u64 + 1,
                loss: sum / f64::from(counted),
                learning_rate: trainer.config.optimizer.learning_rate_at(step, steps),
                seconds: start.elapsed().as_secs_f64(),
            });
            (sum, counted) = (0.0, 0);
        }
        progress(step + 1, steps, loss);
    }
    Ok(Trained {
        model: trainer.model.valid(),
        curve,
        tokens,
        seconds: start.elapsed().as_secs_f64(),
        step_seconds,
        diverged,
    })
}
