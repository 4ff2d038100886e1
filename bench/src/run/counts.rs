//! Allocations of a training step, counted.
//!
//! Counts compare nights only if the same program counts the same, however many threads it has and whatever else the
//! machine does. So steps are taken on one thread: a pool of one runs the whole step, and all work that the tensor
//! library would share out. With two threads the library cuts its work where a thread happens to be free, and each
//! piece may ask for buffers of its own.

use reports::Allocations;
use tasks::Task;

use super::train::Trainer;
use crate::allocations::{asked, is_counted};
use crate::experiment::Experiment;

/// Steps before the one that is counted. The first fills caches and makes what the optimizer remembers, the second is
/// the first to find it there.
pub(crate) const WARM_UP: usize = 2;

/// The backend whose work is done by the thread that asks for it; others have threads and devices of their own.
const BACKEND: &str = "flex";

/// Allocations of the third training step, its batch included; `None` where this program does not
/// count or the cell's backend works elsewhere.
///
/// # Errors
/// The reason, if the cell cannot be built or trained.
pub fn step_allocations(cell: &Experiment, task: &dyn Task) -> Result<Option<Allocations>, String> {
    if cell.backend != BACKEND {
        return Ok(None);
    }
    let asked = take_steps(cell, task, WARM_UP + 1)?;
    let Some([before, after]) = asked.last_chunk() else { return Ok(None) };
    Ok(Some(Allocations { count: after.count - before.count, bytes: after.bytes - before.bytes }))
}

/// Takes so many steps of a cell's training on one thread, and tells what that thread had asked for before the first and
/// after each; nothing where this program does not count.
///
/// # Errors
/// The reason, if the cell cannot be built or trained.
pub fn take_steps(
    cell: &Experiment,
    task: &dyn Task,
    count: usize,
) -> Result<Vec<Allocations>, String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| format!("a thread to count on: {error}"))?;
    pool.install(|| {
        let (model, device) = super::build(cell, task)?;
        let (id, dropout) = (cell.encoding.id(), cell.model.dropout);
        let mut trainer = Trainer::new(model, id, &cell.train, dropout, task, cell.seed, &device);
        // Room for all, so that taking notes asks for nothing.
        let mut notes = Vec::with_capacity(count + 1);
        notes.push(asked());
        for _ in 0..count {
            trainer.step().map_err(|error| error.to_string())?;
            notes.push(asked());
        }
        Ok(if is_counted() { notes } else { Vec::new() })
    })
}
