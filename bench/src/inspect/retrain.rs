//! Repeats the training of a record's cell.

use std::ops::ControlFlow;

use burn::tensor::Device;

use reports::RunRecord;
use serde::de::DeserializeOwned;
use tasks::Task;

use crate::experiment::Budget;
use crate::experiment::{Experiment, TrainConfig};
use crate::model::Decoder;
use crate::run::train::{Stop, TrainObserver, Trainer, train};
use crate::run::{self, Progress};

/// Reason why a record's training cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum RetrainError {
    /// The configuration of the record cannot be read by this program.
    #[error(
        "record {key}: cannot read `{part}`: {reason}; the record was written by another version of this program, run the cell again"
    )]
    Config {
        /// Key of the record.
        key: String,
        /// Part of the configuration that cannot be read.
        part: &'static str,
        /// Reason for the refusal.
        reason: String,
    },
    /// The configuration has another key in this program.
    #[error(
        "record {key}: the same configuration now has the key {now}, because the task's version or data, or a default, has changed since; run the cell again"
    )]
    Changed {
        /// Key of the record.
        key: String,
        /// Key of the same settings in this program.
        now: String,
    },
    /// The cell cannot be built or trained.
    #[error("{0}")]
    Broken(String),
}

/// Restores the experiment of a record, and its task.
///
/// # Errors
/// [`RetrainError::Config`], [`RetrainError::Changed`], or [`RetrainError::Broken`] if the task cannot be built.
pub fn cell_of(record: &RunRecord) -> Result<(Experiment, Box<dyn Task>), RetrainError> {
    let encoding = crate::encodings::parse(&record.encoding.id)
        .map_err(|error| refuse(record, "encoding", error.to_string()))?;
    let cell = Experiment {
        workload: record.workload.clone(),
        name: record.encoding.name.clone(),
        encoding,
        task: read(record, "task")?,
        model: read(record, "model")?,
        train: read(record, "train")?,
        eval: read(record, "eval")?,
        grid: record.grid.clone(),
        budget: Budget::default(),
        seed: record.seed,
        backend: record.backend.clone(),
        engine: read(record, "engine")?,
    };
    let task = cell.task.build().map_err(|error| RetrainError::Broken(error.to_string()))?;
    let now = cell.key(&*task);
    if now == record.key {
        Ok((cell, task))
    } else {
        Err(RetrainError::Changed { key: record.key.clone(), now })
    }
}

fn read<T: DeserializeOwned>(record: &RunRecord, part: &'static str) -> Result<T, RetrainError> {
    let value = record.config.get(part).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| refuse(record, part, error.to_string()))
}

fn refuse(record: &RunRecord, part: &'static str, reason: String) -> RetrainError {
    RetrainError::Config { key: record.key.clone(), part, reason }
}

/// Model of a cell after its training was repeated.
#[derive(Debug)]
pub struct Retrained {
    /// Trained model, without autodiff.
    pub model: Decoder,
    /// Device of the model.
    pub device: Device,
    /// Loss at the end of training, in nats per scored token.
    pub final_loss: Option<f64>,
}

/// Trains a cell and calls `progress` after each step.
///
/// # Errors
/// [`RetrainError::Broken`], also if the training diverges.
pub fn trained(
    cell: &Experiment,
    task: &dyn Task,
    progress: &mut dyn FnMut(Progress),
) -> Result<Retrained, RetrainError> {
    let (model, device) = run::build(cell, task).map_err(RetrainError::Broken)?;
    let id = cell.encoding.id();
    let trainer =
        Trainer::new(model, id, &cell.train, cell.model.dropout, task, cell.seed, &device);
    let mut watch = Watching { config: &cell.train, progress };
    let trained =
        train(trainer, &mut watch).map_err(|error| RetrainError::Broken(error.to_string()))?;
    if let Some(diverged) = trained.progress.diverged {
        let (step, reason) = (diverged.step, diverged.reason);
        return Err(RetrainError::Broken(format!(
            "training diverged at step {step}: {reason}; there is no model to inspect"
        )));
    }
    Ok(Retrained {
        model: trained.model,
        device: device.inner(),
        final_loss: trained.progress.curve.last().map(|point| point.loss),
    })
}

struct Watching<'a> {
    config: &'a TrainConfig,
    progress: &'a mut dyn FnMut(Progress),
}

impl TrainObserver for Watching<'_> {
    fn stepped(&mut self, trainer: &Trainer<'_>, loss: f64) -> ControlFlow<Stop> {
        let progress = &trainer.state().progress;
        let (done, of) = (progress.step, progress.end(self.config));
        (self.progress)(Progress::Train { done, of, loss: Some(loss) });
        ControlFlow::Continue(())
    }
}
