//! Configuration of a run. The key of an experiment is a hash of its complete configuration; it identifies the record
//! of a finished run.

pub mod budget;
mod check;
mod error;
mod eval;
mod optimizer;
mod train;

use pe_zoo::Combination;
use pe_zoo::attention::{AttentionKind, Engine};
use reports::GridPoint;
use serde_json::{Value, json};
use tasks::TaskConfig;

pub use budget::Budget;
pub use error::ExperimentError;
pub use eval::EvalConfig;
pub use optimizer::{Decay, OptimizerConfig};
pub use train::{EarlyStop, TrainConfig, ValidationConfig};

use crate::model::ModelConfig;

/// Configuration of one run: an encoding on a task with a seed.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Name of the workload (task and sizes) within its suite.
    pub workload: String,
    /// Name of the encoding within its suite; its canonical text unless the suite gives one.
    pub name: String,
    /// Settings of the encoding.
    pub encoding: Combination,
    /// Settings of the task.
    pub task: TaskConfig,
    /// Architecture of the model.
    pub model: ModelConfig,
    /// Settings of the training.
    pub train: TrainConfig,
    /// Settings of the evaluation.
    pub eval: EvalConfig,
    /// Point of the suite's grid, for display only.
    pub grid: Option<GridPoint>,
    /// Limits of time and memory; not part of the key.
    pub budget: Budget,
    /// Seed of weights, data and dropout.
    pub seed: u64,
    /// Name of the backend.
    pub backend: String,
    /// Attention engine for the training and evaluation.
    pub engine: Engine,
}

impl Experiment {
    /// Complete configuration with all defaults, of which [`key`](Self::key) is a hash.
    pub fn config(&self, task: &dyn tasks::Task) -> Value {
        json!({
            "encoding": self.train.optimizer.identity_of(&self.encoding),
            "task": self.task,
            "task_version": task.meta().version,
            "task_data_sha256": task.data_sha256(),
            "model": self.model,
            "train": self.train,
            "eval": self.eval,
            "seed": self.seed,
            "backend": self.backend,
            "engine": self.attending(),
        })
    }

    /// Attention engine that is used; hard attention exists only in the reference engine.
    pub fn attending(&self) -> Engine {
        match self.model.attention {
            AttentionKind::Soft => self.engine,
            AttentionKind::Hard => Engine::Reference,
        }
    }

    /// Hash of the complete configuration, 16 hexadecimal digits.
    pub fn key(&self, task: &dyn tasks::Task) -> String {
        reports::cell_key(&self.config(task))
    }

    /// Sizes that the encoding is built for.
    pub fn dims(&self, task: &dyn tasks::Task) -> pe_zoo::Dims {
        let [train_len, max_len] = self.token_lens(task);
        self.model.dims(train_len, max_len)
    }

    /// Longest input in tokens: in training, and in training and evaluation together.
    pub fn token_lens(&self, task: &dyn tasks::Task) -> [usize; 2] {
        let input = |len: usize| task.max_tokens(len).saturating_sub(1);
        let train = task.max_train_tokens(self.train.len).saturating_sub(1);
        let longest = self.eval.lens_or(&self.train.len).iter().map(|len| input(*len)).max();
        [train, longest.unwrap_or(train).max(train)]
    }
}
