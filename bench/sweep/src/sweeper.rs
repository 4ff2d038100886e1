//! The loop of a sweep: its threads claim cells, run each in a worker process and write the records.

mod files;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};

use super::cells::{self, SweepCells};
use super::claim::{Claim, ClaimAttempt, Claims};
use super::order;
use super::protocol::WorkerRequest;
use super::queue::WorkQueue;
use super::status::CellFile;
use super::worker::{self, WorkerCommand, WorkerEnd};
use super::{CellEvent, SweepEvent, SweepOptions, SweepOutcome};
use files::{is_resumable, outcome_of};
use train::backend::pool::PooledDevices;
use train::experiment::TrainingId;
use train::host;
use train::run::{RunContext, RunEvent};

/// Runs the open cells of a sweep and calls `on_event` with every event.
///
/// `found` is what [`look_up_all`](super::look_up_all) found with the sweep's policy, and `seconds` are the expected times of the cells, which
/// determine the [`order`] of their start.
///
/// # Errors
/// If a record or a claim cannot be written, or a process or thread cannot be started; cells that ended before keep their
/// records.
pub fn sweep(
    cells: &dyn SweepCells,
    options: &SweepOptions,
    found: &[CellFile],
    seconds: &[f64],
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(SweepEvent),
) -> Result<SweepOutcome> {
    let keys = cells.keys();
    let mut budgets = (0..keys.len()).map(|index| options.budget.or(cells.budget(index)));
    let has_limit = budgets.any(|budget| budget.memory_bytes.is_some());
    ensure!(
        !has_limit || host::resident_bytes(std::process::id()).is_some(),
        "memory budgets need a system that reports the memory of other processes; leave out --cell-memory and the suite's \
         memory_bytes"
    );
    let patience = Duration::try_from_secs_f64(options.claim_seconds).unwrap_or(Duration::MAX);
    let claims = Claims::new(&options.out, patience).map_err(unwritable)?;
    // Cells that differ in their evaluation alone write the same files of weights.
    let trainings = match options.weights.keep {
        None => None,
        Some(_) => Some(Trainings {
            claims: Claims::new(&options.weights.results.join("weights"), patience)
                .map_err(unwritable)?,
            of_cells: (0..keys.len()).map(|index| cells.training(index)).collect(),
        }),
    };
    let context = RunContext {
        suite: cells.suite().to_owned(),
        suite_sha256: cells.suite_sha256().map(str::to_owned),
        threads: options.threads,
        jobs: options.jobs,
    };
    let mut waiting = (0..keys.len())
        .filter(|index| options.shard.has(&keys[*index]) && !found[*index].is_settled())
        .collect::<Vec<_>>();
    order::sort(&mut waiting, seconds, options.worker);
    let queue = WorkQueue::new(waiting);
    let (sender, receiver) = channel();
    let sweeper = Sweeper {
        cells,
        options,
        context,
        found,
        claims: &claims,
        trainings: trainings.as_ref(),
        queue: &queue,
        stop,
        started: &Mutex::default(),
        devices: None,
        events: sender,
    };
    sweeper.clear_settled()?;
    std::thread::scope(|scope| {
        let threads = (0..options.jobs)
            .map(|job| {
                let sweeper = Sweeper { devices: options.devices.get(job), ..sweeper.clone() };
                std::thread::Builder::new().spawn_scoped(scope, move || {
                    let worked = sweeper.work();
                    // The other threads finish their steps; a sweep that cannot store results must stop.
                    stop.fetch_or(worked.is_err(), Ordering::SeqCst);
                    worked
                })
            })
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| {
                stop.store(true, Ordering::SeqCst);
                anyhow!(
                    "cannot start a thread of the sweep: {error}; use fewer --jobs or raise the limits of memory and processes"
                )
            });
        drop(sweeper);
        for event in receiver {
            on_event(event);
        }
        threads?.into_iter().try_for_each(|thread| match thread.join() {
            Ok(worked) => worked,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let interrupted = stop.load(Ordering::SeqCst);
    Ok(outcome_of(cells, options, found, interrupted))
}

/// Thread of a sweep, with the state that all of them share.
#[derive(Clone)]
struct Sweeper<'a> {
    cells: &'a dyn SweepCells,
    options: &'a SweepOptions,
    context: RunContext,
    found: &'a [CellFile],
    claims: &'a Claims,
    /// `None` if no weights are kept.
    trainings: Option<&'a Trainings>,
    queue: &'a WorkQueue,
    stop: &'a AtomicBool,
    /// Cells that this sweep has started.
    started: &'a Mutex<BTreeSet<usize>>,
    /// Devices of this thread's workers; `None`: the default ones of the backend.
    devices: Option<&'a PooledDevices>,
    events: Sender<SweepEvent>,
}

/// Trainings of the cells, and the claims on them.
struct Trainings {
    claims: Claims,
    of_cells: Vec<Option<TrainingId>>,
}

impl Sweeper<'_> {
    /// Runs cells from the queue until it is empty or the sweep is stopped.
    fn work(&self) -> Result<()> {
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
    fn claim(&self, index: usize) -> Result<Claimed> {
        let key = &self.cells.keys()[index];
        let mut training = None;
        if let Some(Trainings { claims, of_cells }) = self.trainings
            && let Some(id) = &of_cells[index]
        {
            let claimed = claims.claim(&id.to_string());
            self.warn(index, claims);
            match claimed.map_err(unwritable)? {
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
        Ok(match claimed.map_err(unwritable)? {
            ClaimAttempt::Mine(cell) => Claimed::Mine(cell, training),
            ClaimAttempt::Held(holder) => {
                Claimed::Held { by: holder.text(), wait: self.options.wait }
            }
        })
    }

    /// Runs a claimed cell and returns whether it is settled.
    fn run(&self, index: usize, claim: &Claim) -> Result<bool> {
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
        let command = WorkerCommand {
            arguments: self.cells.worker_arguments(index),
            environment: self.devices.and_then(PooledDevices::environment),
        };
        let end = worker::run(&request, &command, self.stop, claim, &mut |event| {
            self.tell(index, CellEvent::Run(event));
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
                    "its data have changed since this sweep began (its key is now {key}); run the same command again"
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

    fn tell(&self, index: usize, what: CellEvent) {
        // The receiver is gone only when the sweep is over.
        let _ = self.events.send(SweepEvent { index, what });
    }

    /// Tells of a problem that does not end the cell.
    fn complain(&self, index: usize, text: &dyn ToString) {
        self.tell(index, CellEvent::Run(RunEvent::Trouble(text.to_string())));
    }

    /// Reports reduced protection by claims.
    fn warn(&self, index: usize, claims: &Claims) {
        if let Some(warning) = claims.take_warning() {
            self.complain(index, &warning);
        }
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

/// Error of a file of the results folder.
fn unwritable(error: impl Display) -> anyhow::Error {
    anyhow!(
        "{error}; make the results folder writable or free some space, and run the same command again: finished cells are kept"
    )
}
