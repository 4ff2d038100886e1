//! Hooks called while a run is in progress: progress events, checkpointing, time limits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use records::{CurvePoint, KeptWeights, RunRecord, Status, Validation, WeightsAt};

use super::Progress;
use crate::experiment::{TrainConfig, TrainingId};
use crate::run::checkpoint::{Checkpointer, Moment};
use crate::run::kept::{self, KeptTraining, Reuse, WeightsPolicy, weights_path};
use crate::run::train::{Replicas, TrainState, Trainer};
use pe_zoo::model::Decoder;

/// Event of a run in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEvent {
    /// The run resumes from a checkpoint.
    Resumed {
        /// Steps done in earlier attempts.
        step: usize,
        /// Seconds that the cell took in earlier attempts.
        cell_seconds: f64,
    },
    /// Progress of the training or the evaluation.
    Progress(Progress),
    /// A point of the training curve.
    Point(CurvePoint),
    /// A validation during the training.
    Validated(Validation),
    /// A problem that does not end the run, as a message.
    Trouble(String),
}

/// Hooks of one run.
pub struct RunHooks<'a> {
    on_event: &'a mut dyn FnMut(RunEvent),
    /// Where the run resumes and writes checkpoints; `None`: nowhere.
    pub checkpointer: Option<Checkpointer>,
    /// Weights that are kept after the training, and those that are read instead of training.
    pub weights: WeightsPolicy,
    /// Seconds after which the run stops, including those of earlier attempts.
    pub seconds: Option<f64>,
    /// Stops the run when it becomes true.
    pub stop: Option<&'a AtomicBool>,
    /// Number of devices that share the micro-batches.
    pub devices: usize,
    /// CPU threads of each device.
    pub threads: usize,
    start: Instant,
    before_seconds: f64,
}

impl std::fmt::Debug for RunHooks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunHooks")
            .field("checkpointer", &self.checkpointer)
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

impl<'a> RunHooks<'a> {
    /// Hooks that report events and do nothing else.
    pub fn new(on_event: &'a mut dyn FnMut(RunEvent)) -> Self {
        Self {
            on_event,
            checkpointer: None,
            weights: WeightsPolicy::none(),
            seconds: None,
            stop: None,
            devices: 1,
            threads: 1,
            start: Instant::now(),
            before_seconds: 0.0,
        }
    }

    /// Devices of the training; `None` if there is only one.
    ///
    /// # Errors
    ///
    /// As [`Replicas::new`].
    pub(super) fn replicas(&self, backend: &str, config: &TrainConfig) -> Result<Option<Replicas>> {
        if self.devices == 1 {
            return Ok(None);
        }
        Replicas::new(backend, self.devices, self.threads, config).map(Some)
    }

    /// Number of devices that share the micro-batches, for the record; `None` if there is only one.
    pub(super) fn data_parallel(&self) -> Option<u64> {
        Some(self.devices as u64).filter(|devices| *devices > 1)
    }

    pub(super) fn tell(&mut self, event: RunEvent) {
        (self.on_event)(event);
    }

    /// Seconds that the cell has taken, including earlier attempts.
    fn cell_seconds(&self) -> f64 {
        self.before_seconds + self.start.elapsed().as_secs_f64()
    }

    /// Restores the state from the last usable checkpoint.
    pub(super) fn resume(&mut self, state: &mut TrainState) {
        let Some(checkpointer) = &mut self.checkpointer else { return };
        let resumed = checkpointer.resume(state);
        for trouble in resumed.troubles {
            self.tell(RunEvent::Trouble(trouble));
        }
        if let Some(kept) = resumed.from {
            self.before_seconds = kept.cell_seconds;
            self.tell(RunEvent::Resumed { step: kept.step, cell_seconds: kept.cell_seconds });
        }
    }

    /// Writes a checkpoint if one is due.
    pub(super) fn checkpoint(&mut self, trainer: &Trainer<'_>, moment: Moment) {
        let cell_seconds = self.cell_seconds();
        let Some(checkpointer) = &mut self.checkpointer else { return };
        if let Err(trouble) = checkpointer.keep(trainer, cell_seconds, moment) {
            self.tell(RunEvent::Trouble(trouble));
        }
    }

    /// Whether the run only evaluates: it trains no model, not even to count the costs of a step.
    pub(super) fn only_evaluates(&self) -> bool {
        self.weights.reuse == Reuse::Only
    }

    /// Kept weights that replace the training.
    ///
    /// # Errors
    ///
    /// If the run may not train and there are none.
    pub(super) fn reusable(
        &mut self,
        training: &TrainingId,
        at: WeightsAt,
    ) -> Result<Option<KeptTraining>> {
        let path = weights_path(&self.weights.results, training, at);
        match self.weights.reuse {
            Reuse::Never => Ok(None),
            Reuse::IfKept => Ok(self.kept(training, at).unwrap_or_else(|error| {
                self.tell(RunEvent::Trouble(format!("{error}; the cell is trained again")));
                None
            })),
            Reuse::Only => match self.kept(training, at)? {
                None => bail!("the saved weights {} do not exist", path.display()),
                found => Ok(found),
            },
        }
    }

    /// Reads kept weights; `None` if there are none.
    ///
    /// # Errors
    ///
    /// If they are damaged.
    pub(super) fn kept(
        &self,
        training: &TrainingId,
        at: WeightsAt,
    ) -> Result<Option<KeptTraining>> {
        KeptTraining::read(&weights_path(&self.weights.results, training, at))
    }

    /// Writes the weights if the policy requests it. A failure is reported and does not end the run.
    pub(super) fn keep(
        &mut self,
        training: &TrainingId,
        model: &Decoder,
        record: &RunRecord,
        at: WeightsAt,
        step: usize,
        has_ended: bool,
    ) -> Option<KeptWeights> {
        // The best weights are kept in addition to the last.
        if self.weights.keep.is_none_or(|wanted| at > wanted) {
            return None;
        }
        let path = weights_path(&self.weights.results, training, at);
        match kept::write(&path, model, record, at, step, has_ended) {
            Ok(weights) => Some(weights),
            Err(error) => {
                self.tell(RunEvent::Trouble(format!("the weights were not saved: {error}")));
                None
            }
        }
    }

    /// Completes the settings file of the weights of the best validation at the end of the training.
    pub(super) fn finish_best(&mut self, training: &TrainingId, record: &RunRecord, step: usize) {
        if self.weights.keep != Some(WeightsAt::Best) {
            return;
        }
        let path = weights_path(&self.weights.results, training, WeightsAt::Best);
        if let Err(error) = kept::finish_best(&path, record, step) {
            let text = format!("the weights of the best validation were not saved: {error}");
            self.tell(RunEvent::Trouble(text));
        }
    }

    /// Status with which the run is to stop now, if it is; `reached` describes the progress.
    pub(super) fn reason_to_stop(&self, reached: impl Fn() -> String) -> Option<Status> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::SeqCst)) {
            return Some(Status::Interrupted);
        }
        let (taken, limit) = (self.cell_seconds(), self.seconds?);
        (taken >= limit).then(|| Status::TimedOut {
            reason: format!(
                "its budget is {limit} s; after {taken:.1} s the cell had completed {}",
                reached()
            ),
        })
    }
}
