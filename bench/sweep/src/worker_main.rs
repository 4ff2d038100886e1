//! Main function of a worker process, which runs one cell and ends with the sweep that started it.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::protocol::{STOP, WorkerReply, WorkerRequest};
use crate::process;
use crate::signals;
use train::experiment::{Experiment, as_configured};
use train::run::checkpoint::{CheckpointFolder, Checkpointer};
use train::run::{self, RunEvent, RunHooks, RunPlan};

/// Minimum time between progress messages.
const BETWEEN_EVENTS: Duration = Duration::from_millis(200);

/// Time for the last step and checkpoint of a worker whose sweep has ended.
const ORPHAN_GRACE: Duration = Duration::from_secs(30);

/// Runs the experiment that a sweep requests on `input`; see [`serve`].
///
/// # Errors
/// As [`serve`].
pub fn worker_main(input: impl BufRead + Send + 'static, output: impl Write) -> Result<(), String> {
    serve(input, output, |request, execute| {
        let (experiment, task) =
            as_configured(&request.record).map_err(|error| error.to_string())?;
        let experiment = Experiment { budget: request.budget, ..experiment };
        execute(run::plan(&experiment, &*task, &request.context))
    })
}

/// Reads one request from `input`, calls `work` to plan and execute it, and writes events and the record to `output`.
/// When `input` ends, the worker writes a checkpoint after the current step and ends: it must not outlive its sweep,
/// whose claim on the cell expires.
///
/// # Errors
/// Message, if the request is invalid, the plan cannot be built or `output` cannot be written.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
    work: impl FnOnce(
        &WorkerRequest,
        &mut dyn FnMut(RunPlan<'_>) -> Result<(), String>,
    ) -> Result<(), String>,
) -> Result<(), String> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| format!("worker: {error}"))?;
    let request: WorkerRequest = serde_json::from_str(&line).map_err(|error| {
        format!("worker: {error}; workers are started by `pe-bench run SUITE`, which should be used instead")
    })?;
    if let Some(devices) = &request.devices {
        devices.take().map_err(|error| format!("worker: {error}"))?;
    }
    process::compute_on_this_thread(request.context.threads);
    let stop = Arc::new(AtomicBool::new(false));
    // A terminal or a batch system may signal the whole group of processes.
    let on_signal = stop.clone();
    signals::on_stop(move |_| on_signal.store(true, Ordering::SeqCst))
        .map_err(|error| format!("worker: cannot install the signal handlers: {error}"))?;
    let on_line = stop.clone();
    let listen = move || {
        for line in input.lines().map_while(Result::ok) {
            on_line.fetch_or(line == STOP, Ordering::SeqCst);
        }
        on_line.store(true, Ordering::SeqCst);
        std::thread::sleep(ORPHAN_GRACE);
        std::process::exit(process::ORPHANED);
    };
    std::thread::Builder::new()
        .spawn(listen)
        .map_err(|error| format!("worker: cannot start a thread: {error}"))?;
    let mut reply = |reply: &WorkerReply| -> Result<(), String> {
        let line = serde_json::to_string(reply).map_err(|error| error.to_string())?;
        writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| error.to_string())
    };
    let mut execute = |plan: RunPlan<'_>| {
        if plan.record.key != request.record.key {
            return reply(&WorkerReply::Changed { key: plan.record.key });
        }
        match guarded(plan, &request, &stop, &mut reply) {
            Ok(record) => reply(&WorkerReply::Record(Box::new(record))),
            Err(reason) => reply(&WorkerReply::Broke(reason)),
        }
    };
    work(&request, &mut execute)
}

/// Runs a plan and turns a panic into an error message.
fn guarded(
    plan: RunPlan<'_>,
    request: &WorkerRequest,
    stop: &AtomicBool,
    reply: &mut dyn FnMut(&WorkerReply) -> Result<(), String>,
) -> Result<reports::RunRecord, String> {
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
        let hooks = RunHooks::new(&mut on_event)
            .with_checkpoints(Checkpointer::new(folder, every))
            .with_weights(request.weights.clone())
            .across(request.data_parallel, request.context.threads)
            .within(request.budget.seconds)
            .until(stop);
        run::execute(plan, hooks)
    }));
    if let Some(error) = unheard {
        return Err(format!("an event cannot be sent: {error}"));
    }
    ran.map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
    })
}
