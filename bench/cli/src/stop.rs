//! Stop requests by signals.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::Context;

use super::out::complain;
use sweep::signals;

/// Stop flag, set by the first signal, with the number of that signal.
pub(super) struct StopFlag {
    flag: Arc<AtomicBool>,
    first: Arc<AtomicI32>,
}

impl StopFlag {
    /// Installs the signal handlers.
    pub(super) fn install() -> anyhow::Result<Self> {
        let stop = Self { flag: Arc::default(), first: Arc::default() };
        let (flag, first) = (stop.flag.clone(), stop.first.clone());
        signals::on_stop(move |signal| {
            // Before the flag, so that whoever sees the flag knows the signal.
            let _ = first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
            let stopping = flag.swap(true, Ordering::SeqCst);
            // A second Ctrl-C ends the sweep at once. Other signals may be sent twice by the system: a closed terminal
            // sends SIGHUP to the shell and to its jobs.
            if stopping && signal == signals::INTERRUPT {
                std::process::exit(signals::exit_status(signal).into());
            }
        })
        .context("cannot install the signal handlers")?;
        Ok(stop)
    }

    /// Flag that is true after the first signal.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Prints that `finished` of `cells` cells are saved in `out`, and returns the exit status of the first signal.
    /// `forced`: whether the command has `--force`.
    pub(super) fn interrupted(
        &self,
        finished: usize,
        cells: usize,
        out: &Path,
        forced: bool,
    ) -> ExitCode {
        let signal = match self.first.load(Ordering::SeqCst) {
            0 => signals::INTERRUPT,
            first => first,
        };
        let (signal_name, out) = (signals::name(signal), out.display());
        if forced {
            complain(&format!(
                "interrupted by {signal_name}: {finished} of {cells} cells have a record in {out}. Cells that this run \
                 did not reach keep the record of an earlier run. The same command starts all cells again; to run only \
                 cells without a record, leave out --force"
            ));
        } else {
            complain(&format!(
                "interrupted by {signal_name}: {finished} of {cells} cells are finished and saved in {out}; run the same \
                 command to resume"
            ));
        }
        ExitCode::from(signals::exit_status(signal))
    }
}
