//! Worker processes. A sweep starts one for each cell with [`run`], which reads its events, runs its watchdog and returns how
//! it ended; the process itself executes [`worker_main`], which ends with the sweep that started it.

mod pipes;
mod verdict;

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use records::{RunRecord, Status};

use super::claim::Claim;
use super::memory::SystemKills;
use super::process;
use super::protocol::{STOP, WorkerReply, WorkerRequest};
use super::signals;
use super::watchdog::{KillReason, Watchdog};
use pipes::{answers, complaints, hand_over};
use train::experiment::{Experiment, as_configured};
use train::run::checkpoint::{CheckpointFolder, Checkpointer};
use train::run::{self as runner, RunEvent, RunHooks, RunPlan};
use verdict::{SIGKILL, asks_to_end, signal, verdict};

/// Time between checks of a worker's memory and time.
const TICK: Duration = Duration::from_millis(50);

/// Wait after a worker was killed: a system that kills all processes of a sweep one by one kills the sweep in this time,
/// before it records the cell as failed.
const SETTLE: Duration = Duration::from_secs(1);

/// Minimum time between progress messages.
const BETWEEN_EVENTS: Duration = Duration::from_millis(200);

/// Time for the last step and checkpoint of a worker whose sweep has ended.
const ORPHAN_GRACE: Duration = Duration::from_secs(30);

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

/// How this program is started for a cell.
pub(super) struct WorkerCommand<'a> {
    pub(super) arguments: Vec<OsString>,
    /// Environment variable of the worker, with its value.
    pub(super) environment: Option<(&'a str, &'a str)>,
}

const SPAWN: &str = "cannot start a worker process; check that the program file still exists, and the limits of processes, \
                     open files and memory";

/// Runs a cell in a worker process and calls `heard` with its events.
pub(super) fn run(
    request: &WorkerRequest,
    command: &WorkerCommand<'_>,
    stop: &AtomicBool,
    claim: &Claim,
    heard: &mut dyn FnMut(RunEvent),
) -> Result<WorkerEnd> {
    let request_line = serde_json::to_string(request).context(
        "the request to a worker cannot be written as JSON; use a results folder whose path is UTF-8",
    )?;
    let kills = SystemKills::now();
    let mut child = process::again(request.context.threads)
        .context(SPAWN)?
        .args(&command.arguments)
        .envs(command.environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(SPAWN)?;
    let complaints = complaints(&mut child).context(SPAWN)?;
    let answers = answers(&mut child).context(SPAWN)?;
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
    let status = child.wait().context(SPAWN)?;
    let said =
        complaints.join().unwrap_or_else(|_| "the worker's standard error is lost".to_owned());
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

/// Runs the experiment that a sweep requests on `input`; see [`serve`].
///
/// # Errors
/// As [`serve`].
pub fn worker_main(input: impl BufRead + Send + 'static, output: impl Write) -> Result<()> {
    serve(input, output, |request, execute| {
        let (experiment, task) = as_configured(&request.record)?;
        let experiment = Experiment { budget: request.budget, ..experiment };
        execute(runner::plan(&experiment, &*task, &request.context))
    })
}

/// Reads one request from `input`, calls `work` to plan and execute it, and writes events and the record to `output`.
/// When `input` ends, the worker writes a checkpoint after the current step and ends: it must not outlive its sweep,
/// whose claim on the cell expires.
///
/// # Errors
/// If the request is invalid, the plan cannot be built or `output` cannot be written.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
    work: impl FnOnce(&WorkerRequest, &mut dyn FnMut(RunPlan<'_>) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let request: WorkerRequest = serde_json::from_str(&line).map_err(|error| {
        anyhow!("worker: {error}; use `pe-bench run SUITE` instead, which starts workers")
    })?;
    if let Some(devices) = &request.devices {
        devices.take()?;
    }
    process::compute_on_this_thread(request.context.threads).context("worker")?;
    let stop = Arc::new(AtomicBool::new(false));
    // A terminal or a batch system may signal the whole group of processes.
    let on_signal = stop.clone();
    signals::on_stop(move |_| on_signal.store(true, Ordering::SeqCst))
        .context("worker: cannot install the signal handlers")?;
    let on_line = stop.clone();
    let listen = move || {
        for line in input.lines().map_while(Result::ok) {
            on_line.fetch_or(line == STOP, Ordering::SeqCst);
        }
        on_line.store(true, Ordering::SeqCst);
        std::thread::sleep(ORPHAN_GRACE);
        std::process::exit(process::ORPHANED);
    };
    std::thread::Builder::new().spawn(listen).context("worker: cannot start a thread")?;
    let mut reply = |reply: &WorkerReply| {
        writeln!(output, "{}", serde_json::to_string(reply)?)?;
        Ok(output.flush()?)
    };
    let mut execute = |plan: RunPlan<'_>| {
        if plan.record.key != request.record.key {
            return reply(&WorkerReply::Changed { key: plan.record.key });
        }
        match guarded(plan, &request, &stop, &mut reply) {
            Ok(record) => reply(&WorkerReply::Record(Box::new(record))),
            Err(reason) => reply(&WorkerReply::Broke(reason.to_string())),
        }
    };
    work(&request, &mut execute)
}

/// Runs a plan and turns a panic into an error message.
fn guarded(
    plan: RunPlan<'_>,
    request: &WorkerRequest,
    stop: &AtomicBool,
    reply: &mut dyn FnMut(&WorkerReply) -> Result<()>,
) -> Result<RunRecord> {
    let mut last = Instant::now();
    let mut unheard = None;
    let mut on_event = |event: RunEvent| {
        if matches!(event, RunEvent::Progress(_)) {
            if last.elapsed() < BETWEEN_EVENTS {
                return;
            }
            last = Instant::now();
        }
        if let Err(error) = reply(&WorkerReply::Event(event)) {
            // Nobody reads the record either.
            stop.store(true, Ordering::SeqCst);
            unheard.get_or_insert(error);
        }
    };
    let folder = CheckpointFolder::new(&request.results, &request.record.key);
    let every = Duration::try_from_secs_f64(request.checkpoint_seconds).unwrap_or(Duration::MAX);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut hooks = RunHooks::new(&mut on_event);
        hooks.checkpointer = Some(Checkpointer::new(folder, every));
        hooks.weights = request.weights.clone();
        hooks.devices = request.data_parallel;
        hooks.threads = request.context.threads;
        hooks.seconds = request.budget.seconds;
        hooks.stop = Some(stop);
        runner::execute(plan, hooks)
    }));
    if let Some(error) = unheard {
        bail!("an event cannot be sent: {error}");
    }
    ran.map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        anyhow!("panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
    })
}
