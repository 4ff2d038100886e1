//! What is shown while a sweep runs: a table that fills in, and a bar with the time left.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pe_zoo::EncodingConfig;
use reports::{EvalPoint, RunRecord, Status};

use crate::cli::out::say;
use crate::runner::Progress;
use crate::sweep::Plan;

/// Parts of a cell's time that its evaluation is taken for, beside its training.
const EVAL_SHARE: f64 = 0.1;
const BAR_STEPS: u64 = 1000;

/// The live display.
pub(super) struct Live<'a> {
    plan: &'a Plan,
    bar: ProgressBar,
    start: Instant,
    /// Share of each cell that is done, 0 to 1.
    done: Vec<f64>,
    /// Expected seconds of each cell; kept ones cost nothing.
    cost: Vec<f64>,
    ended: usize,
    jobs: usize,
}

impl<'a> Live<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        existing: &[Option<RunRecord>],
        seconds: &[f64],
        jobs: usize,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}") {
            bar.set_style(style);
        }
        let kept = existing.iter().flatten().count();
        let live = Self {
            plan,
            bar,
            start: Instant::now(),
            done: vec![0.0; plan.cells.len()],
            cost: seconds.to_vec(),
            ended: kept,
            jobs,
        };
        live.line(&format!(
            "{} cells, {kept} of them kept from before; {jobs} side by side",
            plan.cells.len()
        ));
        live.line(&row(["workload", "encoding", "seed", "in training", "beyond", "loss", "time"]));
        for record in existing.iter().flatten() {
            live.line(&result_row(record));
        }
        live.show();
        live
    }

    pub(super) fn progress(&mut self, index: usize, progress: Progress) {
        let share = |done: usize, of: usize| done as f64 / of.max(1) as f64;
        self.done[index] = match progress {
            Progress::Train { done, of, .. } => (1.0 - EVAL_SHARE) * share(done, of),
            Progress::Eval { done, of } => 1.0 - EVAL_SHARE + EVAL_SHARE * share(done, of),
        };
        self.show();
    }

    pub(super) fn ended(&mut self, index: usize, record: &RunRecord) {
        self.done[index] = 1.0;
        self.ended += 1;
        self.line(&result_row(record));
        self.show();
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        let total = self.cost.iter().sum::<f64>();
        let done = self.done.iter().zip(&self.cost).map(|(done, cost)| done * cost).sum::<f64>();
        let share = if total > 0.0 { done / total } else { 1.0 };
        self.bar.set_position((share * BAR_STEPS as f64) as u64);
        // Until there is something to go by, what the timed steps promise.
        let seconds = if share > 0.02 {
            self.start.elapsed().as_secs_f64() * (1.0 - share) / share
        } else {
            total * (1.0 - share) / self.jobs as f64
        };
        let left = clock(Duration::from_secs_f64(seconds));
        let running = self
            .plan
            .cells
            .iter()
            .zip(&self.done)
            .filter(|(_, done)| **done > 0.0 && **done < 1.0)
            .take(self.jobs)
            .map(|(planned, done)| {
                let cell = &planned.cell;
                format!("{} {} {:.0} %", cell.workload, cell.name, done * 100.0)
            })
            .collect::<Vec<_>>()
            .join(", ");
        self.bar.set_message(format!(
            "{left} left, {}/{} cells; {running}",
            self.ended,
            self.plan.cells.len()
        ));
    }

    fn line(&self, text: &str) {
        if self.bar.is_hidden() { say(text) } else { self.bar.println(text) }
    }
}

fn row(columns: [&str; 7]) -> String {
    let [workload, encoding, seed, inside, beyond, loss, time] = columns;
    format!(
        "{workload:<18} {encoding:<20} {seed:>4}  {inside:>11}  {beyond:>11}  {loss:>7}  {time:>6}"
    )
    .trim_end()
    .to_owned()
}

fn result_row(record: &RunRecord) -> String {
    let seed = record.seed.to_string();
    let seconds = record.train.seconds + record.evals.iter().map(|e| e.seconds).sum::<f64>();
    let time = clock(Duration::from_secs_f64(seconds));
    let loss = record.train.final_loss.map_or("–".to_owned(), |loss| format!("{loss:.3}"));
    let (inside, beyond) = match &record.status {
        Status::Done => (headline(record, true), headline(record, false)),
        other => (other.name().to_owned(), String::new()),
    };
    let line =
        row([&record.workload, &record.encoding.name, &seed, &inside, &beyond, &loss, &time]);
    match record.status.reason() {
        reason if reason.is_empty() => line,
        reason => format!("{line}  {reason}"),
    }
}

/// The mean of the headline metric over the points in, or beyond, the training distribution.
fn headline(record: &RunRecord, in_distribution: bool) -> String {
    let perplexity = record.task.headline == "perplexity";
    let points = record.evals.iter().filter(|e| e.in_distribution == in_distribution);
    let values = points
        .map(|e: &EvalPoint| if perplexity { e.nll } else { e.exact_match })
        .collect::<Vec<_>>();
    if values.is_empty() {
        return "–".to_owned();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if perplexity { format!("ppl {:.2}", mean.exp()) } else { format!("{:.1} %", mean * 100.0) }
}

/// Minutes and seconds, hours where there are any.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Label of a cell's encoding for other tables.
pub(super) fn encoding_label(plan: &Plan, index: usize) -> String {
    let cell = &plan.cells[index].cell;
    if cell.name == cell.encoding.meta().id {
        cell.encoding.meta().label.to_owned()
    } else {
        cell.name.clone()
    }
}
