//! What a sweep finds in the results folder, and what it writes and removes there.

use std::sync::PoisonError;

use records::store::RecordError;
use records::{RunRecord, Status, store};

use super::{Sweeper, unwritable};
use crate::cells::{self, SweepCells, look_up_all};
use crate::claim::{Claim, ClaimAttempt};
use crate::retry::RetryPolicy;
use crate::status::{CellFile, CellStatus};
use crate::{CellEvent, SweepOptions, SweepOutcome};
use train::run::checkpoint::CheckpointFolder;

/// Number of deaths of a worker by signals after which its cell is recorded as failed.
const MOST_DEATHS: u32 = 3;

impl Sweeper<'_> {
    /// Whether another sweep has ended the cell since this one looked it up first.
    pub(super) fn ended_elsewhere(&self, index: usize, now: &CellFile) -> bool {
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
    pub(super) fn prepare(&self, index: usize, status: &CellStatus) -> anyhow::Result<()> {
        let path = cells::record_path(self.cells, &self.options.out, index);
        if let CellStatus::Unreadable(RecordError::Damaged { .. }) = status {
            let aside = store::set_aside(&path).map_err(unwritable)?;
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
            self.complain(index, &format!("{error}; the cell may resume from these checkpoints"));
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
    pub(super) fn count_death(&self, index: usize, reason: &str) -> Option<Status> {
        let checkpoints = self.checkpoints(index);
        let deaths = checkpoints.deaths().unwrap_or(0) + 1;
        let noted = checkpoints.note_deaths(deaths);
        if noted.is_ok() && deaths < MOST_DEATHS {
            let text = format!(
                "{reason}; failure {deaths} of at most {MOST_DEATHS}; the cell resumes from its last checkpoint"
            );
            self.complain(index, &text);
            return None;
        }
        let unnoted = noted.err().map_or(String::new(), |error| format!("; {error}"));
        let reason = format!(
            "{reason}; failure {deaths} of at most {MOST_DEATHS}{unnoted}; `--retry failed` resumes the cell \
             from its last checkpoint"
        );
        Some(Status::Failed { reason })
    }

    /// Writes the record of a cell, even if its claim was lost, because all records of a cell are equal. Checkpoints are
    /// removed unless a retry `resumes` from them.
    pub(super) fn keep(
        &self,
        index: usize,
        claim: &Claim,
        record: Box<RunRecord>,
        resumes: bool,
    ) -> anyhow::Result<()> {
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
                return Err(unwritable(error));
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
    pub(super) fn clear_settled(&self) -> anyhow::Result<()> {
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
            if let ClaimAttempt::Mine(_claim) = self.claims.claim(key).map_err(unwritable)?
                && spent
            {
                // Checkpoints that cannot be removed do no harm.
                let _ = checkpoints.remove();
            }
        }
        Ok(())
    }

    pub(super) fn checkpoints(&self, index: usize) -> CheckpointFolder {
        CheckpointFolder::new(&self.options.out, &self.cells.keys()[index])
    }

    pub(super) fn look_up(&self, index: usize) -> CellFile {
        cells::look_up(self.cells, &self.options.out, index, &RetryPolicy::default())
    }

    /// Record of a cell whose worker left none.
    pub(super) fn ended(&self, index: usize, status: Status) -> RunRecord {
        RunRecord { status, ..self.cells.unfinished_record(index, &self.context) }
    }
}

/// Whether a retry of a cell with this status resumes from its last checkpoint, for instance with a larger budget.
pub(super) fn is_resumable(status: &Status) -> bool {
    match status {
        Status::TimedOut { .. } | Status::OutOfMemory { .. } | Status::Interrupted => true,
        Status::Done | Status::Diverged { .. } | Status::Failed { .. } => false,
    }
}

/// Collects the records of all cells, including those that other sweeps wrote. A cell that was to run and whose file is still
/// the one of `found` has no record yet: another process may be running it.
pub(super) fn outcome_of(
    cells: &dyn SweepCells,
    options: &SweepOptions,
    found: &[CellFile],
    interrupted: bool,
) -> SweepOutcome {
    let (mut records, mut open, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    let now = look_up_all(cells, &options.out, &RetryPolicy::default(), options.packed);
    for (index, (now, before)) in now.into_iter().zip(found).enumerate() {
        let is_to_run = !before.is_settled() && now.bytes == before.bytes;
        match if is_to_run { CellStatus::Open } else { now.status } {
            CellStatus::Kept(record) => records.push(*record),
            CellStatus::Open if options.shard.has(&cells.keys()[index]) => open.push(index),
            CellStatus::Open => {}
            CellStatus::Unreadable(error) => unreadable.push(error),
        }
    }
    SweepOutcome { records, open, unreadable, interrupted }
}
