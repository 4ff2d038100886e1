//! Requests to stop, as a sweep's command line takes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::Context;

use crate::signals::{self, StopSignal};

/// Flag that the first signal sets, and that signal.
pub(super) struct StopFlag {
    flag: Arc<AtomicBool>,
    first: Arc<AtomicI32>,
}

impl StopFlag {
    /// Installs the handlers.
    pub(super) fn install() -> anyhow::Result<Self> {
        let stop = Self { flag: Arc::default(), first: Arc::default() };
        let (flag, first) = (stop.flag.clone(), stop.first.clone());
        signals::on_stop(move |signal| {
            let stopping = flag.swap(true, Ordering::SeqCst);
            let _ = first.compare_exchange(0, signal.number(), Ordering::SeqCst, Ordering::SeqCst);
            // A second Ctrl-C ends the sweep at once. Other signals may come twice by themselves: a terminal that is
            // closed hangs up on the shell and on its jobs.
            if stopping && signal == StopSignal::INTERRUPT {
                std::process::exit(signal.exit_status().into());
            }
        })
        .context("the handler for Ctrl-C and SIGTERM cannot be installed")?;
        Ok(stop)
    }

    /// The flag.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// The signal that came first.
    pub(super) fn signal(&self) -> StopSignal {
        let first = StopSignal::from_number(self.first.load(Ordering::SeqCst));
        first.unwrap_or(StopSignal::INTERRUPT)
    }
}
