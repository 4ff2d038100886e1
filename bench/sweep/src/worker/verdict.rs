//! Why a worker ended without a record.

use std::process::ExitStatus;

use records::Status;

use super::WorkerEnd;
use crate::memory::{self, SystemKills};
use crate::process;
use crate::watchdog::Watchdog;

/// Classifies the end of a worker that exited without a record.
pub(super) fn verdict(
    status: ExitStatus,
    broke: Option<String>,
    said: &str,
    watchdog: &Watchdog<'_>,
    kills: &SystemKills,
) -> WorkerEnd {
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    let text = broke.unwrap_or_else(|| format!("the worker process ended with {status}; {last}"));
    let text = text.trim_end_matches("; ").to_owned();
    let peak = memory::text(watchdog.most_bytes);
    if signal(status) == Some(SIGKILL) && kills.happened_since() {
        return WorkerEnd::Status(Status::OutOfMemory {
            reason: format!(
                "the system ran out of memory and killed the worker{peak}; use fewer --jobs or a smaller batch"
            ),
        });
    }
    let lower = format!("{text} {said}").to_ascii_lowercase();
    if lower.contains("memory allocation of") || lower.contains("out of memory") {
        return WorkerEnd::Status(Status::OutOfMemory { reason: format!("{text}{peak}") });
    }
    match process::killed(status) {
        Some(killed) => {
            let said = if last.is_empty() { String::new() } else { format!("; {last}") };
            WorkerEnd::Died { reason: format!("its worker {killed}{peak}{said}") }
        }
        None => WorkerEnd::Status(Status::Failed { reason: text }),
    }
}

/// Number of the signal that ends a process at once.
pub(super) const SIGKILL: i32 = 9;

/// Whether a signal is a request to end from a terminal or a batch system: SIGHUP, SIGINT or SIGTERM.
pub(super) fn asks_to_end(signal: i32) -> bool {
    matches!(signal, 1 | 2 | 15)
}

pub(super) fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}
