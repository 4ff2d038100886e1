//! Schedule of checkpoints, and resumption from the newest usable one.

use std::time::{Duration, Instant};

use anyhow::anyhow;

use super::{CheckpointFolder, CheckpointMeta, pack, unpack};
use crate::run::train::{TrainState, Trainer};

/// Divisor of the checkpoint interval at the end of training, because the evaluation that follows may take long.
const SHARE_AT_THE_END: u32 = 10;

/// Moment of a training at which a checkpoint may be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// After a step before the last one.
    Step,
    /// After the last training step.
    End,
    /// Before the training is stopped.
    Stop,
}

/// Writer and reader of the checkpoints of one cell.
#[derive(Debug)]
pub struct Checkpointer {
    folder: CheckpointFolder,
    every: Duration,
    last: Instant,
}

/// Result of resuming a training.
#[derive(Debug, Default)]
pub struct Resumed {
    /// Loaded checkpoint; `None`: the training begins at step 0.
    pub from: Option<CheckpointMeta>,
    /// Messages about unusable checkpoints.
    pub troubles: Vec<String>,
}

impl Checkpointer {
    /// Checkpointer that writes to `folder` at the interval `every`.
    pub fn new(folder: CheckpointFolder, every: Duration) -> Self {
        Self { folder, every, last: Instant::now() }
    }

    /// Restores a training from the newest usable checkpoint.
    pub fn resume(&mut self, state: &mut TrainState) -> Resumed {
        let mut resumed = Resumed::default();
        let files = match self.folder.newest_first() {
            Ok(files) => files,
            Err(error) => {
                resumed.troubles.push(format!("{error}; the cell starts from the first step"));
                return resumed;
            }
        };
        for (index, file) in files.iter().enumerate() {
            let name = file.display();
            let tried = self.folder.read(file).and_then(|bytes| {
                unpack(&bytes, state).map_err(|error| anyhow!("{name}: {error}"))
            });
            match tried {
                Ok(kept) => {
                    resumed.from = Some(kept);
                    break;
                }
                Err(reason) => {
                    let next = if index + 1 < files.len() {
                        "the previous checkpoint is tried"
                    } else {
                        "the cell starts from the first step"
                    };
                    resumed.troubles.push(format!("{reason}; {next}"));
                }
            }
        }
        self.last = Instant::now();
        resumed
    }

    /// Writes a checkpoint if one is due.
    ///
    /// # Errors
    /// Message, if the checkpoint could not be written. The training can continue; the next checkpoint is written when it
    /// is due.
    pub fn keep(
        &mut self,
        trainer: &Trainer<'_>,
        cell_seconds: f64,
        moment: Moment,
    ) -> Result<(), String> {
        let passed = self.last.elapsed();
        let due = match moment {
            Moment::Step => passed >= self.every,
            Moment::End => passed >= self.every / SHARE_AT_THE_END,
            Moment::Stop => true,
        };
        if !due {
            return Ok(());
        }
        let state = trainer.state();
        let step = state.progress.step;
        let kept =
            pack(state, cell_seconds).and_then(|bytes| Ok(self.folder.write(step, &bytes)?));
        // After the work, so that its duration is not part of the interval.
        self.last = Instant::now();
        kept.map_err(|reason| {
            format!("the checkpoint after {step} steps was not saved: {reason}; training continues")
        })
    }
}
