//! Batches drawn in a separate thread, ahead of the step that uses them.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;

use anyhow::Result;
use rand_chacha::ChaCha8Rng;
use tasks::{Batch, Sample, Task};

use super::threads;
use crate::experiment::TrainConfig;

/// Maximum number of waiting batches.
const AHEAD: usize = 2;

/// Batches of a step and the state of the generator after them. A checkpoint needs the state after the last step that
/// was trained on, not after the last batch drawn.
pub(super) struct StepBatches {
    /// One batch, or several micro-batches.
    pub(super) batches: Vec<Batch>,
    pub(super) rng_after: ChaCha8Rng,
}

impl StepBatches {
    /// Draws the batches of the next step.
    pub(super) fn draw(task: &dyn Task, config: &TrainConfig, rng: &mut ChaCha8Rng) -> Self {
        let samples = (0..config.batch_size)
            .map(|_| task.train_sample(config.len, rng))
            .collect::<Vec<Sample>>();
        let batches = samples.chunks(config.at_once()).map(Batch::collate).collect();
        Self { batches, rng_after: rng.clone() }
    }
}

/// Starts a thread that draws batches until the receiver is dropped.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    task: &'scope dyn Task,
    config: &'scope TrainConfig,
    mut rng: ChaCha8Rng,
) -> Result<Receiver<StepBatches>> {
    let (sender, receiver) = sync_channel(AHEAD);
    threads::spawn(scope, "draws batches", move || {
        while sender.send(StepBatches::draw(task, config, &mut rng)).is_ok() {}
    })?;
    Ok(receiver)
}
