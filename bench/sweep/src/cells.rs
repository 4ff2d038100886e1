//! Cells of a sweep, independent of how their runs start.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use records::RunRecord;
use records::store::PackedReader;

use super::retry::RetryPolicy;
use super::status::{self, CellFile, CellStatus};
use train::experiment::{Budget, TrainingId};
use train::run::RunContext;

/// Cells that a sweep runs in worker processes. Cells are numbered from 0.
pub trait SweepCells: Sync {
    /// Name of the suite, for records.
    fn suite(&self) -> &str;

    /// SHA-256 of the text of the suite, for records; `None` for cells without a suite.
    fn suite_sha256(&self) -> Option<&str> {
        None
    }

    /// Keys of the cells.
    fn keys(&self) -> &[String];

    /// Limits of a cell.
    fn budget(&self, _index: usize) -> Budget {
        Budget::default()
    }

    /// Training whose weights a cell needs; `None` if it trains nothing.
    fn training(&self, _index: usize) -> Option<TrainingId> {
        None
    }

    /// Record of a cell that has not begun.
    fn unfinished_record(&self, index: usize, context: &RunContext) -> RunRecord;

    /// Sets the display names of a found record to those of the suite; they are not part of the key.
    fn rename(&self, _index: usize, _record: &mut RunRecord) {}

    /// Arguments that start this program as the worker of a cell, which calls [`serve`](super::serve).
    fn worker_arguments(&self, index: usize) -> Vec<OsString>;
}

/// Path of a cell's record in a results folder.
pub(super) fn record_path(cells: &dyn SweepCells, results: &Path, index: usize) -> PathBuf {
    results.join("cells").join(format!("{}.json", cells.keys()[index]))
}

/// Makes the next look-up of a cell's record ask the server of a network file system. The client may answer from a cache
/// for a minute that there is no record, until it changes the folder itself: a file is created and removed.
pub(super) fn refresh(cells: &dyn SweepCells, results: &Path, index: usize) {
    // A name that `store::remove_leftovers` knows, for a process that is killed here.
    let name = format!(".{}.json.{}.look.tmp", cells.keys()[index], std::process::id());
    let path = results.join("cells").join(name);
    // If that fails, two processes may run a cell, with equal results.
    let _ = File::create(&path).and_then(|_| std::fs::remove_file(&path));
}

/// Looks up the record of every cell, in its file or among the records of `packed`, without changes on disk.
pub fn look_up_all(
    cells: &dyn SweepCells,
    results: &Path,
    retry: &RetryPolicy,
    packed: PackedReader,
) -> Vec<CellFile> {
    let mut found: Vec<CellFile> =
        (0..cells.keys().len()).map(|index| look_up(cells, results, index, retry)).collect();
    // A run unpacks them first, and reports a file that cannot be read.
    let packed = packed(results).into_iter().flatten().flatten();
    let mut packed: BTreeMap<String, RunRecord> =
        packed.map(|record| (record.key.clone(), record)).collect();
    for (index, (key, found)) in cells.keys().iter().zip(&mut found).enumerate() {
        let kept = packed.remove(key).filter(|record| !retry.includes(record));
        if let Some(mut record) = kept {
            cells.rename(index, &mut record);
            found.status = CellStatus::Kept(Box::new(record));
        }
    }
    found
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
    if let CellStatus::Kept(record) = &mut found.status {
        cells.rename(index, record);
    }
    found
}
