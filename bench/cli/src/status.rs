//! `pe-bench status`: what of a sweep is done, running, open and failed, and when it will be done.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::CELLS_OPEN;
use super::columns::{TerminalTable, width};
use super::conflict;
use super::folders;
use super::out::{complain, say};
use super::parsers::seconds;
use super::run::clock;
use sweep::{CellName, OpenCell, OverviewReader, SweepOverview};
use train::host;

/// Number of cells that a table lists; the rest are only counted.
const LISTED: usize = 20;

/// Arguments of `status`.
#[derive(Args, Clone)]
pub(super) struct StatusArgs {
    /// Results folder of a sweep.
    results: PathBuf,
    /// Print a line every few seconds until every cell has a record. If the sweep has not begun, wait for it.
    #[arg(long)]
    watch: bool,
    /// Seconds between lines of --watch.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds, requires = "watch")]
    every: f64,
    /// Print a JSON object; with --watch one per line.
    #[arg(long)]
    json: bool,
}

/// Prints the state of a sweep. The exit status is 4 while cells are open or running, and 1 if some failed.
pub(super) fn status(arguments: &StatusArgs) -> anyhow::Result<ExitCode> {
    let results = &arguments.results;
    anyhow::ensure!(
        arguments.watch || results.is_dir(),
        "{}: there is no such folder, expected a results folder of `pe-bench run`",
        results.display()
    );
    conflict::refuse_within(std::slice::from_ref(results))?;
    let mut reader = OverviewReader::new(results.clone(), analysis::folder::packed_only);
    let every = Duration::try_from_secs_f64(arguments.every).unwrap_or(Duration::MAX);
    // A folder that cannot be read for a moment does not end --watch.
    let mut read = || loop {
        match reader.read() {
            Err(error) if arguments.watch => complain(&error.to_string()),
            read => return read,
        }
        std::thread::sleep(every);
    };
    let mut overview = read()?;
    while arguments.watch && !(overview.suite.is_some() && overview.is_settled()) {
        if arguments.json {
            say(&json_form(&overview, arguments).to_string());
        } else {
            say(&format!("{}  {}", host::now_utc(), summary(&overview)));
        }
        std::thread::sleep(every);
        overview = read()?;
    }
    let known = overview.suite.is_some() || overview.cells > 0 || !overview.unreadable.is_empty();
    anyhow::ensure!(
        known,
        "{}: no records and no plan of a sweep, expected a results folder of `pe-bench run`{}",
        results.display(),
        folders::meant(std::slice::from_ref(results))
    );
    let form = json_form(&overview, arguments);
    match (arguments.json, arguments.watch) {
        (true, true) => say(&form.to_string()),
        (true, false) => say(&format!("{form:#}")),
        (false, _) => lines(&overview).iter().for_each(|line| say(line)),
    }
    Ok(if !overview.is_settled() {
        ExitCode::from(CELLS_OPEN)
    } else if overview.has_failures() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The overview as JSON, with the time when the sweep will be done.
fn json_form(overview: &SweepOverview, arguments: &StatusArgs) -> Value {
    let mut form = json!(overview);
    form["results"] = json!(arguments.results);
    form["time_utc"] = json!(host::now_utc());
    form["done_utc"] = json!(overview.seconds_left.and_then(end_utc));
    form
}

/// Time in UTC after some seconds from now, RFC 3339; `None` if it is out of range.
fn end_utc(seconds: f64) -> Option<String> {
    let after = SignedDuration::try_from_secs_f64(seconds.ceil()).ok()?;
    let end = Timestamp::from_second(Timestamp::now().as_second()).ok()?.checked_add(after).ok()?;
    Some(end.to_string())
}

/// State as a line: numbers of cells, and the time left.
fn summary(overview: &SweepOverview) -> String {
    let others = overview.ended.iter().filter(|(status, _)| **status != "done");
    let mut parts = vec![format!("{} of {} cells done", overview.done(), overview.cells)];
    parts.extend(others.map(|(status, count)| format!("{count} {status}")));
    for (count, what) in [
        (overview.unreadable.len(), "unreadable"),
        (overview.running.len(), "running"),
        (overview.open.len(), "open"),
        (overview.following, "to follow with fresh seeds"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    let text = parts.join(", ");
    if overview.suite.is_none() {
        return format!("{text}; no sweep has stored its plan in this folder");
    }
    if overview.is_settled() {
        return text;
    }
    match (overview.seconds_left, overview.running.is_empty()) {
        (Some(seconds), false) => {
            let left = clock(seconds);
            let end = end_utc(seconds).map_or(String::new(), |end| format!(", done at {end}"));
            format!("{text}; about {left} left{end}")
        }
        (None, false) => format!("{text}; the time left is not known yet"),
        (_, true) => format!("{text}; no process is running a cell"),
    }
}

/// State as text: the summary, then tables of running, unfinished and open cells.
fn lines(overview: &SweepOverview) -> Vec<String> {
    let suite = overview.suite.as_deref().map_or(String::new(), |suite| format!("{suite}: "));
    let mut lines = vec![format!("{suite}{}", summary(overview))];
    let running = overview.running.iter().map(|cell| {
        let steps = cell.steps.map_or("?".to_owned(), |steps| steps.to_string());
        let process = format!("process {} on {}", cell.pid, cell.host);
        let step = format!("step {} of {steps}", cell.step.unwrap_or(0));
        (&cell.cell, [step, process, format!("since {}", cell.since_utc)])
    });
    lines.extend(section("running", running));
    let unfinished = overview.unfinished.iter();
    let unfinished =
        unfinished.map(|cell| (&cell.cell, [cell.status.to_owned(), cell.reason.clone()]));
    lines.extend(section("without a result", unfinished));
    if !overview.unreadable.is_empty() {
        lines.extend([String::new(), "unreadable:".to_owned()]);
        lines.extend(overview.unreadable.iter().map(|message| format!("  {message}")));
    }
    let (begun, fresh): (Vec<_>, Vec<_>) =
        overview.open.iter().partition(|cell| cell.step.is_some() || cell.last_process.is_some());
    let more = |cell: &&OpenCell| {
        let step = cell
            .step
            .map_or("starts from step 0".to_owned(), |step| format!("resumes from step {step}"));
        let last = cell.last_process.as_ref();
        [step, last.map_or(String::new(), |process| format!("last run by {process}"))]
    };
    lines.extend(section(
        "started earlier, not running now",
        begun.iter().map(|cell| (&cell.cell, more(cell))),
    ));
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for OpenCell { cell, .. } in fresh {
        *counts.entry(&cell.workload).or_default().entry(&cell.encoding).or_default() += 1;
    }
    if !counts.is_empty() {
        lines.extend([String::new(), "number of open cells:".to_owned()]);
    }
    let rows = counts.into_iter().map(|(workload, encodings)| {
        let each = encodings.into_iter().map(|(encoding, count)| format!("{encoding} {count}"));
        vec![format!("  {workload}"), each.collect::<Vec<_>>().join(", ")]
    });
    lines.extend(TerminalTable { rows: rows.collect(), ..TerminalTable::default() }.lines(width()));
    lines
}

/// A titled table of cells and more about each; empty without cells.
fn section<'a, const N: usize>(
    title: &str,
    cells: impl Iterator<Item = (&'a CellName, [String; N])>,
) -> Vec<String> {
    let rows = cells.map(|(cell, more)| {
        let CellName { key, workload, encoding, seed } = cell;
        let seed = format!("seed {seed}");
        let own = [format!("  {key}"), workload.clone(), encoding.clone(), seed];
        own.into_iter().chain(more).collect()
    });
    let mut rows = rows.collect::<Vec<Vec<_>>>();
    if rows.is_empty() {
        return Vec::new();
    }
    let more = rows.len().saturating_sub(LISTED);
    rows.truncate(LISTED);
    let mut lines = vec![String::new(), format!("{title}:")];
    lines.extend(TerminalTable { rows, ..TerminalTable::default() }.lines(width()));
    lines.extend((more > 0).then(|| format!("  and {more} more; --json lists all")));
    lines
}
