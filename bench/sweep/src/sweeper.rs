//! Threads of a sweep: each claims cells, runs them in workers and writes their records.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use reports::{RecordError, RunRecord, Status, store};

use super::cells::{self, SweepCells};
use super::claim::{Claim, ClaimAttempt, Claims};
use super::protocol::WorkerRequest;
use super::queue::WorkQueue;
use super::retry::RetryPolicy;
use super::status::{CellFile, CellStatus};
use super::worker::{self, WorkerEnd};
use super::{CellEvent, SweepError, SweepEvent, SweepOptions};
use train::backend::pool::PooledDevices;
use train::experiment::TrainingId;
use train::run::checkpoint::CheckpointFolder;
use train::run::{RunContext, RunEvent};

/// Number of deaths of a worker by signals after which its cell is recorded as failed.
const MOST_DEATHS: u32 = 3;

/// Thread of a sweep, with the state that all of them share.
#[derive(Clone)]
pub(super) struct Sweeper<'a> {
    pub(super) cells: &'a dyn SweepCells,
    pub(super) options: &'a SweepOptions,
    pub(super) context: RunContext,
    pub(super) found: &'a [CellFile],
    pub(super) claims: &'a Claims,
    /// `None` if no weights are kept.
    pub(super) trainings: Option<&'a Trainings>,
    pub(super) queue: &'a WorkQueue,
    pub(super) stop: &'a AtomicBool,
    /// Cells that this sweep has started.
    pub(super) started: &'a Mutex<BTreeSet<usize>>,
    /// Devices of this thread's workers; `None`: the default ones of the backend.
    pub(super) devices: Option<&'a PooledDevices>,
    pub(super) events: Sender<SweepEvent>,
}

/// Trainings of the cells, and the claims on them.
pub(super) struct Trainings {
    pub(super) claims: Claims,
    pub(super) of_cells: Vec<Option<TrainingId>>,
}

