//! Evaluation by split and length: exact match, token accuracy and likelihood, in total and by slice.

mod outcomes;
mod slices;

use std::time::Instant;

use burn::tensor::{Device, Tensor};
use pe_zoo::encoding::PositionRequest;
use pe_zoo::erased::positions;
use pe_zoo::{PeError, Positions};
use reports::EvalPoint;
use tasks::{Batch, Sample, Task, TaskError};

use crate::model::Decoder;
use crate::run::scored::Scored;
use outcomes::{Questions, chance};
use slices::BySlice;

/// Request for an evaluation at one split and length.
#[derive(Debug, Clone, Copy)]
pub struct EvalRequest<'a> {
    /// Split of the task.
    pub split: &'a str,
    /// Length, in the task's unit.
    pub len: usize,
    /// Number of evaluated sequences.
    pub samples: usize,
    /// Number of sequences per pass.
    pub batch_size: usize,
    /// Seed of the evaluation data.
    pub seed: u64,
    /// Length of the training sequences.
    pub train_len: usize,
    /// Whether results are grouped by slices too.
    pub slices: bool,
}

/// Error during an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The encoding has no positions at this length.
    #[error(transparent)]
    Encoding(#[from] PeError),
    /// The task rejects the split, length or number of samples.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Results could not be read back from the device.
    #[error("results could not be read back from the device: {0}")]
    Device(String),
}

#[derive(Default)]
struct Totals {
    samples: u64,
    tokens: u64,
    exact: u64,
    right: u64,
    nll: f64,
    questions: Questions,
    slices: Option<BySlice>,
}

/// Evaluates a model on one split at one length.
///
/// # Errors
/// [`EvalError`].
pub fn evaluate(
    model: &Decoder,
    id: &str,
    task: &dyn Task,
    request: EvalRequest<'_>,
    device: &Device,
) -> Result<EvalPoint, EvalError> {
    let start = Instant::now();
    let samples = task.eval_set(request.split, request.len, request.samples, request.seed)?;
    let bytes: Option<u64> = samples.iter().map(|sample| task.scored_bytes(sample)).sum();
    let mut totals = Totals { slices: request.slices.then(BySlice::default), ..Totals::default() };
    let mut at: Option<Positions> = None;
    for samples in samples.chunks(request.batch_size) {
        let batch = Batch::collate(samples);
        let position_request =
            PositionRequest { cached_tokens: 0, new_tokens: batch.len, training_rng: None };
        let asked = positions(&model.encoding, id, position_request)?;
        let at = match &at {
            Some(last) if *last == asked => last.clone(),
            _ => at.insert(asked).clone(),
        };
        totals.add(model, task, &batch, samples, &at, device)?;
    }
    let in_split =
        task.splits().iter().any(|split| split.name == request.split && split.in_distribution);
    let tokens = totals.tokens.max(1) as f64;
    let nll = totals.nll / tokens;
    let bytes_per_token = bytes.map(|bytes| bytes as f64 / tokens).or(task.bytes_per_token());
    Ok(EvalPoint {
        split: request.split.to_owned(),
        in_distribution: in_split && request.len <= request.train_len,
        trained_split: Some(in_split),
        len: request.len as u64,
        samples: totals.samples,
        scored_tokens: totals.tokens,
        exact_match: totals.exact as f64 / totals.samples.max(1) as f64,
        token_accuracy: totals.right as f64 / tokens,
        nll,
        perplexity: nll.exp(),
        bits_per_byte: bytes_per_token.map(|bytes| nll / std::f64::consts::LN_2 / bytes),
        seconds: start.elapsed().as_secs_f64(),
        chance: chance(task.meta().headline, &samples),
        outcomes: totals.questions.outcomes(task.meta().headline, &samples),
        slices: totals.slices.map(BySlice::columns).unwrap_or_default(),
    })
}

impl Totals {
    fn add(
        &mut self,
        model: &Decoder,
        task: &dyn Task,
        batch: &Batch,
        samples: &[Sample],
        at: &Positions,
        device: &Device,
    ) -> Result<(), EvalError> {
        let scored = Scored::of(batch, device);
        let (mut right, mut losses) = (Vec::new(), Vec::new());
        for (log_probabilities, part) in scored.in_pieces(model, at) {
            let chosen = log_probabilities.clone().argmax(1).squeeze_dim::<1>(1);
            right.extend(read(chosen.equal(part.labels.clone()).float())?);
            losses.extend(read(part.losses(log_probabilities))?);
        }
        self.nll += losses.iter().map(|loss| f64::from(*loss)).sum::<f64>();
        self.tokens += right.len() as u64;
        let right = right.into_iter().map(|hit| hit > 0.5).collect::<Vec<_>>();
        let mut begin = 0;
        for sample in samples {
            let asked = sample.scored.iter().filter(|scored| **scored).count();
            let own = begin..begin + asked;
            begin = own.end;
            let hits = right[own.clone()].iter().filter(|hit| **hit).count();
            self.samples += 1;
            self.right += hits as u64;
            self.exact += u64::from(hits == asked);
            let loss = losses[own.clone()].iter().map(|loss| f64::from(*loss)).sum();
            self.questions.add(hits == asked, asked as u64, loss);
            if let Some(slices) = &mut self.slices {
                slices.add(sample, &task.token_slices(sample), &right[own.clone()], &losses[own]);
            }
        }
        Ok(())
    }
}

/// Reads numbers back from their device.
pub(super) fn read<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, EvalError> {
    let data = tensor.try_into_data().map_err(|e| EvalError::Device(format!("{e:?}")))?;
    data.convert::<f32>().try_into_vec::<f32>().map_err(|e| EvalError::Device(format!("{e:?}")))
}
