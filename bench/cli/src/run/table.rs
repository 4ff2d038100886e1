//! Live table of a sweep and its progress bar with the remaining time.

use std::time::{Duration, Instant};

use console::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use records::{EvalPoint, GridPoint, RunRecord, Status};

use super::forecast::Forecast;
use crate::columns::{cut, width};
use crate::out::{Printable, counted, print};
use sweep::{CellEvent, CellFile, PlannedCell, SweepEvent, SweepOptions, SweepPlan};
use train::run::RunEvent;

const BAR_STEPS: u64 = 1000;

/// Characters of a row besides those of workload and encoding, and those for its loss.
const OTHERS: usize = 49;
const LOSS: usize = 9;

/// Live table with one line per finished cell, and a progress bar.
pub(super) struct ProgressTable<'a> {
    plan: &'a SweepPlan,
    /// Widths of the columns of workloads and encodings.
    widths: [usize; 2],
    /// Whether the terminal has room for the loss.
    has_loss: bool,
    bar: ProgressBar,
    start: Instant,
    forecast: Forecast,
    /// Number of cells with a record.
    ended: usize,
    /// Cells held by other processes.
    held: Vec<usize>,
}

/// Texts of a row.
#[derive(Default)]
struct TableRow<'a> {
    workload: &'a str,
    encoding: &'a str,
    seed: &'a str,
    /// Score on the training distribution and beyond it.
    inside: &'a str,
    beyond: &'a str,
    loss: &'a str,
    time: &'a str,
}

