//! Groups of cells from which the numbers of a report were computed.

use polars::prelude::*;

use super::conditions::CellCount;
use super::report::{Report, Workload};
use crate::frame::rows;

/// All cells of one workload and encoding.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// Name of the workload.
    pub workload: &'a Workload,
    /// Name of the encoding.
    pub encoding: &'a str,
    /// Number of cells of any status.
    pub count: u32,
    /// Number of cells that are done.
    pub done: u32,
    /// Number of distinct seeds.
    pub seeds: u32,
    first: u32,
}

rows! {
    /// A cell as listed on pages.
    #[derive(Debug, Clone, PartialEq)]
    pub struct CellRow {
        /// Seed of initialisation and data.
        pub seed: u64,
        /// Status of the cell.
        pub status: String,
        /// Key of the cell.
        pub key: String,
        /// Registry id of the task.
        pub task: String,
        /// Version of the task.
        pub task_version: u32,
        /// Configuration of the cell as JSON.
        pub config: String,
        /// Commit of the source.
        pub commit: Option<String>,
        /// Whether the source had uncommitted changes.
        pub dirty: Option<bool>,
        /// Versions of programs and libraries, as text.
        pub versions: String,
        /// Model name of the CPU.
        pub host_cpu: String,
        /// Threads given to the cell.
        pub threads: u64,
        /// Cells that ran at the same time.
        pub jobs: u64,
        /// Start time of the cell, RFC 3339, UTC.
        pub started_utc: String,
        /// Wall-clock seconds of training.
        pub train_seconds: f64,
    }
}

impl Report {
    /// Returns the groups of all workloads and encodings.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let group = |count: &'_ CellCount| {
            let workload = self.workloads.iter().find(|w| w.name == count.workload)?;
            let (encoding, first) = (self.encoding(&count.encoding)?.name.as_str(), count.cell);
            let CellCount { cells, done, seeds, .. } = *count;
            Some(Group { workload, encoding, count: cells, done, seeds, first })
        };
        self.conditions.counts.iter().filter_map(group).collect()
    }

    /// Cells of a group, sorted by seed.
    ///
    /// # Errors
    /// If polars cannot read them.
    pub fn cells_of(&self, group: &Group<'_>) -> PolarsResult<Vec<CellRow>> {
        CellRow::of(self.frames.cells.slice(i64::from(group.first), group.count as usize).lazy())
    }
}
