//! Conditions under which the cells of a report ran, and the number of cells.

use std::collections::BTreeSet;

use polars::prelude::*;

use super::selection::has_status;
use crate::frame::{Frames, rows};

rows! {
    /// Source, machine and versions of a cell.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Condition {
        /// Name of the suite.
        pub suite: String,
        /// Commit of the source; `None`: unknown.
        pub commit: Option<String>,
        /// Whether the source had uncommitted changes; `None`: unknown.
        pub dirty: Option<bool>,
        /// Backend of the tensor operations.
        pub backend: String,
        /// Engine of the attention.
        pub engine: String,
        /// The number format of training.
        pub precision: String,
        /// Model name of the CPU.
        pub host_cpu: String,
        /// Logical CPUs that the process may use.
        pub logical_cpus: u64,
        /// Operating system of the machine.
        pub os: String,
        /// Threads given to the cell.
        pub threads: u64,
        /// Cells that ran at the same time.
        pub jobs: u64,
        /// Versions of programs and libraries, as text.
        pub versions: String,
    }
}

rows! {
    /// Task and budget of finished cells of a workload.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TrainedBudget {
        /// Name of the workload.
        pub workload: String,
        /// Version of the task.
        pub task_version: u32,
        /// Settings of the task as JSON.
        pub task_config: String,
        /// Optimizer steps that the cells were to take.
        pub planned_steps: u64,
        /// Sequences per training step.
        pub batch_size: u64,
        /// Sequence length in training.
        pub train_len: u64,
    }
}

rows! {
    /// Settings of an encoding in finished cells of a workload.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UsedSettings {
        /// Name of the workload.
        pub workload: String,
        /// Name of the encoding.
        pub encoding: String,
        /// Settings of the encoding as JSON.
        pub encoding_config: String,
        /// Parameters of the whole model.
        pub params_total: u64,
    }
}

rows! {
    /// First and last start time and smallest and largest model of all cells; `None` without cells.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Ends {
        /// Start time of the oldest cell.
        pub first_started: Option<String>,
        /// Start time of the newest cell.
        pub last_started: Option<String>,
        /// Parameters of the smallest model.
        pub least_params: Option<u64>,
        /// Parameters of the largest model.
        pub most_params: Option<u64>,
    }
}

rows! {
    /// Number of cells of one workload and encoding.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct CellCount {
        pub(super) workload: String,
        pub(super) encoding: String,
        pub(super) cell: u32,
        pub(super) cells: u32,
        pub(super) done: u32,
        pub(super) seeds: u32,
    }
}

/// Distinct conditions of all cells of a report.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Sources, machines and versions.
    pub all: Vec<Condition>,
    /// Tasks and budgets, sorted by workload.
    pub budgets: Vec<TrainedBudget>,
    /// Settings of encodings, sorted by workload and encoding.
    pub encodings: Vec<UsedSettings>,
    /// Ranges of start times and sizes.
    pub ends: Option<Ends>,
    /// Number of cells of each workload and encoding, in the order of cells.
    pub(super) counts: Vec<CellCount>,
}

impl Conditions {
    /// Returns the conditions of all cells.
    ///
    /// # Errors
    /// If a query fails.
    pub fn of_all(frames: &Frames) -> PolarsResult<Self> {
        let cells = || frames.cells.clone().lazy();
        let distinct = |cells: LazyFrame, columns: &[&str]| {
            let columns: Vec<Expr> = columns.iter().copied().map(col).collect();
            cells.select(columns).unique_stable(None, UniqueKeepStrategy::First)
        };
        let counts = cells().group_by_stable(["workload", "encoding"].map(col)).agg([
            col("cell").first(),
            len().alias("cells"),
            has_status("done").sum().alias("done"),
            col("seed").n_unique().alias("seeds"),
        ]);
        let done = || cells().filter(has_status("done"));
        Ok(Self {
            all: Condition::of(distinct(cells(), Condition::COLUMNS))?,
            budgets: TrainedBudget::of(distinct(done(), TrainedBudget::COLUMNS))?,
            encodings: UsedSettings::of(distinct(done(), UsedSettings::COLUMNS))?,
            ends: Ends::of(cells().select([
                col("started_utc").min().alias("first_started"),
                col("started_utc").max().alias("last_started"),
                col("params_total").min().alias("least_params"),
                col("params_total").max().alias("most_params"),
            ]))?
            .pop(),
            counts: CellCount::of(counts)?,
        })
    }

    /// Returns the distinct values of a property, sorted.
    pub fn distinct(&self, get: impl Fn(&Condition) -> String) -> BTreeSet<String> {
        self.all.iter().map(get).collect()
    }
}
