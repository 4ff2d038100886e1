//! Watchdog of a worker: memory, time, claim and requests to stop.

use std::io::Write;
use std::process::{Child, ChildStdin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use records::Status;

use super::claim::Claim;
use super::protocol::STOP;
use train::experiment::budget::{Budget, bytes_text};
use train::host;
use train::run::RunEvent;

/// Time that a worker gets for its last step and checkpoint when it is asked to stop, in addition to twice the longest
/// silence between its events.
const GRACE: Duration = Duration::from_secs(10);

/// Reason why a sweep killed a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KillReason {
    /// The sweep is being stopped, and the worker did not stop.
    Stop,
    /// Another sweep has taken over the cell.
    Claim,
    /// The worker exceeded its memory budget, or its time limit and did not stop; the cell gets this status.
    Limit(Status),
}

/// Watchdog of one worker: its memory, time and claim, and the request to stop.
#[derive(Debug)]
pub(super) struct Watchdog<'a> {
    budget: Budget,
    stop: &'a AtomicBool,
    claim: &'a Claim,
    start: Instant,
    heard: Instant,
    longest_silence: Duration,
    /// Seconds that the cell took in earlier attempts.
    before_seconds: f64,
    asked_to_stop: Option<Instant>,
    /// Peak memory observed; `None` if unknown.
    pub(super) most_bytes: Option<u64>,
    /// Reason why the worker was killed; `None` if it was not.
    pub(super) killed: Option<KillReason>,
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(budget: Budget, stop: &'a AtomicBool, claim: &'a Claim) -> Self {
        Self {
            budget,
            stop,
            claim,
            start: Instant::now(),
            heard: Instant::now(),
            longest_silence: Duration::ZERO,
            before_seconds: 0.0,
            asked_to_stop: None,
            most_bytes: None,
            killed: None,
        }
    }

    /// Records that the worker sent an event.
    pub(super) fn hear(&mut self, event: &RunEvent) {
        self.longest_silence = self.longest_silence.max(self.heard.elapsed());
        self.heard = Instant::now();
        if let RunEvent::Resumed { cell_seconds, .. } = event {
            self.before_seconds = *cell_seconds;
        }
    }

    /// Checks the worker, and asks it to stop or kills it if necessary.
    pub(super) fn check(&mut self, child: &mut Child, stdin: &mut Option<ChildStdin>) {
        if self.killed.is_some() {
            return;
        }
        if self.stop.load(Ordering::SeqCst) && self.asked_to_stop.is_none() {
            self.asked_to_stop = Some(Instant::now());
            let asked =
                stdin.as_mut().map(|stdin| writeln!(stdin, "{STOP}").and_then(|()| stdin.flush()));
            if asked.is_some_and(|asked| asked.is_err()) {
                // The end of its input asks the worker for the same.
                *stdin = None;
            }
        }
        if let Some(bytes) = host::resident_bytes(child.id()) {
            self.most_bytes = self.most_bytes.max(Some(bytes));
        }
        self.killed = self.reason_to_kill();
        if self.killed.is_some() {
            // Fails only if the worker has already ended.
            let _ = child.kill();
        }
    }

    fn reason_to_kill(&self) -> Option<KillReason> {
        if self.claim.is_lost() {
            return Some(KillReason::Claim);
        }
        let grace = GRACE + self.longest_silence * 2;
        if self.asked_to_stop.is_some_and(|asked| asked.elapsed() > grace) {
            return Some(KillReason::Stop);
        }
        if let (Some(limit), Some(bytes)) = (self.budget.memory_bytes, self.most_bytes)
            && bytes > limit
        {
            let (limit, bytes) = (bytes_text(limit), bytes_text(bytes));
            let reason = format!("the cell used {bytes}, but its budget is {limit}");
            return Some(KillReason::Limit(Status::OutOfMemory { reason }));
        }
        let seconds = self.before_seconds + self.start.elapsed().as_secs_f64();
        match self.budget.seconds {
            Some(limit) if seconds > limit + grace.as_secs_f64() => {
                let reason = format!(
                    "its budget is {limit} s; the cell did not end by itself and was killed after {seconds:.0} s"
                );
                Some(KillReason::Limit(Status::TimedOut { reason }))
            }
            _ => None,
        }
    }
}
