//! What each thread of a sweep does: claims cells, has them run, keeps their records.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reports::{RecordError, RunRecord, Status, store};

use super::agenda::Agenda;
use super::claim::{Attempt, Claim, Claims};
use super::order::WorkOrder;
use super::plan::Plan;
use super::redo::Redo;
use super::survey::{Standing, Surveyed};
use super::worker::{self, End};
use super::{Event, SweepError, SweepOptions, What};
use crate::checkpoint::Folder;
use crate::runner::{self, News, RunContext};

/// A cell whose worker died by a signal this often is given up.
const MOST_DEATHS: u32 = 3;

/// What the threads of a sweep share.
pub(super) struct Sweeper<'a> {
    pub(super) plan: &'a Plan,
    pub(super) options: &'a SweepOptions,
    pub(super) context: RunContext,
    pub(super) surveyed: &'a [Surveyed],
    pub(super) claims: &'a Claims,
    pub(super) agenda: &'a Agenda,
    pub(super) stop: &'a AtomicBool,
    /// Cells with a record that this sweep has begun again.
    pub(super) retried: &'a Mutex<BTreeSet<usize>>,
}

impl Sweeper<'_> {
    /// Takes cells from the agenda until there are none or the sweep is stopped.
    pub(super) fn work(&self, sender: &Sender<Event>) -> Result<(), SweepError> {
        let mut held = std::collections::BTreeMap::new();
        while let Some(index) = self.agenda.next(self.stop) {
            // The receiver is gone only when the sweep is over.
            let mut tell = |what| drop(sender.send(Event { index, what }));
            let claimed = self.claims.claim(&self.plan.keys[index]);
            if let Some(warning) = self.claims.take_warning() {
                tell(What::Trouble(warning));
            }
            let settled = match claimed {
                Ok(Attempt::Mine(claim)) => self.run(index, &claim, &mut tell),
                Ok(Attempt::Held(holder)) => {
                    let by = holder.text();
                    if held.insert(index, by.clone()).as_ref() != Some(&by) {
                        tell(What::Held { by });
                    }
                    Ok(!self.options.wait)
                }
                Err(error) => Err(error.into()),
            };
            if let Some(warning) = self.claims.take_warning() {
                tell(What::Trouble(warning));
            }
            match settled {
                Ok(false) => self.agenda.put_back(index),
                Ok(true) => self.agenda.cross_out(),
                Err(error) => {
                    self.agenda.cross_out();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Runs a cell that was claimed; says whether nothing is left to be done for it.
    fn run(
        &self,
        index: usize,
        claim: &Claim,
        tell: &mut dyn FnMut(What),
    ) -> Result<bool, SweepError> {
        let path = self.plan.record_path(&self.options.out, index);
        let now = self.plan.look(&self.options.out, index, &Redo::default());
        if now.bytes != self.surveyed[index].bytes {
            // Another sweep has been here since this one looked; what it found is not tried again.
            match now.standing {
                Standing::Kept(record) => {
                    tell(What::PickedUp(record));
                    return Ok(true);
                }
                Standing::Unreadable(error) => {
                    tell(What::Trouble(error.to_string()));
                    return Ok(true);
                }
                Standing::Open => {}
            }
        }
        if let Standing::Unreadable(RecordError::Damaged { .. }) = now.standing {
            let aside = store::set_aside(&path)?;
            tell(What::Trouble(format!("the damaged record is kept as {}", aside.display())));
        }
        store::remove_leftovers(&path);
        let checkpoints = self.checkpoints(index);
        if self.options.redo.force
            && let Err(error) = checkpoints.remove()
        {
            tell(What::Trouble(format!("{error}; the cell may go on from there")));
        }
        if self.surveyed[index].bytes.is_some()
            && lock(self.retried).insert(index)
            && checkpoints.deaths().is_some()
            && let Err(error) = checkpoints.note_deaths(0)
        {
            tell(What::Trouble(error.to_string()));
        }
        tell(What::Began);
        let order = WorkOrder::of(
            &self.plan.cells[index].cell,
            &self.plan.keys[index],
            &self.context,
            self.options,
        );
        let end = worker::run(&order, self.stop, claim, &mut |news| {
            tell(match news {
                News::Resumed { step, .. } => What::Resumed { step },
                News::Progress(progress) => What::Progress(progress),
                News::Trouble(text) => What::Trouble(text),
            });
        })?;
        let (record, keep_checkpoints) = match end {
            End::Record(record) => {
                let keep = may_go_on(&record.status);
                (record, keep)
            }
            End::Status(status) => {
                let keep = may_go_on(&status);
                (Box::new(self.blank(index, status)), keep)
            }
            End::Died { reason } => {
                let deaths = checkpoints.deaths().unwrap_or(0) + 1;
                let noted = checkpoints.note_deaths(deaths);
                if noted.is_ok() && deaths < MOST_DEATHS {
                    tell(What::Trouble(format!(
                        "{reason}; death {deaths} of {MOST_DEATHS}, the cell goes on from its last checkpoint"
                    )));
                    return Ok(false);
                }
                let count = noted.err().map_or(String::new(), |error| format!("; {error}"));
                let reason = format!(
                    "{reason}; death {deaths} of {MOST_DEATHS}{count}; `--retry failed` goes on from its last checkpoint"
                );
                (Box::new(self.blank(index, Status::Failed { reason })), true)
            }
            End::Changed { key } => {
                tell(What::Trouble(format!(
                    "its data have changed since this sweep began (key {key} now); run the same command again"
                )));
                return Ok(true);
            }
            End::Interrupted => {
                tell(What::Interrupted);
                return Ok(true);
            }
            End::Lost => {
                tell(What::Lost);
                return Ok(false);
            }
        };
        // A finished record is kept whatever became of its claim; records of one cell are equal.
        let mine = claim.is_still_mine();
        let mine = mine.unwrap_or_else(|error| {
            tell(What::Trouble(format!("{error}; the record is written all the same")));
            true
        });
        if !mine {
            let now = self.plan.look(&self.options.out, index, &Redo::default());
            if let Standing::Kept(record) = now.standing
                && now.bytes != self.surveyed[index].bytes
            {
                tell(What::PickedUp(record));
                return Ok(true);
            }
        }
        record.write(&self.options.out)?;
        if mine
            && !keep_checkpoints
            && let Err(error) = checkpoints.remove()
        {
            tell(What::Trouble(error.to_string()));
        }
        tell(What::Ended(record));
        Ok(true)
    }

    /// Drops checkpoints and claims that are not needed any more: a sweep may have died after it wrote a record
    /// and before it cleared up.
    pub(super) fn clear_settled(&self) -> Result<(), SweepError> {
        for (index, surveyed) in self.surveyed.iter().enumerate() {
            let Some(record) = surveyed.kept() else { continue };
            let (checkpoints, key) = (self.checkpoints(index), &self.plan.keys[index]);
            let died =
                matches!(record.status, Status::Failed { .. }) && checkpoints.deaths().is_some();
            let spent = !may_go_on(&record.status) && !died && checkpoints.exists();
            if !spent && !self.claims.exists(key) {
                continue;
            }
            // A lapsed claim is taken, and given back at once.
            if let Attempt::Mine(_claim) = self.claims.claim(key)?
                && spent
            {
                // What cannot be removed is in nobody's way.
                let _ = checkpoints.remove();
            }
        }
        Ok(())
    }

    fn checkpoints(&self, index: usize) -> Folder {
        Folder::new(&self.options.out, &self.plan.keys[index])
    }

    fn blank(&self, index: usize, status: Status) -> RunRecord {
        let planned = &self.plan.cells[index];
        RunRecord { status, ..runner::blank(&planned.cell, &*planned.task, &self.context) }
    }
}

/// Whether a cell that ended like this goes on from its last checkpoint when it is tried again, with a larger
/// budget say.
fn may_go_on(status: &Status) -> bool {
    match status {
        Status::TimedOut { .. } | Status::OutOfMemory { .. } | Status::Interrupted => true,
        Status::Done | Status::Diverged { .. } | Status::Failed { .. } => false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
