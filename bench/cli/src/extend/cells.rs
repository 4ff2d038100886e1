//! Sweep over the cells of `pe-bench extend`.

use std::ffi::OsString;

use records::RunRecord;

use crate::out::{complain, say};
use llm::extend::{Context, ExtendCell};
use sweep::{CellEvent, SweepCells, SweepEvent, SweepOptions, look_up_all};
use train::experiment::TrainingId;
use train::run::{RunContext, RunEvent};

/// Cells of `extend`; the worker of a cell is the same command line with `--only KEY`.
pub(super) struct ExtendSweep {
    keys: Vec<String>,
    names: Vec<String>,
    trainings: Vec<Option<TrainingId>>,
    /// Records of the cells before they begin.
    unfinished: Vec<RunRecord>,
}

impl ExtendSweep {
    pub(super) fn new(cells: &[ExtendCell<'_>], context: &Context<'_>) -> Self {
        let of = cells.len();
        let name = |(index, cell): (usize, &ExtendCell<'_>)| {
            let tuned = cell.tune.map(|(config, _)| format!(", tuned ({})", config.id()));
            let tuned = tuned.unwrap_or_default();
            format!("{}/{of} {}{tuned}, {}", index + 1, cell.variant.name, cell.task_name)
        };
        Self {
            keys: cells.iter().map(|cell| cell.key(context)).collect(),
            names: cells.iter().enumerate().map(name).collect(),
            trainings: cells.iter().map(|cell| cell.training(context)).collect(),
            unfinished: cells.iter().map(|cell| cell.unfinished_record(context)).collect(),
        }
    }

    /// Prints the cells that already have a record and, if `all` is set, the others too.
    pub(super) fn show_found(&self, options: &SweepOptions, all: bool) {
        for (name, found) in
            self.names.iter().zip(look_up_all(self, &options.out, &options.retry, options.packed))
        {
            if found.is_settled() {
                say(&format!("{name}: has a record from an earlier run"));
            } else if all {
                say(name);
            }
        }
    }

    /// Prints an event of a cell.
    pub(super) fn show(&self, event: &SweepEvent) {
        let name = &self.names[event.index];
        match &event.what {
            CellEvent::Began { .. } => say(name),
            CellEvent::Run(RunEvent::Resumed { step, .. }) => {
                say(&format!("{name}: resumes after step {step}"));
            }
            CellEvent::Held { by } => say(&format!("{name}: is run by {by}")),
            CellEvent::Interrupted => say(&format!("{name}: interrupted")),
            CellEvent::Lost => complain(&format!("{name}: taken over by another process")),
            CellEvent::Run(RunEvent::Trouble(text)) => complain(&format!("{name}: {text}")),
            CellEvent::Ended(record) | CellEvent::PickedUp(record) => {
                let reason = record.status.reason();
                if !reason.is_empty() {
                    complain(&format!("{name}: {}: {reason}", record.status.name()));
                }
            }
            CellEvent::Run(_) => {}
        }
    }
}

impl SweepCells for ExtendSweep {
    fn suite(&self) -> &str {
        self.unfinished.first().map_or("extend", |record| &record.suite)
    }

    fn keys(&self) -> &[String] {
        &self.keys
    }

    fn training(&self, index: usize) -> Option<TrainingId> {
        self.trainings[index].clone()
    }

    fn unfinished_record(&self, index: usize, _context: &RunContext) -> RunRecord {
        self.unfinished[index].clone()
    }

    fn worker_arguments(&self, index: usize) -> Vec<OsString> {
        let own = std::env::args_os().skip(1);
        own.chain(["--only".into(), self.keys[index].clone().into()]).collect()
    }
}
