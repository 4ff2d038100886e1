//! Many cells in worker processes: what is finished is kept, what is interrupted is run again.
//!
//! Each cell runs in a process of its own, so that its peak memory is its own and its end, however
//! bad, is one record and not the end of the sweep.

pub mod budget;
mod estimate;
mod plan;
mod worker;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use reports::{RecordError, RunRecord};

pub use budget::Budget;
pub use estimate::{FLOPS_PER_SECOND, training_seconds};
pub use plan::{Plan, PlanError, Planned, Unrunnable};
pub use worker::{WorkOrder, serve};

use crate::runner::{Progress, RunContext};

/// How a sweep is run.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// Folder of the records.
    pub out: PathBuf,
    /// Cells side by side.
    pub jobs: usize,
    /// Threads of each cell.
    pub threads: usize,
    /// Run finished cells again.
    pub force: bool,
}

/// Something that happened in a sweep.
#[derive(Debug)]
pub enum Event {
    /// A cell is under way.
    Progress {
        /// Its index in the plan.
        index: usize,
        /// How far it is.
        progress: Progress,
    },
    /// A cell ended, and its record is safe on disk.
    Ended {
        /// Its index in the plan.
        index: usize,
        /// What it left.
        record: Box<RunRecord>,
    },
}

/// How a sweep ended.
#[derive(Debug)]
pub struct Outcome {
    /// Records of the plan's cells, in its order, as far as there are any.
    pub records: Vec<RunRecord>,
    /// Whether it was stopped from outside.
    pub interrupted: bool,
}

/// A sweep that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A record cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A worker process cannot be started.
    #[error("a worker process cannot be started: {0}; check that the program file is still there")]
    Spawn(std::io::Error),
}

type Queue = Arc<Mutex<VecDeque<usize>>>;
type Message = (usize, Result<worker::Answer, SweepError>);

/// Runs the cells of a plan that have no record yet; `on_event` hears of everything.
///
/// `seconds` is how long each cell is expected to take: the longest start first, so that no long
/// one is left alone at the end.
///
/// # Errors
/// [`SweepError`]; cells that ended before keep their records.
pub fn sweep(
    plan: &Plan,
    options: &SweepOptions,
    seconds: &[f64],
    stop: &Arc<AtomicBool>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Outcome, SweepError> {
    let mut records = plan.existing(options)?;
    let mut waiting =
        (0..plan.cells.len()).filter(|index| records[*index].is_none()).collect::<Vec<_>>();
    waiting.sort_by(|a, b| seconds[*b].total_cmp(&seconds[*a]));
    let context =
        RunContext { suite: plan.suite.clone(), threads: options.threads, jobs: options.jobs };
    let queue: Queue = Arc::new(Mutex::new(waiting.into()));
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            let (queue, sender, stop) = (queue.clone(), sender.clone(), stop.clone());
            let context = &context;
            scope.spawn(move || work(plan, context, &queue, &sender, &stop));
        }
        drop(sender);
        let collected = collect(plan, options, &receiver, &mut records, on_event);
        if collected.is_err() {
            stop.store(true, Ordering::SeqCst);
        }
        collected
    })?;
    Ok(Outcome {
        records: records.into_iter().flatten().collect(),
        interrupted: stop.load(Ordering::SeqCst),
    })
}

/// Takes cells from the queue until there are none or the sweep is stopped.
fn work(
    plan: &Plan,
    context: &RunContext,
    queue: &Queue,
    sender: &Sender<Message>,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::SeqCst) {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(index) = next else { return };
        let order = WorkOrder::of(&plan.cells[index].cell, context);
        let mut heard = |answer| {
            // The receiver is gone only when the sweep is over.
            let _ = sender.send((index, Ok(answer)));
        };
        if let Err(error) = worker::run(&order, stop, &mut heard) {
            let _ = sender.send((index, Err(error)));
            return;
        }
    }
}

fn collect(
    plan: &Plan,
    options: &SweepOptions,
    receiver: &Receiver<Message>,
    records: &mut [Option<RunRecord>],
    on_event: &mut dyn FnMut(Event),
) -> Result<(), SweepError> {
    for (index, answer) in receiver {
        match answer? {
            worker::Answer::Progress(progress) => on_event(Event::Progress { index, progress }),
            worker::Answer::Record(record) => {
                record.write(&options.out)?;
                records[index] = Some((*record).clone());
                on_event(Event::Ended { index, record });
            }
            worker::Answer::Broke(reason) => {
                let planned = &plan.cells[index];
                let context = RunContext {
                    suite: plan.suite.clone(),
                    threads: options.threads,
                    jobs: options.jobs,
                };
                let mut record = crate::runner::blank(&planned.cell, &*planned.task, &context);
                record.status = reports::Status::Failed { reason };
                record.write(&options.out)?;
                records[index] = Some(record.clone());
                on_event(Event::Ended { index, record: Box::new(record) });
            }
        }
    }
    Ok(())
}
