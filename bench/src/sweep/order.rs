//! What a sweep and its workers say to each other: one JSON value a line.

use std::path::PathBuf;

use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use reports::{GridPoint, RunRecord};
use serde::{Deserialize, Serialize};
use tasks::TaskConfig;

use super::{Budget, SweepOptions};
use crate::cell::{Cell, EvalConfig, TrainConfig};
use crate::model::ModelConfig;
use crate::runner::{News, RunContext};

/// A cell and how it is to be run: the first line on a worker's standard input. The input stays open as long
/// as the sweep lives; [`STOP`] on it asks the worker to stop after its step.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkOrder {
    pub(super) context: RunContext,
    /// Folder of the results, for checkpoints.
    pub(super) results: PathBuf,
    pub(super) checkpoint_seconds: f64,
    pub(super) budget: Budget,
    /// The cell's key when the sweep began.
    pub(super) key: String,
    workload: String,
    name: String,
    /// The canonical text.
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

/// The line that asks a worker to stop.
pub(super) const STOP: &str = "stop";

impl WorkOrder {
    /// The order for a cell.
    pub(super) fn of(cell: &Cell, key: &str, context: &RunContext, options: &SweepOptions) -> Self {
        Self {
            context: context.clone(),
            results: options.out.clone(),
            checkpoint_seconds: options.checkpoint_seconds,
            budget: options.budget.or(cell.budget),
            key: key.to_owned(),
            workload: cell.workload.clone(),
            name: cell.name.clone(),
            encoding: cell.encoding.to_string(),
            task: cell.task.clone(),
            model: cell.model.clone(),
            train: cell.train.clone(),
            eval: cell.eval.clone(),
            grid: cell.grid.clone(),
            seed: cell.seed,
            backend: cell.backend.clone(),
            engine: cell.engine,
        }
    }

    /// The cell that is ordered.
    ///
    /// # Errors
    /// The reason, if the encoding's text is none.
    pub(super) fn cell(&self) -> Result<Cell, String> {
        let encoding =
            crate::encodings::parse(&self.encoding).map_err(|error| error.to_string())?;
        Ok(Cell {
            workload: self.workload.clone(),
            name: self.name.clone(),
            encoding,
            task: self.task.clone(),
            model: self.model.clone(),
            train: self.train.clone(),
            eval: self.eval.clone(),
            grid: self.grid.clone(),
            budget: self.budget,
            seed: self.seed,
            backend: self.backend.clone(),
            engine: self.engine,
        })
    }
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// How it goes.
    News(News),
    /// It is done; a status of `interrupted` says that it was stopped before.
    Record(Box<RunRecord>),
    /// The cell has another key by now: its data have changed.
    Changed {
        /// The key now.
        key: String,
    },
    /// It ended without a record.
    Broke(String),
}
