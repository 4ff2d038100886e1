//! Configuration of a run, with two keys: the key of the experiment identifies the record of a finished run, the key
//! of its training identifies the weights. Experiments that differ only in their evaluation share a training.

pub mod budget;
pub mod check;
mod eval;
mod of_record;
mod optimizer;
mod train;

use std::fmt;

use pe_zoo::Combination;
use pe_zoo::attention::{AttentionKind, Engine};
use records::GridPoint;
use serde_json::{Value, json};
use tasks::TaskConfig;

pub use budget::Budget;
pub use eval::EvalConfig;
pub use of_record::{as_configured, of_record};
pub use optimizer::{Decay, OptimizerConfig};
pub use train::{EarlyStop, TrainConfig, ValidationConfig};

use pe_zoo::model::ModelConfig;

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

/// Identity of a training, equal for experiments that differ only in their evaluation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrainingId {
    /// Hash of the configuration without the evaluation, 16 hexadecimal digits.
    pub key: String,
    /// Longest input in tokens that the encoding is built for.
    pub tokens: usize,
}

impl fmt::Display for TrainingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.key, self.tokens)
    }
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
        records::store::cell_key(&self.config(task))
    }

    /// Returns the identity of the training: a hash of the configuration without the evaluation, and the longest
    /// input that the encoding is built for, which determines the size of some tables.
    pub fn training(&self, task: &dyn tasks::Task) -> TrainingId {
        let mut config = self.config(task);
        if let Some(fields) = config.as_object_mut() {
            fields.remove("eval");
        }
        let [_, tokens] = self.built_lens(task);
        TrainingId { key: records::store::cell_key(&config), tokens }
    }

    /// Sizes that the encoding is built for.
    pub fn dims(&self, task: &dyn tasks::Task) -> pe_zoo::Dims {
        let [train_len, max_len] = self.built_lens(task);
        self.model.dims(train_len, max_len)
    }

    /// Returns the longest input in tokens in training, and in training and evaluation together.
    pub fn built_lens(&self, task: &dyn tasks::Task) -> [usize; 2] {
        let [train, longest] = self.token_lens(task);
        [train, self.eval.trained_for.unwrap_or(longest)]
    }

    /// Longest input in tokens: in training, and in training and evaluation together.
    pub fn token_lens(&self, task: &dyn tasks::Task) -> [usize; 2] {
        let input = |len: usize| task.max_tokens(len).saturating_sub(1);
        let train = task.max_train_tokens(self.train.len).saturating_sub(1);
        let longest = self.eval.lens_or(&self.train.len).iter().map(|len| input(*len)).max();
        [train, longest.unwrap_or(train).max(train)]
    }
}

/// Error about a setting of a suite.
fn out_of_range(
    field: &str,
    value: impl fmt::Display,
    expected: impl fmt::Display,
) -> anyhow::Error {
    anyhow::anyhow!("{field} is {value}, expected {expected}; change it in the suite")
}
