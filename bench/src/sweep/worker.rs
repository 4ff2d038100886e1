//! One cell in a process of its own: an order on its standard input, answers on its output.

use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use reports::{GridPoint, RunRecord};
use serde::{Deserialize, Serialize};
use tasks::TaskConfig;

use super::{Budget, SweepError};
use crate::cell::{Cell, EvalConfig, TrainConfig};
use crate::model::ModelConfig;
use crate::runner::{self, Progress, RunContext};

/// A cell and where it runs, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkOrder {
    context: RunContext,
    workload: String,
    name: String,
    /// The canonical text.
    encoding: String,
    task: TaskConfig,
    model: ModelConfig,
    train: TrainConfig,
    eval: EvalConfig,
    grid: Option<GridPoint>,
    budget: Budget,
    seed: u64,
    backend: String,
    engine: Engine,
}

impl WorkOrder {
    /// The order for a cell.
    pub fn of(cell: &Cell<Combination>, context: &RunContext) -> Self {
        Self {
            context: context.clone(),
            workload: cell.workload.clone(),
            name: cell.name.clone(),
            encoding: cell.encoding.to_string(),
            task: cell.task.clone(),
            model: cell.model.clone(),
            train: cell.train.clone(),
            eval: cell.eval.clone(),
            grid: cell.grid.clone(),
            budget: cell.budget,
            seed: cell.seed,
            backend: cell.backend.clone(),
            engine: cell.engine,
        }
    }

    fn cell(self) -> Result<(Cell<Combination>, RunContext), String> {
        let encoding = Combination::parse(&self.encoding).map_err(|error| error.to_string())?;
        let cell = Cell {
            workload: self.workload,
            name: self.name,
            encoding,
            task: self.task,
            model: self.model,
            train: self.train,
            eval: self.eval,
            grid: self.grid,
            budget: self.budget,
            seed: self.seed,
            backend: self.backend,
            engine: self.engine,
        };
        Ok((cell, self.context))
    }
}

/// What a worker says, one JSON value a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// How far it is.
    Progress(Progress),
    /// It is done.
    Record(Box<RunRecord>),
    /// It ended without a record.
    Broke(String),
}

/// Starts a worker, hears it to its end, and says so if it ended without a record.
pub(super) fn run(
    order: &WorkOrder,
    stop: &AtomicBool,
    heard: &mut dyn FnMut(Answer),
) -> Result<(), SweepError> {
    let program = std::env::current_exe().map_err(SweepError::Spawn)?;
    let mut child = Command::new(program)
        .arg("worker")
        .env("RAYON_NUM_THREADS", order.context.threads.to_string())
        // Freed buffers are asked for again within the step: giving them back costs page faults.
        .env("MIMALLOC_PURGE_DELAY", "-1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(SweepError::Spawn)?;
    let mut ended = false;
    let said = listen(&mut child, order, stop, &mut |answer| {
        ended |= !matches!(answer, Answer::Progress(_));
        heard(answer);
    });
    if stop.load(Ordering::SeqCst) {
        // An interrupted cell leaves no record: the next sweep runs it again.
        let _ = child.kill();
    }
    let status = child.wait().map_err(SweepError::Spawn)?;
    // Ctrl-C reaches the worker too, perhaps before this process has heard of it.
    let interrupted = stop.load(Ordering::SeqCst) || signal(status) == Some(SIGINT);
    if !ended && !interrupted {
        heard(Answer::Broke(broke(status, &said)));
    }
    Ok(())
}

/// Hands over the order and passes answers on; returns what the worker said on standard error.
fn listen(
    child: &mut Child,
    order: &WorkOrder,
    stop: &AtomicBool,
    heard: &mut dyn FnMut(Answer),
) -> String {
    let stderr = child.stderr.take();
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    });
    if let (Some(mut stdin), Ok(text)) = (child.stdin.take(), serde_json::to_string(order)) {
        // A worker that died at once is seen by its missing record.
        let _ = stdin.write_all(text.as_bytes());
    }
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            let Ok(line) = line else { break };
            if let Ok(answer) = serde_json::from_str(&line) {
                heard(answer);
            }
        }
    }
    if stop.load(Ordering::SeqCst) {
        let _ = child.kill();
    }
    complaints.join().unwrap_or_default()
}

fn broke(status: ExitStatus, said: &str) -> String {
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
    let memory = if signal(status) == Some(9) {
        "; signal 9 is often the system out of memory: use fewer --jobs or a smaller batch"
    } else {
        ""
    };
    format!("the worker process ended with {status}{memory} {last}").trim_end().to_owned()
}

const SIGINT: i32 = 2;

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// The worker's side: reads one order from `input`, runs it, answers on `output`.
///
/// # Errors
/// The reason, if there is no order to run or nobody to answer to.
pub fn serve(input: impl Read, mut output: impl Write) -> Result<(), String> {
    let order: WorkOrder = serde_json::from_reader(input).map_err(|error| {
        format!("worker: {error}; `worker` is how `run` starts cells, use `pe-bench run SUITE`")
    })?;
    let (cell, context) = order.cell()?;
    let task = cell.task.build().map_err(|error| error.to_string())?;
    let mut last = std::time::Instant::now();
    let mut say = |answer: &Answer| -> Result<(), String> {
        let line = serde_json::to_string(answer).map_err(|error| error.to_string())?;
        writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| error.to_string())
    };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        runner::run(&cell, &*task, &context, &mut |progress| {
            if last.elapsed().as_millis() >= 200 {
                last = std::time::Instant::now();
                // A broken pipe ends the run at its record.
                let _ = say(&Answer::Progress(progress));
            }
        })
    }));
    match ran {
        Ok(record) => say(&Answer::Record(Box::new(record))),
        Err(panic) => say(&Answer::Broke(panic_text(&*panic))),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
}
