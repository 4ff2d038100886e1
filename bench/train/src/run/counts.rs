//! Allocation counts of a training step.
//!
//! Counts of different nights are comparable only if they are deterministic. Steps therefore run in a thread pool of one
//! thread: with more threads the tensor library splits its work depending on which threads are free, and each piece may
//! allocate its own buffers.

use anyhow::{Context as _, Result};
use records::Allocations;
use tasks::Task;

use super::train::Trainer;
use crate::allocations::{asked, is_counted};
use crate::experiment::Experiment;

/// Number of steps before the counted one. The first step fills caches and creates the optimizer's moments; the second
/// is the first to reuse them.
pub const WARM_UP: usize = 2;

/// Backend that computes on the calling thread; others use their own threads or devices.
const BACKEND: &str = "flex";

/// Allocations of the third training step, including its batch; `None` if the global allocator does not count or the
/// cell's backend is not the CPU one.
///
/// # Errors
/// The reason, if the cell cannot be built or trained.
pub fn step_allocations(cell: &Experiment, task: &dyn Task) -> Result<Option<Allocations>> {
    if cell.backend != BACKEND {
        return Ok(None);
    }
    let asked = take_steps(cell, task, WARM_UP + 1)?;
    let Some([before, after]) = asked.last_chunk() else { return Ok(None) };
    Ok(Some(Allocations { count: after.count - before.count, bytes: after.bytes - before.bytes }))
}

/// Runs `count` training steps of a cell on one thread. Returns the allocations of that thread before the first step and
/// after each step; empty if the global allocator does not count.
///
/// # Errors
/// The reason, if the cell cannot be built or trained.
pub fn take_steps(cell: &Experiment, task: &dyn Task, count: usize) -> Result<Vec<Allocations>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.context("cannot start the thread of the counted training steps")?.install(|| {
        let (model, device) = super::build(cell, task)?;
        let (id, dropout) = (cell.encoding.id(), cell.model.dropout);
        let mut trainer = Trainer::new(model, id, &cell.train, dropout, task, cell.seed, &device);
        // Room for all, so that taking notes asks for nothing.
        let mut notes = Vec::with_capacity(count + 1);
        notes.push(asked());
        for _ in 0..count {
            trainer.step()?;
            notes.push(asked());
        }
        Ok(if is_counted() { notes } else { Vec::new() })
    })
}
