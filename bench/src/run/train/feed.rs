//! Batches drawn in a thread of their own, ahead of the step that learns from them.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;

use rand_chacha::ChaCha8Rng;
use tasks::{Batch, Sample, Task};

use crate::experiment::TrainConfig;

/// Batches that wait at most: enough to even out, and little memory.
const AHEAD: usize = 2;

/// The batches of a step, and where the random numbers stand after them: what a checkpoint must keep is the state after the
/// last step that was learned from, not after the last one drawn.
pub(super) struct StepBatches {
    /// One, unless a step is taken in pieces.
    pub(super) batches: Vec<Batch>,
    pub(super) rng_after: ChaCha8Rng,
}

impl StepBatches {
    /// Draws what the next step learns from.
    pub(super) fn draw(task: &dyn Task, config: &TrainConfig, rng: &mut ChaCha8Rng) -> Self {
        let samples = (0..config.batch_size)
            .map(|_| task.train_sample(config.len, rng))
            .collect::<Vec<Sample>>();
        let batches = samples.chunks(config.at_once()).map(Batch::collate).collect();
        Self { batches, rng_after: rng.clone() }
    }
}

/// Draws batches until nobody receives them.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    task: &'scope dyn Task,
    config: &'scope TrainConfig,
    mut rng: ChaCha8Rng,
) -> Receiver<StepBatches> {
    let (sender, receiver) = sync_channel(AHEAD);
    scope.spawn(move || while sender.send(StepBatches::draw(task, config, &mut rng)).is_ok() {});
    receiver
}
