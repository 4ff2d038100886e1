//! Worker processes of a sweep: starts one, reads its events, runs its watchdog and returns how it ended.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use reports::{RunRecord, Status};

use super::claim::Claim;
use super::memory::SystemKills;
use super::protocol::{WorkerReply, WorkerRequest};
use super::watchdog::{KillReason, Watchdog};
use super::{SweepError, memory};
use crate::process;
use crate::signals;
use train::run::RunEvent;

/// Time between checks of a worker's memory and time.
const TICK: Duration = Duration::from_millis(50);

/// Wait after a worker was killed: a system that kills all processes of a sweep one by one kills the sweep in this time,
/// before it records the cell as failed.
const SETTLE: Duration = Duration::from_secs(1);

/// Number of characters shown of a line that is no reply.
const SHOWN: usize = 80;

/// End of a worker.
#[derive(Debug)]
pub(super) enum WorkerEnd {
    /// The worker returned a record.
    Record(Box<RunRecord>),
    /// The worker ended without a record; the cell gets this status.
    Status(Status),
    /// The worker died by a signal, from outside or by a crash; the cell may be tried again.
    Died {
        /// The signal, and the most memory that the worker took.
        reason: String,
    },
    /// The key of the cell has changed, because its data have changed since the sweep began.
    Changed {
        /// The cell's key now.
        key: String,
    },
    /// The sweep or the worker was stopped; the cell is resumed by the next sweep.
    Interrupted,
    /// Another sweep has taken over the cell.
    Lost,
}

/// Runs a cell in a worker process and calls `heard` with its events. `arguments` are those of the program, and
/// `environment` is a variable of this worker.
pub(super) fn run(
    request: &WorkerRequest,
    (arguments, environment): (&[OsString], Option<(&str, &str)>),
    stop: &AtomicBool,
    claim: &Claim,
    heard: &mut dyn FnMut(RunEvent),
) -> Result<WorkerEnd, SweepError> {
    let request_line = serde_json::to_string(request).map_err(SweepError::Request)?;
    let kills = SystemKills::now();
    let mut child = process::again(request.context.threads)
        .map_err(SweepError::Spawn)?
        .args(arguments)
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(SweepError::Spawn)?;
    let complaints = complaints(&mut child).map_err(SweepError::Spawn)?;
    let answers = answers(&mut child).map_err(SweepError::Spawn)?;
    let mut stdin = hand_over(&mut child, &request_line);
    let mut watchdog = Watchdog::new(request.budget, stop, claim);
    let mut unreadable = None;
    let last = loop {
        match answers.recv_timeout(TICK) {
            Ok(Ok(WorkerReply::Event(event))) => {
                watchdog.hear(&event);
                heard(event);
            }
            Ok(Ok(reply)) => break Some(reply),
            // One of them is enough to find the cause.
            Ok(Err(text)) if unreadable.is_none() => {
                heard(RunEvent::Trouble(text.clone()));
                unreadable = Some(text);
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break None,
        }
        watchdog.check(&mut child, &mut stdin);
    };
    // A worker that has sent its last reply exits when its input is closed.
    drop(stdin);
    let status = child.wait().map_err(SweepError::Spawn)?;
    let said = complaints.join().unwrap_or_else(|_| "its standard error is lost".to_owned());
    let stopping = stop.load(Ordering::SeqCst);
    Ok(match (last, &watchdog.killed) {
        (_, Some(KillReason::Claim)) => WorkerEnd::Lost,
        (Some(WorkerReply::Record(record)), _) if record.status == Status::Interrupted => {
            WorkerEnd::Interrupted
        }
        (Some(WorkerReply::Record(record)), _) => WorkerEnd::Record(record),
        (_, Some(KillReason::Stop)) => WorkerEnd::Interrupted,
        (_, Some(KillReason::Limit(status))) => WorkerEnd::Status(status.clone()),
        (Some(WorkerReply::Changed { key }), None) => WorkerEnd::Changed { key },
        (_, None) if stopping || signal(status).is_some_and(asks_to_end) => WorkerEnd::Interrupted,
        (last, None) => {
            if signal(status) == Some(SIGKILL) {
                std::thread::sleep(SETTLE);
            }
            let broke = match last {
                Some(WorkerReply::Broke(reason)) => Some(reason),
                _ if status.success() => unreadable,
                _ => None,
            };
            verdict(status, broke, &said, &watchdog, &kills)
        }
    })
}

/// Collects the standard error of the worker.
fn complaints(child: &mut Child) -> io::Result<std::thread::JoinHandle<String>> {
    let stderr = child.stderr.take();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let read = stderr.map_or(Ok(0), |mut stderr| stderr.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match read {
            Ok(_) => text,
            Err(error) => format!("{text}\nits standard error cannot be read: {error}"),
        }
    })
}

/// Replies of the worker on its standard output, or the message about a line that is none.
fn answers(child: &mut Child) -> io::Result<Receiver<Result<WorkerReply, String>>> {
    let (sender, receiver) = channel();
    let stdout = child.stdout.take();
    std::thread::Builder::new().spawn(move || {
        let mut lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).split(b'\n'));
        let mut is_open = true;
        while let Some(line) = lines.next().filter(|_| is_open) {
            is_open = line.is_ok() && sender.send(reply_of(line)).is_ok();
        }
    })?;
    Ok(receiver)
}

/// Reply in a line of a worker's standard output.
///
/// # Errors
/// Message, if the line cannot be read or is no reply, such as one that an encoding printed.
fn reply_of(line: io::Result<Vec<u8>>) -> Result<WorkerReply, String> {
    let line = line.map_err(|error| format!("the worker's replies cannot be read: {error}"))?;
    serde_json::from_slice(&line).map_err(|error| {
        let text = String::from_utf8_lossy(&line);
        let start = text.chars().take(SHOWN).collect::<String>();
        format!("the worker printed a line that is no reply ({error}): {start}")
    })
}

/// Writes the request and returns the input, which must stay open: its end stops the worker. `None` if the worker does not
/// take the request; its input is closed then, so that it ends.
fn hand_over(child: &mut Child, request: &str) -> Option<ChildStdin> {
    let mut stdin = child.stdin.take()?;
    writeln!(stdin, "{request}").and_then(|()| stdin.flush()).ok().map(|()| stdin)
}

/// Classifies the end of a worker that exited without a record.
fn verdict(
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
                "the system ran out of memory and killed it{peak}; use fewer --jobs or a smaller batch"
            ),
        });
    }
    let lower = format!("{text} {said}").to_ascii_lowercase();
    if lower.contains("memory allocation of") || lower.contains("out of memory") {
        return WorkerEnd::Status(Status::OutOfMemory { reason: format!("{text}{peak}") });
    }
    match signal(status) {
        Some(signal) => {
            let name = signals::name(signal);
            let said = if last.is_empty() { String::new() } else { format!("; {last}") };
            WorkerEnd::Died {
                reason: format!("its worker was killed by {name} (signal {signal}){peak}{said}"),
            }
        }
        None => WorkerEnd::Status(Status::Failed { reason: text }),
    }
}

const SIGKILL: i32 = 9;

/// Whether a signal is a request to end from a terminal or a batch system: SIGHUP, SIGINT or SIGTERM.
fn asks_to_end(signal: i32) -> bool {
    matches!(signal, 1 | 2 | 15)
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i32> {
    None
}
