//! Messages between a sweep and its workers, as JSON lines.

use std::path::PathBuf;

use records::RunRecord;
use serde::{Deserialize, Serialize};

use train::backend::pool::WorkerDevices;
use train::experiment::Budget;
use train::run::kept::WeightsPolicy;
use train::run::{RunContext, RunEvent};

/// Request to run a cell: the first line on a worker's standard input. The input stays open while the sweep runs;
/// the line `STOP` asks the worker to stop after the current step.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerRequest {
    /// Suite, threads and jobs.
    pub context: RunContext,
    /// Results folder, for checkpoints.
    pub(super) results: PathBuf,
    pub(super) checkpoint_seconds: f64,
    pub(super) budget: Budget,
    pub(super) weights: WeightsPolicy,
    /// Number of devices that share the micro-batches of the training.
    pub(super) data_parallel: usize,
    /// Devices of the worker, if the sweep has some for each.
    pub(super) devices: Option<WorkerDevices>,
    /// Record of the cell before it begins, with its whole configuration, and its key when the sweep began.
    pub(super) record: Box<RunRecord>,
}

/// Line that asks a worker to stop.
pub(super) const STOP: &str = "stop";

/// Message of a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WorkerReply {
    /// Event of the run.
    Event(RunEvent),
    /// Record of the run, with the status `interrupted` if it was stopped before its end.
    Record(Box<RunRecord>),
    /// The key of the cell has changed since the request, because its data have changed.
    Changed {
        /// Key of the same settings now.
        key: String,
    },
    /// The run ended without a record.
    Broke(String),
}
