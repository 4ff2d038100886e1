//! The worker's side: one cell in a process of its own, which ends with the sweep that ordered it.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::order::{Answer, STOP, WorkOrder};
use crate::checkpoint::{Folder, Keeper};
use crate::runner::{self, Care, News};
use crate::signals;

/// Progress is said this often at most.
const BETWEEN_NEWS: Duration = Duration::from_millis(200);

/// Exit status of a worker whose sweep is gone and that did not stop in time.
const ORPHANED: i32 = 3;

/// A worker whose sweep is gone gets this long for its step and a last checkpoint.
const ORPHAN_GRACE: Duration = Duration::from_secs(30);

/// Reads one order from `input`, runs it, answers on `output`. When `input` ends, the worker writes a checkpoint after
/// its step and ends, too: it must not outlive its sweep, whose claim on the cell lapses.
///
/// # Errors
/// The reason, if there is no order to run or nobody to answer to.
pub fn serve(
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<(), String> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| format!("worker: {error}"))?;
    let order: WorkOrder = serde_json::from_str(&line).map_err(|error| {
        format!("worker: {error}; `worker` is how `run` starts cells, use `pe-bench run SUITE`")
    })?;
    let stop = Arc::new(AtomicBool::new(false));
    // A terminal or a batch system may signal the whole group of processes.
    let heard = stop.clone();
    signals::on_stop(move |_| heard.store(true, Ordering::SeqCst))
        .map_err(|error| format!("worker: no handler for signals can be installed: {error}"))?;
    let told = stop.clone();
    let listen = move || {
        for line in input.lines().map_while(Result::ok) {
            told.fetch_or(line == STOP, Ordering::SeqCst);
        }
        told.store(true, Ordering::SeqCst);
        std::thread::sleep(ORPHAN_GRACE);
        std::process::exit(ORPHANED);
    };
    std::thread::Builder::new()
        .spawn(listen)
        .map_err(|error| format!("worker: no thread can be started: {error}"))?;
    let cell = order.cell()?;
    let task = cell.task.build().map_err(|error| error.to_string())?;
    let mut say = |answer: &Answer| -> Result<(), String> {
        let line = serde_json::to_string(answer).map_err(|error| error.to_string())?;
        writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| error.to_string())
    };
    let key = cell.key(&*task);
    if key != order.key {
        return say(&Answer::Changed { key });
    }
    let mut last = Instant::now();
    let mut news = |news: News| {
        if matches!(news, News::Progress(_)) {
            if last.elapsed() < BETWEEN_NEWS {
                return;
            }
            last = Instant::now();
        }
        // A broken pipe ends the run at its record.
        let _ = say(&Answer::News(news));
    };
    let folder = Folder::new(&order.results, &key);
    let every = Duration::try_from_secs_f64(order.checkpoint_seconds).unwrap_or(Duration::MAX);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let care = Care::new(&mut news)
            .keeping(Keeper::new(folder, every))
            .within(order.budget.seconds)
            .until(&stop);
        runner::run_with(&cell, &*task, &order.context, care)
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