impl Sweeper<'_> {
    /// Runs cells from the queue until it is empty or the sweep is stopped.
    pub(super) fn work(&self) -> Result<(), SweepError> {
        let mut held = std::collections::BTreeMap::new();
        while let Some(index) = self.queue.next(self.stop) {
            // Most cells of a large sweep are ended by others; no claim is needed to see that.
            if self.ended_elsewhere(index, &self.look_up(index)) {
                self.queue.cross_out();
                continue;
            }
            let settled = self.claim(index).and_then(|claimed| match claimed {
                Claimed::Mine(cell, training) => {
                    let settled = self.run(index, &cell);
                    drop((cell, training));
                    self.warn(index, self.claims);
                    settled
                }
                Claimed::Held { by, wait } => {
                    if held.insert(index, by.clone()).as_ref() != Some(&by) {
                        self.tell(index, CellEvent::Held { by });
                    }
                    Ok(!wait)
                }
            });
            match settled {
                Ok(false) => self.queue.put_back(index),
                Ok(true) => self.queue.cross_out(),
                Err(error) => {
                    self.queue.cross_out();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Claims a cell, and before it its training if weights are kept.
    fn claim(&self, index: usize) -> Result<Claimed, SweepError> {
        let key = &self.cells.keys()[index];
        let mut training = None;
        if let Some(Trainings { claims, of_cells }) = self.trainings
            && let Some(id) = &of_cells[index]
        {
            let claimed = claims.claim(&id.to_string());
            self.warn(index, claims);
            match claimed? {
                ClaimAttempt::Mine(claim) => training = Some(claim),
                ClaimAttempt::Held(holder) => {
                    let what =
                        if self.claims.exists(key) { "" } else { ", which trains its weights" };
                    // Another thread of this sweep will not run this cell after the training.
                    let wait = self.options.wait || claims.are_held_by(&holder);
                    return Ok(Claimed::Held { by: format!("{}{what}", holder.text()), wait });
                }
            }
        }
        let claimed = self.claims.claim(key);
        self.warn(index, self.claims);
        Ok(match claimed? {
            ClaimAttempt::Mine(cell) => Claimed::Mine(cell, training),
            ClaimAttempt::Held(holder) => {
                Claimed::Held { by: holder.text(), wait: self.options.wait }
            }
        })
    }

    /// Runs a claimed cell and returns whether it is settled.
    fn run(&self, index: usize, claim: &Claim) -> Result<bool, SweepError> {
        cells::refresh(self.cells, &self.options.out, index);
        let now = self.look_up(index);
        if self.ended_elsewhere(index, &now) {
            return Ok(true);
        }
        self.prepare(index, &now.status)?;
        let numbers = self.devices.map(|devices| devices.indices.clone()).unwrap_or_default();
        self.tell(index, CellEvent::Began { devices: numbers });
        let request = WorkerRequest {
            context: self.context.clone(),
            results: self.options.out.clone(),
            checkpoint_seconds: self.options.checkpoint_seconds,
            budget: self.options.budget.or(self.cells.budget(index)),
            weights: self.options.weights.clone(),
            data_parallel: self.options.data_parallel,
            devices: self.devices.map(|devices| devices.in_worker().clone()),
            record: Box::new(self.cells.unfinished_record(index, &self.context)),
        };
        let arguments = self.cells.worker_arguments(index);
        let program = (arguments.as_slice(), self.devices.and_then(PooledDevices::environment));
        let end = worker::run(&request, program, self.stop, claim, &mut |event| {
            let what = match event {
                RunEvent::Resumed { step, .. } => CellEvent::Resumed { step },
                RunEvent::Progress(progress) => CellEvent::Progress(progress),
                RunEvent::Point(point) => CellEvent::Point(point),
                RunEvent::Validated(validation) => CellEvent::Validated(validation),
                RunEvent::Trouble(text) => CellEvent::Trouble(text),
            };
            self.tell(index, what);
        })?;
        let has_died = matches!(end, WorkerEnd::Died { .. });
        let record = match end {
            WorkerEnd::Record(record) => record,
            WorkerEnd::Status(status) => Box::new(self.ended(index, status)),
            WorkerEnd::Died { reason } => match self.count_death(index, &reason) {
                None => return Ok(false),
                Some(status) => Box::new(self.ended(index, status)),
            },
            WorkerEnd::Changed { key } => {
                let text = format!(
                    "its data have changed since this sweep began (key {key} now); run the same command again"
                );
                self.complain(index, &text);
                return Ok(true);
            }
            WorkerEnd::Interrupted => {
                self.tell(index, CellEvent::Interrupted);
                return Ok(true);
            }
            WorkerEnd::Lost => {
                self.tell(index, CellEvent::Lost);
                return Ok(false);
            }
        };
        let resumes = has_died || is_resumable(&record.status);
        self.keep(index, claim, record, resumes)?;
        Ok(true)
    }

    /// Whether another sweep has ended the cell since this one looked it up first.
    fn ended_elsewhere(&self, index: usize, now: &CellFile) -> bool {
        if now.bytes == self.found[index].bytes {
            return false;
        }
        match &now.status {
            CellStatus::Kept(record) => self.tell(index, CellEvent::PickedUp(record.clone())),
            CellStatus::Unreadable(error) => self.complain(index, error),
            CellStatus::Open => return false,
        }
        true
    }

    /// Removes files of earlier attempts that the new one must not use.
    fn prepare(&self, index: usize, status: &CellStatus) -> Result<(), SweepError> {
        let path = cells::record_path(self.cells, &self.options.out, index);
        if let CellStatus::Unreadable(RecordError::Damaged { .. }) = status {
            let aside = store::set_aside(&path)?;
            self.complain(index, &format!("the damaged record is kept as {}", aside.display()));
        }
        store::remove_leftovers(&path);
        let checkpoints = self.checkpoints(index);
        // A worker that died in this sweep resumes from its checkpoints, and its deaths count.
        let started = self.started.lock();
        let is_first_start = started.unwrap_or_else(PoisonError::into_inner).insert(index);
        if self.options.retry.force
            && is_first_start
            && let Err(error) = checkpoints.remove()
        {
            self.complain(index, &format!("{error}; the cell may resume from there"));
        }
        // A retry on request resets the count of deaths, but only once per sweep.
        if self.found[index].bytes.is_some()
            && is_first_start
            && checkpoints.deaths().is_some()
            && let Err(error) = checkpoints.note_deaths(0)
        {
            self.complain(index, &error);
        }
        Ok(())
    }

    /// Counts the death of a cell's worker by a signal; returns the status of the cell if it is given up.
    fn count_death(&self, index: usize, reason: &str) -> Option<Status> {
        let checkpoints = self.checkpoints(index);
        let deaths = checkpoints.deaths().unwrap_or(0) + 1;
        let noted = checkpoints.note_deaths(deaths);
        if noted.is_ok() && deaths < MOST_DEATHS {
            let text = format!(
                "{reason}; death {deaths} of {MOST_DEATHS}, the cell resumes from its last checkpoint"
            );
            self.complain(index, &text);
            return None;
        }
        let unnoted = noted.err().map_or(String::new(), |error| format!("; {error}"));
        let reason = format!(
            "{reason}; death {deaths} of {MOST_DEATHS}{unnoted}; `--retry failed` resumes from its last checkpoint"
        );
        Some(Status::Failed { reason })
    }

    /// Writes the record of a cell, even if its claim was lost, because all records of a cell are equal. Checkpoints are
    /// removed unless a retry `resumes` from them.
    fn keep(
        &self,
        index: usize,
        claim: &Claim,
        record: Box<RunRecord>,
        resumes: bool,
    ) -> Result<(), SweepError> {
        let mine = claim.is_still_mine().unwrap_or_else(|error| {
            self.complain(index, &format!("{error}; the record is written anyway"));
            true
        });
        if !mine {
            let now = self.look_up(index);
            if let CellStatus::Kept(record) = now.status
                && now.bytes != self.found[index].bytes
            {
                self.tell(index, CellEvent::Lost);
                self.tell(index, CellEvent::PickedUp(record));
                return Ok(());
            }
        }
        if let Err(error) = record.write(&self.options.out) {
            if mine {
                return Err(error.into());
            }
            // The process that took the cell over removed the temporary file; it writes the same record.
            self.complain(index, &error);
            self.tell(index, CellEvent::Lost);
            return Ok(());
        }
        if mine
            && !resumes
            && let Err(error) = self.checkpoints(index).remove()
        {
            self.complain(index, &error);
        }
        self.tell(index, CellEvent::Ended(record));
        Ok(())
    }

    /// Removes checkpoints and claims that are no longer needed, from sweeps that died between writing a record and
    /// removing them.
    pub(super) fn clear_settled(&self) -> Result<(), SweepError> {
        for (index, found) in self.found.iter().enumerate() {
            let Some(record) = found.kept() else { continue };
            let (checkpoints, key) = (self.checkpoints(index), &self.cells.keys()[index]);
            let died =
                matches!(record.status, Status::Failed { .. }) && checkpoints.deaths().is_some();
            let spent = !is_resumable(&record.status) && !died && checkpoints.exists();
            if !spent && !self.claims.exists(key) {
                continue;
            }
            // An expired claim is taken and released at once.
            if let ClaimAttempt::Mine(_claim) = self.claims.claim(key)?
                && spent
            {
                // Checkpoints that cannot be removed do no harm.
                let _ = checkpoints.remove();
            }
        }
        Ok(())
    }

    fn checkpoints(&self, index: usize) -> CheckpointFolder {
        CheckpointFolder::new(&self.options.out, &self.cells.keys()[index])
    }

    fn look_up(&self, index: usize) -> CellFile {
        cells::look_up(self.cells, &self.options.out, index, &RetryPolicy::default())
    }

    fn tell(&self, index: usize, what: CellEvent) {
        // The receiver is gone only when the sweep is over.
        let _ = self.events.send(SweepEvent { index, what });
    }

    /// Tells of a problem that does not end the cell.
    fn complain(&self, index: usize, text: &dyn ToString) {
        self.tell(index, CellEvent::Trouble(text.to_string()));
    }

    /// Reports reduced protection by claims.
    fn warn(&self, index: usize, claims: &Claims) {
        if let Some(warning) = claims.take_warning() {
            self.complain(index, &warning);
        }
    }

    /// Record of a cell whose worker left none.
    fn ended(&self, index: usize, status: Status) -> RunRecord {
        RunRecord { status, ..self.cells.unfinished_record(index, &self.context) }
    }
}

/// Result of trying to claim a cell and its training.
enum Claimed {
    /// Both are claimed, the training if it has one, until the claims are dropped.
    Mine(Claim, Option<Claim>),
    /// One of them is held.
    Held {
        /// Who holds it.
        by: String,
        /// Whether the cell is tried again later.
        wait: bool,
    },
}

/// Whether a retry of a cell with this status resumes from its last checkpoint, for instance with a larger budget.
fn is_resumable(status: &Status) -> bool {
    match status {
        Status::TimedOut { .. } | Status::OutOfMemory { .. } | Status::Interrupted => true,
        Status::Done | Status::Diverged { .. } | Status::Failed { .. } => false,
    }
}
