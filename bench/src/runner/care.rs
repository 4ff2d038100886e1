//! What is done for a run beside the work itself: news of it, checkpoints, the end of its time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::Progress;
use crate::checkpoint::{Keeper, Moment};
use crate::train::{Stop, TrainState, Trainer};

/// What is told of a run while it goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum News {
    /// It goes on from a checkpoint.
    Resumed {
        /// Steps done before.
        step: usize,
        /// Seconds that the cell took before.
        cell_seconds: f64,
    },
    /// How far it is.
    Progress(Progress),
    /// Something is wrong that does not end it, in a sentence.
    Trouble(String),
}

/// Cares for one run. By itself it only tells the news.
pub struct Care<'a> {
    news: &'a mut dyn FnMut(News),
    keeper: Option<Keeper>,
    seconds: Option<f64>,
    stop: Option<&'a AtomicBool>,
    start: Instant,
    before_seconds: f64,
}

impl std::fmt::Debug for Care<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Care")
            .field("keeper", &self.keeper)
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

impl<'a> Care<'a> {
    /// Tells the news.
    pub fn new(news: &'a mut dyn FnMut(News)) -> Self {
        Self {
            news,
            keeper: None,
            seconds: None,
            stop: None,
            start: Instant::now(),
            before_seconds: 0.0,
        }
    }

    /// Goes on from a checkpoint, and keeps some.
    #[must_use]
    pub fn keeping(self, keeper: Keeper) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    /// Stops after so many seconds, those of earlier attempts counted.
    #[must_use]
    pub fn within(self, seconds: Option<f64>) -> Self {
        Self { seconds, ..self }
    }

    /// Stops when this becomes true.
    #[must_use]
    pub fn until(self, stop: &'a AtomicBool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    pub(super) fn tell(&mut self, news: News) {
        (self.news)(news);
    }

    /// Seconds that the cell has taken, those of earlier attempts counted.
    fn cell_seconds(&self) -> f64 {
        self.before_seconds + self.start.elapsed().as_secs_f64()
    }

    /// Puts the state where the last usable checkpoint has it.
    pub(super) fn resume(&mut self, state: &mut TrainState) {
        let Some(keeper) = &mut self.keeper else { return };
        let resumed = keeper.resume(state);
        for trouble in resumed.troubles {
            self.tell(News::Trouble(trouble));
        }
        if let Some(kept) = resumed.from {
            self.before_seconds = kept.cell_seconds;
            self.tell(News::Resumed { step: kept.step, cell_seconds: kept.cell_seconds });
        }
    }

    /// Keeps a checkpoint if one is due.
    pub(super) fn keep(&mut self, trainer: &Trainer<'_>, moment: Moment) {
        let cell_seconds = self.cell_seconds();
        let Some(keeper) = &mut self.keeper else { return };
        if let Err(trouble) = keeper.keep(trainer, cell_seconds, moment) {
            self.tell(News::Trouble(trouble));
        }
    }

    /// Why the run is to stop now, if it is; `reached` says how far it came.
    pub(super) fn reason_to_stop(&self, reached: impl Fn() -> String) -> Option<Stop> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::SeqCst)) {
            return Some(Stop::Interrupted);
        }
        let (taken, limit) = (self.cell_seconds(), self.seconds?);
        (taken >= limit).then(|| Stop::TimedOut {
            reason: format!(
                "its budget is {limit} s; after {taken:.1} s it had done {}",
                reached()
            ),
        })
    }
}
