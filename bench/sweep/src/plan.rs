//! Plan of a sweep over a suite: checked cells and their tasks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use records::{GridPoint, RunRecord};
use tasks::corpus::CorpusState;
use tasks::{CorpusError, DataError, Task, TaskConfig, TaskError};

use super::cells::SweepCells;
use train::experiment::{Budget, Experiment, TrainingId};
use train::run::{self, RunContext};
use train::suite::Suite;

/// A cell that can be run.
#[derive(Debug, Clone)]
pub struct PlannedCell {
    /// Configuration of the cell.
    pub cell: Experiment,
    /// Task of the cell, built.
    pub task: Arc<dyn Task>,
}

impl PlannedCell {
    /// Name of the cell in messages: workload, encoding and seed.
    pub fn cell_name(&self) -> String {
        format!("{} {} seed {}", self.workload_label(), self.cell.name, self.cell.seed)
    }

    /// Workload, with the learning rate of a grid.
    pub fn workload_label(&self) -> String {
        GridPoint::label(self.cell.grid.as_ref(), &self.cell.workload)
    }

    /// Analytic operations of the whole training.
    pub fn train_flops(&self) -> u64 {
        let per_step = run::counted_step(&self.cell, &*self.task).count();
        per_step.train_step.saturating_mul(self.cell.train.steps as u64)
    }
}

/// Workload that is skipped because its data are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedWorkload {
    /// Name of the workload.
    pub workload: String,
    /// Number of its cells.
    pub cells: usize,
    /// Reason, and how to fix it.
    pub reason: String,
}

/// Checked cells of a suite, with their tasks and keys.
#[derive(Debug)]
pub struct SweepPlan {
    /// Name of the suite.
    pub suite: String,
    /// SHA-256 of the text of the suite; `None` for cells that no file describes.
    pub suite_sha256: Option<String>,
    /// Cells in the suite's order.
    pub cells: Vec<PlannedCell>,
    /// Keys of the cells, in the same order.
    pub keys: Vec<String>,
    /// Workloads that are skipped because their data are unavailable.
    pub unrunnable: Vec<SkippedWorkload>,
}

impl SweepPlan {
    /// Builds the tasks of a suite and checks every cell.
    ///
    /// # Errors
    /// For the first invalid cell. Unavailable data are not an error, see
    /// [`SweepPlan::unrunnable`].
    pub fn new(suite: Suite) -> Result<Self> {
        Self::with(suite, |_| None)
    }

    /// Like [`new`](Self::new), but skips cells whose corpus is not on this machine instead of fetching it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn offline(suite: Suite) -> Result<Self> {
        Self::with(suite, absent_corpus)
    }

    /// Appends the cells of another plan of the same suite.
    pub fn append(&mut self, other: Self) {
        self.cells.extend(other.cells);
        self.keys.extend(other.keys);
        self.unrunnable.extend(other.unrunnable);
    }

    /// `unavailable` returns the reason if the data of a task are unavailable.
    fn with(suite: Suite, unavailable: impl Fn(&TaskConfig) -> Option<String>) -> Result<Self> {
        let mut tasks: BTreeMap<String, std::result::Result<Arc<dyn Task>, String>> =
            BTreeMap::new();
        let (mut cells, mut unrunnable) = (Vec::new(), Vec::<SkippedWorkload>::new());
        for cell in suite.cells {
            let refuse = |error: anyhow::Error| {
                anyhow!("workload `{}`, encoding `{}`: {error}", cell.workload, cell.name)
            };
            let key = serde_json::to_string(&cell.task).unwrap_or_default();
            let known = if let Some(known) = tasks.get(&key) {
                known.clone()
            } else {
                let built = match unavailable(&cell.task)
                    .map_or_else(|| cell.task.build().map(Ok), |reason| Ok(Err(reason)))
                {
                    Ok(Ok(task)) => Ok(Arc::from(task)),
                    Ok(Err(reason)) => Err(reason),
                    Err(TaskError::Corpus(error)) if !is_mistake(&error) => Err(error.to_string()),
                    Err(error) => return Err(refuse(error.into())),
                };
                tasks.insert(key, built.clone());
                built
            };
            match known {
                Ok(task) => {
                    cell.check(&*task).map_err(refuse)?;
                    cells.push(PlannedCell { cell, task });
                }
                Err(reason) => match unrunnable.iter_mut().find(|u| u.workload == cell.workload) {
                    Some(unrunnable) => unrunnable.cells += 1,
                    None => {
                        unrunnable.push(SkippedWorkload {
                            workload: cell.workload,
                            cells: 1,
                            reason,
                        });
                    }
                },
            }
        }
        let keys = cells.iter().map(|planned| planned.cell.key(&*planned.task)).collect();
        Ok(Self { suite: suite.name, suite_sha256: suite.sha256, cells, keys, unrunnable })
    }
}

impl SweepCells for SweepPlan {
    fn suite(&self) -> &str {
        &self.suite
    }

    fn suite_sha256(&self) -> Option<&str> {
        self.suite_sha256.as_deref()
    }

    fn keys(&self) -> &[String] {
        &self.keys
    }

    fn budget(&self, index: usize) -> Budget {
        self.cells[index].cell.budget
    }

    fn training(&self, index: usize) -> Option<TrainingId> {
        let PlannedCell { cell, task } = &self.cells[index];
        Some(cell.training(&**task))
    }

    fn unfinished_record(&self, index: usize, context: &RunContext) -> RunRecord {
        let PlannedCell { cell, task } = &self.cells[index];
        run::unfinished_record(cell, &**task, context)
    }

    fn rename(&self, index: usize, record: &mut RunRecord) {
        let cell = &self.cells[index].cell;
        record.workload.clone_from(&cell.workload);
        record.encoding.name.clone_from(&cell.name);
        record.grid.clone_from(&cell.grid);
    }

    fn worker_arguments(&self, _index: usize) -> Vec<OsString> {
        vec!["worker".into(), "cell".into()]
    }
}

/// Whether the suite must be changed, because it names a corpus that does not exist, or a field that the text does not have.
fn is_mistake(error: &CorpusError) -> bool {
    use DataError::{Column, FieldOfText, Line};
    matches!(
        error,
        CorpusError::Unknown { .. }
            | CorpusError::Data(FieldOfText { .. } | Column { .. } | Line { .. })
    )
}

/// Reason why the corpus of a task cannot be read without fetching it; `None` if it can, or the task has none.
fn absent_corpus(task: &TaskConfig) -> Option<String> {
    let settings = serde_json::to_value(task).ok()?;
    let given = |field| settings.get(field).filter(|value| !value.is_null());
    if !task.meta().takes_path || given("path").is_some() {
        return None;
    }
    let corpus = match given("corpus") {
        Some(named) => tasks::corpus::find(named.as_str()?).ok()?,
        // A task that names no text reads the default one.
        None => &tasks::corpus::CORPORA[0],
    };
    let absent = matches!(tasks::corpus::state(corpus), CorpusState::Absent);
    absent.then(|| {
        format!(
            "its corpus is not on this machine; fetch it with `pe-bench data fetch {}`",
            corpus.id
        )
    })
}