impl<'a> ProgressTable<'a> {
    pub(super) fn new(
        plan: &'a SweepPlan,
        statuses: &[CellFile],
        seconds: &[f64],
        options: &SweepOptions,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), ProgressDrawTarget::stderr());
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3}%  {prefix}\n{wide_msg}")
        {
            bar.set_style(style);
        }
        let finished = statuses.iter().filter_map(CellFile::kept).collect::<Vec<_>>();
        let kinds = plan.cells.iter().map(|planned| {
            let cell = &planned.cell;
            let grid = cell.grid.as_ref().map(|grid| grid.value);
            format!("{} {} {grid:?}", cell.workload, cell.name)
        });
        let jobs = options.jobs;
        let longest = |name: &dyn Fn(&PlannedCell) -> usize| plan.cells.iter().map(name).max();
        let workload = longest(&|planned| planned.workload_label().chars().count());
        let encoding = longest(&|planned| planned.cell.name.chars().count());
        let [workload, encoding] = [workload, encoding].map(|width| width.unwrap_or(0).max(8));
        let limit = width().filter(|_| !bar.is_hidden()).unwrap_or(usize::MAX);
        let has_loss = workload + encoding + OTHERS <= limit;
        let all = workload + encoding + OTHERS - if has_loss { 0 } else { LOSS };
        let workload = workload.saturating_sub(all.saturating_sub(limit)).max(8);
        let table = Self {
            plan,
            widths: [workload, encoding],
            has_loss,
            bar,
            start: Instant::now(),
            forecast: Forecast::new(kinds.zip(seconds.iter().copied()), jobs),
            ended: finished.len(),
            held: Vec::new(),
        };
        table.say(&format!(
            "{}, {} of them with a record from an earlier run; at most {jobs} run in parallel",
            counted(plan.cells.len(), "cell"),
            finished.len()
        ));
        if options.shard != sweep::Shard::WHOLE {
            let mine = plan.keys.iter().filter(|key| options.shard.has(key)).count();
            table.say(&format!("shard {}: {}", options.shard, counted(mine, "cell")));
        }
        table.say(&table.row(&TableRow {
            workload: "workload",
            encoding: "encoding",
            seed: "seed",
            inside: "as trained",
            beyond: "beyond",
            loss: "loss",
            time: "time",
        }));
        for record in finished {
            table.line(&table.result_row(record));
        }
        table.show();
        table
    }

    pub(super) fn event(&mut self, event: &SweepEvent) {
        let index = event.index;
        self.held.retain(|held| *held != index || matches!(event.what, CellEvent::Held { .. }));
        match &event.what {
            CellEvent::Run(RunEvent::Point(_) | RunEvent::Validated(_)) => {}
            CellEvent::Began { .. } => self.forecast.began(index),
            CellEvent::Run(RunEvent::Resumed { step, .. }) => {
                let steps = self.plan.cells[index].cell.train.steps;
                self.forecast.resumed(index, *step, steps);
                self.note(index, &format!("resumes after {step} of {steps} steps"), &Style::new());
            }
            CellEvent::Run(RunEvent::Progress(progress)) => {
                self.forecast.progress(index, *progress);
            }
            CellEvent::Run(RunEvent::Trouble(text)) => {
                self.note(index, text, &Style::new().yellow());
            }
            CellEvent::Held { by } => {
                if !self.held.contains(&index) {
                    self.held.push(index);
                }
                self.forecast.given_up(index);
                self.note(index, &format!("is run by {by}"), &Style::new().dim());
            }
            CellEvent::Ended(record) => {
                let took = (record.status == Status::Done).then(|| seconds_of(record));
                self.forecast.ended(index, took);
                self.ended += 1;
                self.line(&self.result_row(record));
            }
            CellEvent::PickedUp(record) => {
                self.forecast.given_up(index);
                self.ended += 1;
                self.line(&self.result_row(record));
            }
            CellEvent::Interrupted => {
                self.forecast.given_up(index);
                self.note(index, "interrupted; the next run resumes this cell", &Style::new());
            }
            CellEvent::Lost => {
                self.forecast.given_up(index);
                self.note(index, "taken over by another process", &Style::new().yellow());
            }
        }
        self.show();
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        self.bar.set_position((self.forecast.share() * BAR_STEPS as f64) as u64);
        let elapsed = self.start.elapsed().as_secs_f64();
        let (left, elapsed) = (clock(self.forecast.seconds_left(elapsed)), clock(elapsed));
        let running = (0..self.plan.cells.len())
            .filter_map(|index| Some((index, self.forecast.under_way(index)?)))
            .map(|(index, done)| {
                let planned = &self.plan.cells[index];
                let (workload, cell) = (planned.workload_label(), &planned.cell);
                format!("{workload} {}#{} {:.0}%", cell.name, cell.seed, done * 100.0)
            })
            .collect::<Vec<_>>()
            .join(", ");
        let held = match self.held.len() {
            0 => String::new(),
            held => format!(", {held} run by other processes"),
        };
        let (ended, all) = (self.ended, self.plan.cells.len());
        self.bar.set_prefix(format!("{elapsed}, {left} left, {ended}/{all} cells{held}"));
        self.bar.set_message(Printable::of(&running).as_str().to_owned());
    }

    /// Prints a message about a cell.
    fn note(&self, index: usize, text: &str, style: &Style) {
        let planned = &self.plan.cells[index];
        let (workload, seed) = (planned.workload_label(), planned.cell.seed.to_string());
        let line = self.row(&TableRow {
            workload: &workload,
            encoding: &planned.cell.name,
            seed: &seed,
            ..TableRow::default()
        });
        self.line(&Printable::of(&line).beside(&self.styled(text, style)));
    }

    fn result_row(&self, record: &RunRecord) -> Printable {
        let line = self.result(record);
        match &record.status {
            Status::Done => Printable::of(&line),
            Status::Diverged { .. } | Status::TimedOut { .. } | Status::Interrupted => {
                self.styled(&line, &Style::new().yellow())
            }
            Status::OutOfMemory { .. } | Status::Failed { .. } => {
                self.styled(&line, &Style::new().red())
            }
        }
    }

    fn row(&self, row: &TableRow) -> String {
        let TableRow { workload, encoding, seed, inside, beyond, loss, time } = row;
        let [first, second] = self.widths;
        let (workload, loss) = (cut(workload, first), format!("{loss:>7}  "));
        let loss = if self.has_loss { &*loss } else { "" };
        format!(
            "{workload:<first$} {encoding:<second$} {seed:>4}  {inside:>11}  {beyond:>11}  {loss}{time:>6}"
        )
        .trim_end()
        .to_owned()
    }

    fn result(&self, record: &RunRecord) -> String {
        let seed = record.seed.to_string();
        let time = clock(seconds_of(record));
        let loss = record.train.final_loss.map_or("–".to_owned(), |loss| format!("{loss:.3}"));
        let (inside, beyond) = match &record.status {
            Status::Done => (headline(record, true), headline(record, false)),
            other => (other.name().to_owned(), String::new()),
        };
        let workload = GridPoint::label(record.grid.as_ref(), &record.workload);
        let line = self.row(&TableRow {
            workload: &workload,
            encoding: &record.encoding.name,
            seed: &seed,
            inside: &inside,
            beyond: &beyond,
            loss: &loss,
            time: &time,
        });
        match record.status.reason() {
            reason if reason.is_empty() => line,
            reason => format!("{line}  {reason}"),
        }
    }

    /// Styles a text for a terminal; without effect if colours are off (NO_COLOR).
    fn styled(&self, text: &str, style: &Style) -> Printable {
        let style = style.clone();
        let style = if self.bar.is_hidden() { style.for_stdout() } else { style.for_stderr() };
        Printable::of(text).styled(&style)
    }

    fn say(&self, text: &str) {
        self.line(&Printable::of(text));
    }

    fn line(&self, line: &Printable) {
        if self.bar.is_hidden() { print(line) } else { self.bar.println(line.as_str()) }
    }
}

/// Seconds of training and evaluation.
pub(super) fn seconds_of(record: &RunRecord) -> f64 {
    record.train.seconds + record.evals.iter().map(|eval| eval.seconds).sum::<f64>()
}

/// Mean of the headline metric over the evaluations in the training distribution, or over all others.
pub(crate) fn headline(record: &RunRecord, in_distribution: bool) -> String {
    let perplexity = record.task.headline == "perplexity";
    let points = record.evals.iter().filter(|e| e.in_distribution == in_distribution);
    let values = points
        .map(|e: &EvalPoint| if perplexity { e.nll } else { e.exact_match })
        .collect::<Vec<_>>();
    if values.is_empty() {
        return "–".to_owned();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if perplexity { format!("ppl {:.2}", mean.exp()) } else { format!("{:.1}%", mean * 100.0) }
}

/// Formats a time in seconds as `M:SS`, `H:MM:SS` from one hour on, or `0.3 s` below a second. A forecast may exceed the longest duration, which
/// is shown instead.
pub(crate) fn clock(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 0.95 {
        return format!("{seconds:.1} s");
    }
    let seconds = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Label of a cell's encoding: that of its card, or its name in the suite.
pub(super) fn encoding_label(plan: &SweepPlan, index: usize) -> String {
    let cell = &plan.cells[index].cell;
    if cell.name == cell.encoding.id() {
        cell.encoding.card().label.clone()
    } else {
        cell.name.clone()
    }
}
