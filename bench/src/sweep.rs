//! Sweeps: many cells in worker processes. Finished records are kept, interrupted cells resume.
//!
//! Each cell runs in a process of its own, so that its peak memory is its own and its end, however
//! bad, is one record and not the end of the sweep. Several sweeps may work on one folder of results
//! ([`claim`]); a cell whose process died goes on from its last checkpoint ([`crate::run::checkpoint`]).

mod cells;
pub mod claim;
mod estimate;
mod job;
mod memory;
mod plan;
mod protocol;
mod queue;
mod retry;
mod shard;
mod status;
mod sweeper;
mod watchdog;
mod worker;
mod worker_main;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use reports::{RecordError, RunRecord};

pub use cells::{SweepCells, look_up_all};
use claim::{ClaimError, Claims};
pub use estimate::{FLOPS_PER_SECOND, training_seconds};
pub use plan::{PlanError, PlannedCell, SkippedWorkload, SweepPlan};
pub use protocol::WorkerRequest;
use queue::WorkQueue;
pub use retry::{Retry, RetryPolicy};
pub use shard::{Shard, ShardError};
pub use status::{CellFile, CellStatus};
use sweeper::Sweeper;
pub use worker_main::{serve, worker_main};

use crate::experiment::Budget;
use crate::run::{Progress, RunContext};

/// How a sweep is run.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// Folder of the results.
    pub out: PathBuf,
    /// Cells side by side.
    pub jobs: usize,
    /// Threads of each cell.
    pub threads: usize,
    /// Which cells that have a record are run again.
    pub retry: RetryPolicy,
    /// Which cells are this sweep's.
    pub shard: Shard,
    /// Limits of each cell; where it is `None`, the suite's apply.
    pub budget: Budget,
    /// A checkpoint is kept this often.
    pub checkpoint_seconds: f64,
    /// A claim lapses when it is not touched for so long.
    pub claim_seconds: f64,
    /// Waits at the end for cells that other sweeps hold.
    pub wait: bool,
}

/// Something that happened to a cell of a sweep.
#[derive(Debug)]
pub struct SweepEvent {
    /// The cell's index in the plan.
    pub index: usize,
    /// Event of that cell.
    pub what: CellEvent,
}

/// Event of one cell.
#[derive(Debug)]
pub enum CellEvent {
    /// Its worker was started.
    Began,
    /// It goes on from a checkpoint.
    Resumed {
        /// Steps done in earlier attempts.
        step: usize,
    },
    /// It is under way.
    Progress(Progress),
    /// Something is wrong that does not end it, in a sentence.
    Trouble(String),
    /// Another sweep has it.
    Held {
        /// Name of the process that holds the claim.
        by: String,
    },
    /// It ended, and its record is safe on disk.
    Ended(Box<RunRecord>),
    /// Another sweep ended it meanwhile.
    PickedUp(Box<RunRecord>),
    /// It was stopped before its end; it goes on next time.
    Interrupted,
    /// This sweep slept for so long that another one took it.
    Lost,
}

/// How a sweep ended.
#[derive(Debug)]
pub struct SweepOutcome {
    /// Records of the plan's cells, in its order, as far as there are any.
    pub records: Vec<RunRecord>,
    /// This sweep's cells without a record, by index.
    pub open: Vec<usize>,
    /// Records that cannot be read.
    pub unreadable: Vec<RecordError>,
    /// Whether it was stopped from outside.
    pub interrupted: bool,
}

/// A sweep that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A record cannot be written. The cell goes on from its last checkpoint next time.
    #[error(
        "{0}; make space or make the folder writable, and run the same command again: what is finished is kept"
    )]
    Record(#[from] RecordError),
    /// Cells cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A worker process cannot be started.
    #[error("a worker process cannot be started: {0}; check that the program file is still there")]
    Spawn(std::io::Error),
    /// A thread cannot be started.
    #[error(
        "a thread of the sweep cannot be started: {0}; use fewer --jobs or raise the limits of memory and processes"
    )]
    Thread(std::io::Error),
    /// A budget of memory on a system that does not tell what other processes take.
    #[error(
        "the memory of other processes cannot be seen on this system; leave out --cell-memory and the suite's memory_bytes"
    )]
    MemoryUntold,
}

/// Runs the open cells of a sweep; `on_event` is called with everything that happens.
///
/// `seconds` is the expected time of each cell: the longest start first, so that no long one is left alone at the end.
///
/// # Errors
/// [`SweepError`]; cells that ended before keep their records.
pub fn sweep(
    cells: &dyn SweepCells,
    options: &SweepOptions,
    seconds: &[f64],
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(SweepEvent),
) -> Result<SweepOutcome, SweepError> {
    let keys = cells.keys();
    let mut budgets = (0..keys.len()).map(|index| options.budget.or(cells.budget(index)));
    if budgets.any(|budget| budget.memory_bytes.is_some()) && !memory::is_told() {
        return Err(SweepError::MemoryUntold);
    }
    let found = look_up_all(cells, &options.out, &options.retry);
    let patience = Duration::try_from_secs_f64(options.claim_seconds).unwrap_or(Duration::MAX);
    let claims = Claims::new(&options.out, patience)?;
    let context = RunContext {
        suite: cells.suite().to_owned(),
        threads: options.threads,
        jobs: options.jobs,
    };
    let mut waiting = (0..keys.len())
        .filter(|index| options.shard.has(&keys[*index]) && !found[*index].is_settled())
        .collect::<Vec<_>>();
    waiting.sort_by(|a, b| seconds[*b].total_cmp(&seconds[*a]));
    let queue = WorkQueue::new(waiting);
    let (sender, receiver) = channel();
    let sweeper = Sweeper {
        cells,
        options,
        context,
        found: &found,
        claims: &claims,
        queue: &queue,
        stop,
        retried: &Mutex::default(),
    };
    sweeper.clear_settled()?;
    std::thread::scope(|scope| {
        let threads = (0..options.jobs)
            .map(|_| {
                let (sweeper, sender) = (&sweeper, sender.clone());
                std::thread::Builder::new().spawn_scoped(scope, move || {
                    let worked = sweeper.work(&sender);
                    // The others finish their steps; a sweep that cannot keep results must not go on.
                    stop.fetch_or(worked.is_err(), Ordering::SeqCst);
                    worked
                })
            })
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| {
                stop.store(true, Ordering::SeqCst);
                SweepError::Thread(error)
            });
        drop(sender);
        for event in receiver {
            on_event(event);
        }
        threads?.into_iter().try_for_each(|thread| match thread.join() {
            Ok(worked) => worked,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(conclude(cells, options, stop.load(Ordering::SeqCst)))
}

/// Looks up all records as they are now, whoever wrote them.
fn conclude(cells: &dyn SweepCells, options: &SweepOptions, interrupted: bool) -> SweepOutcome {
    let (mut records, mut open, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    let found = look_up_all(cells, &options.out, &RetryPolicy::default());
    for (index, (found, key)) in found.into_iter().zip(cells.keys()).enumerate() {
        match found.status {
            CellStatus::Kept(record) => records.push(*record),
            CellStatus::Open if options.shard.has(key) => open.push(index),
            CellStatus::Open => {}
            CellStatus::Unreadable(error) => unreadable.push(error),
        }
    }
    SweepOutcome { records, open, unreadable, interrupted }
}
