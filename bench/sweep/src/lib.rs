//! Sweeps: many cells in worker processes. Finished records are kept, interrupted cells resume.
//!
//! Each cell runs in a separate process, so that its peak memory is measured separately and a crash affects only its
//! record, not the sweep. Several sweeps may work on one folder of results
//! ([`claim`]); a cell whose process died resumes from its last checkpoint ([`train::run::checkpoint`]).
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests panic on failure"))]

mod cells;
pub mod claim;
pub mod cluster;
mod estimate;
mod manifest;
mod memory;
pub mod order;
mod overview;
mod plan;
pub mod process;
mod protocol;
mod queue;
mod retry;
mod shard;
pub mod signals;
mod status;
mod sweeper;
mod watchdog;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use records::RunRecord;
use records::store::{PackedReader, RecordError};

pub use cells::{SweepCells, look_up_all};
pub use estimate::{EVAL_SHARE, FLOPS_PER_SECOND, training_seconds};
pub use manifest::{ManifestCell, SweepManifest};
pub use overview::{CellName, EndedCell, OpenCell, OverviewReader, RunningCell, SweepOverview};
pub use plan::{PlannedCell, SkippedWorkload, SweepPlan};
pub use protocol::WorkerRequest;
pub use retry::{Retry, RetryPolicy};
pub use shard::Shard;
pub use status::{CellFile, CellStatus};
pub use sweeper::sweep;
pub use worker::{serve, worker_main};

use train::backend::pool::PooledDevices;
use train::experiment::Budget;
use train::run::RunEvent;
use train::run::kept::WeightsPolicy;

/// Options of a sweep.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// Folder of the results.
    pub out: PathBuf,
    /// Number of cells run in parallel.
    pub jobs: usize,
    /// CPU threads per cell.
    pub threads: usize,
    /// Which cells that have a record are run again.
    pub retry: RetryPolicy,
    /// Shard of the cells that this sweep runs.
    pub shard: Shard,
    /// Number of this process among those that share the results folder; determines with which cells it begins.
    pub worker: Option<u32>,
    /// Limits of each cell; where it is `None`, the suite's apply.
    pub budget: Budget,
    /// Policy for keeping and using weights.
    pub weights: WeightsPolicy,
    /// Seconds between checkpoints of a cell.
    pub checkpoint_seconds: f64,
    /// Seconds after which a claim that is not renewed expires.
    pub claim_seconds: f64,
    /// Reader of the packed records of the results folder.
    pub packed: PackedReader,
    /// Whether to wait at the end for cells that other sweeps hold.
    pub wait: bool,
    /// Number of devices that share the micro-batches of a cell's training.
    pub data_parallel: usize,
    /// Devices of each of the `jobs`; empty: all use the default devices of the backend.
    pub devices: Arc<[PooledDevices]>,
}

/// Event of a cell, with the cell's index.
#[derive(Debug)]
pub struct SweepEvent {
    /// The cell's index in the plan.
    pub index: usize,
    /// Event of that cell.
    pub what: CellEvent,
}

/// Event of one cell.
#[derive(Debug)]
pub enum CellEvent {
    /// The worker of the cell is started.
    Began {
        /// Numbers of its devices in `--devices`; empty if that is not given.
        devices: Vec<usize>,
    },
    /// Event of its run, or a problem of the sweep that does not end the cell.
    Run(RunEvent),
    /// Another sweep holds the cell, or another cell is training the weights that this one needs.
    Held {
        /// Name of the process that holds the claim, and what it does if it does not run this cell.
        by: String,
    },
    /// The cell ended and its record is on disk.
    Ended(Box<RunRecord>),
    /// Another sweep ended the cell in the meantime.
    PickedUp(Box<RunRecord>),
    /// The cell was stopped before its end; the next sweep resumes it.
    Interrupted,
    /// Another sweep took over the cell, because this one did not renew its claim in time.
    Lost,
}

/// Result of a sweep.
#[derive(Debug)]
pub struct SweepOutcome {
    /// Records of the cells that have one, in the order of the plan. The record of a cell that is to run again counts
    /// only once it has been replaced.
    pub records: Vec<RunRecord>,
    /// This sweep's cells without such a record, by index.
    pub open: Vec<usize>,
    /// Records that cannot be read.
    pub unreadable: Vec<RecordError>,
    /// Whether the sweep was stopped by a signal or another thread.
    pub interrupted: bool,
}

impl SweepOutcome {
    /// Adds the outcome of cells that follow `cells` others in the plan.
    #[must_use]
    pub fn followed_by(mut self, other: Self, cells: usize) -> Self {
        self.records.extend(other.records);
        self.open.extend(other.open.into_iter().map(|index| cells + index));
        self.unreadable.extend(other.unreadable);
        self.interrupted |= other.interrupted;
        self
    }
}
