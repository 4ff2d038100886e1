//! Experiments as workers receive them.

use pe_zoo::attention::Engine;
use reports::GridPoint;
use serde::{Deserialize, Serialize};
use tasks::TaskConfig;

use crate::experiment::{Budget, EvalConfig, Experiment, TrainConfig};
use crate::model::ModelConfig;

/// An experiment with its encoding as text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExperimentJob {
    workload: String,
    name: String,
    /// Canonical text of the combination.
    encoding: String,
    task: TaskConfig,
    model: ModelConfig,
    train: TrainConfig,
    eval: EvalConfig,
    grid: Option<GridPoint>,
    seed: u64,
    backend: String,
    engine: Engine,
}

impl ExperimentJob {
    pub(super) fn of(experiment: &Experiment) -> Self {
        Self {
            workload: experiment.workload.clone(),
            name: experiment.name.clone(),
            encoding: experiment.encoding.to_string(),
            task: experiment.task.clone(),
            model: experiment.model.clone(),
            train: experiment.train.clone(),
            eval: experiment.eval.clone(),
            grid: experiment.grid.clone(),
            seed: experiment.seed,
            backend: experiment.backend.clone(),
            engine: experiment.engine,
        }
    }

    /// Restores the experiment.
    ///
    /// # Errors
    /// Message, if the text of the encoding cannot be parsed.
    pub(super) fn experiment(self, budget: Budget) -> Result<Experiment, String> {
        let encoding =
            crate::encodings::parse(&self.encoding).map_err(|error| error.to_string())?;
        Ok(Experiment {
            workload: self.workload,
            name: self.name,
            encoding,
            task: self.task,
            model: self.model,
            train: self.train,
            eval: self.eval,
            grid: self.grid,
            budget,
            seed: self.seed,
            backend: self.backend,
            engine: self.engine,
        })
    }
}
