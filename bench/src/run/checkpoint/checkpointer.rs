//! When a checkpoint is due, and which one a training goes on from.

use std::time::{Duration, Instant};

use super::{CheckpointFolder, CheckpointMeta, pack, unpack};
use crate::run::train::{TrainState, Trainer};

/// At the end of training a checkpoint is due after this share of the usual time: evaluation comes next, and
/// may take long.
const SHARE_AT_THE_END: u32 = 10;

/// Which moment of a training it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A step in the middle.
    Step,
    /// After the last training step.
    End,
    /// The training is being stopped.
    Stop,
}

/// Keeps the checkpoints of one cell.
#[derive(Debug)]
pub struct Checkpointer {
    folder: CheckpointFolder,
    every: Duration,
    last: Instant,
}

/// A training that goes on, and what was passed over to find it.
#[derive(Debug, Default)]
pub struct Resumed {
    /// Checkpoint that was loaded; `None`: the training begins at step 0.
    pub from: Option<CheckpointMeta>,
    /// Sentences about checkpoints that cannot be used.
    pub troubles: Vec<String>,
}

impl Checkpointer {
    /// Keeps a checkpoint in `folder` every so often.
    pub fn new(folder: CheckpointFolder, every: Duration) -> Self {
        Self { folder, every, last: Instant::now() }
    }

    /// Puts a training where the newest checkpoint that can be used has it.
    pub fn resume(&mut self, state: &mut TrainState) -> Resumed {
        let mut resumed = Resumed::default();
        let files = match self.folder.newest_first() {
            Ok(files) => files,
            Err(error) => {
                resumed.troubles.push(format!("{error}; the cell starts from its beginning"));
                return resumed;
            }
        };
        for (index, file) in files.iter().enumerate() {
            let name = file.display();
            let tried = match self.folder.read(file) {
                Ok(bytes) => unpack(&bytes, state).map_err(|error| format!("{name}: {error}")),
                Err(error) => Err(error.to_string()),
            };
            match tried {
                Ok(kept) => {
                    resumed.from = Some(kept);
                    break;
                }
                Err(reason) => {
                    let next = if index + 1 < files.len() {
                        "the one before it is tried"
                    } else {
                        "the cell starts from its beginning"
                    };
                    resumed.troubles.push(format!("{reason}; {next}"));
                }
            }
        }
        self.last = Instant::now();
        resumed
    }

    /// Keeps a checkpoint if one is due.
    ///
    /// # Errors
    /// A sentence about why it could not be kept. The training may go on, and the next is tried when it is due.
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
        let kept = pack(state, cell_seconds)
            .map_err(|error| error.to_string())
            .and_then(|bytes| self.folder.write(step, &bytes).map_err(|error| error.to_string()));
        // After the work: what it takes is no part of the time between two.
        self.last = Instant::now();
        kept.map_err(|reason| {
            format!("the checkpoint after {step} steps was not kept: {reason}; training goes on")
        })
    }
}
