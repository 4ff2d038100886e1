//! Contents of a sweep: what the sweep must know of each cell, whatever its runs start from.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use reports::RunRecord;
use serde_json::Value;

use super::retry::RetryPolicy;
use super::status::{self, CellFile};
use crate::experiment::Budget;
use crate::run::RunContext;

/// Cells that a sweep runs in worker processes. Cells are numbered from 0.
pub trait SweepCells: Sync {
    /// Name of the suite, for records.
    fn suite(&self) -> &str;

    /// Keys of the cells.
    fn keys(&self) -> &[String];

    /// Limits of a cell.
    fn budget(&self, _index: usize) -> Budget {
        Budget::default()
    }

    /// Record of a cell that has not begun.
    fn unfinished_record(&self, index: usize, context: &RunContext) -> RunRecord;

    /// Gives a record that was found the names under which the suite shows its cell; they are no part of what was run.
    fn rename(&self, _index: usize, _record: &mut RunRecord) {}

    /// Arguments with which this program is the worker of a cell. It calls [`serve`](super::serve).
    fn worker_arguments(&self, index: usize) -> Vec<OsString>;

    /// Description of the cell in the request to its worker.
    fn job(&self, _index: usize) -> Value {
        Value::Null
    }
}

/// Path of a cell's record in a results folder.
pub(super) fn record_path(cells: &dyn SweepCells, results: &Path, index: usize) -> PathBuf {
    results.join("cells").join(format!("{}.json", cells.keys()[index]))
}

/// Looks up the record of every cell. Nothing is changed on disk.
pub fn look_up_all(cells: &dyn SweepCells, results: &Path, retry: &RetryPolicy) -> Vec<CellFile> {
    (0..cells.keys().len()).map(|index| look_up(cells, results, index, retry)).collect()
}

/// Looks up the record of one cell.
pub(super) fn look_up(
    cells: &dyn SweepCells,
    results: &Path,
    index: usize,
    retry: &RetryPolicy,
) -> CellFile {
    let path = record_path(cells, results, index);
    let mut found = status::look_up(&path, &cells.keys()[index], retry);
    if let status::CellStatus::Kept(record) = &mut found.status {
        cells.rename(index, record);
    }
    found
}
