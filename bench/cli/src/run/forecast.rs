//! Progress of a sweep and forecast of the remaining time.

use sweep::EVAL_SHARE;
use train::run::Progress;

/// Share of the work below which the measured pace is not used.
const MIN_SHARE_FOR_PACE: f64 = 0.02;

/// Forecast from expected seconds per cell, replaced by measured ones once a cell of the same kind has ended.
#[derive(Debug)]
pub(super) struct Forecast {
    cells: Vec<CellForecast>,
    jobs: usize,
}

#[derive(Debug)]
struct CellForecast {
    /// Cells of one kind differ only in their seed and are expected to take the same time.
    kind: String,
    expected_seconds: f64,
    /// Share of the cell's work that is done, 0 to 1.
    done: f64,
    /// Share of the cell's work that was done before this sweep started.
    done_before: f64,
    /// Whether the cell has ended or is not run by this sweep; it is left out of the forecast.
    over: bool,
}

impl Forecast {
    /// Creates a forecast for cells given as kind and expected seconds; cells with 0 seconds are not run.
    pub(super) fn new(cells: impl IntoIterator<Item = (String, f64)>, jobs: usize) -> Self {
        let cells = cells
            .into_iter()
            .map(|(kind, expected_seconds)| CellForecast {
                kind,
                expected_seconds,
                done: 0.0,
                done_before: 0.0,
                over: expected_seconds <= 0.0,
            })
            .collect();
        Self { cells, jobs: jobs.max(1) }
    }

    /// Records that a cell starts, also one that was given up before.
    pub(super) fn began(&mut self, index: usize) {
        self.cells[index].done = 0.0;
        self.cells[index].over = false;
    }

    /// Records that a cell resumed at a step.
    pub(super) fn resumed(&mut self, index: usize, step: usize, steps: usize) {
        let share = (1.0 - EVAL_SHARE) * share(step, steps);
        self.cells[index].done_before = share;
        self.cells[index].done = share;
    }

    /// Records the progress of a cell.
    pub(super) fn progress(&mut self, index: usize, progress: Progress) {
        self.cells[index].done = match progress {
            Progress::Train { done, of, .. } => (1.0 - EVAL_SHARE) * share(done, of),
            Progress::Eval { done, of } => 1.0 - EVAL_SHARE + EVAL_SHARE * share(done, of),
        };
    }

    /// Records the end of a cell. `took_seconds` becomes the expectation for its kind; `None` if it ended early.
    pub(super) fn ended(&mut self, index: usize, took_seconds: Option<f64>) {
        self.cells[index].over = true;
        self.cells[index].done = 1.0;
        let Some(took) = took_seconds else { return };
        let kind = self.cells[index].kind.clone();
        for cell in self.cells.iter_mut().filter(|cell| cell.kind == kind) {
            cell.expected_seconds = took;
        }
    }

    /// Removes a cell that was stopped or is run by another sweep.
    pub(super) fn given_up(&mut self, index: usize) {
        self.cells[index].over = true;
    }

    /// Share of a running cell that is done; `None` if it is not running.
    pub(super) fn under_way(&self, index: usize) -> Option<f64> {
        let cell = &self.cells[index];
        (cell.done > 0.0 && !cell.over).then_some(cell.done)
    }

    /// Share of the whole sweep that is done.
    pub(super) fn share(&self) -> f64 {
        let total = self.cells.iter().map(|cell| cell.expected_seconds).sum::<f64>();
        if total > 0.0 { 1.0 - self.left() / total } else { 1.0 }
    }

    /// Expected seconds until the end, `elapsed` seconds after the start.
    pub(super) fn seconds_left(&self, elapsed: f64) -> f64 {
        let left = self.left();
        let done = |cell: &CellForecast| (cell.done - cell.done_before) * cell.expected_seconds;
        let done = self.cells.iter().map(done).sum::<f64>();
        if done > MIN_SHARE_FOR_PACE * (done + left) {
            elapsed * left / done
        } else {
            left / self.jobs as f64
        }
    }

    /// Expected seconds of the remaining work, without parallelism.
    fn left(&self) -> f64 {
        let left = |cell: &CellForecast| (1.0 - cell.done) * cell.expected_seconds;
        self.cells.iter().filter(|cell| !cell.over).map(left).sum()
    }
}

fn share(done: usize, of: usize) -> f64 {
    (done as f64 / of.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three(jobs: usize) -> Forecast {
        let cells = [("a", 10.0), ("a", 10.0), ("b", 20.0), ("c", 0.0)];
        Forecast::new(cells.map(|(kind, seconds)| (kind.to_owned(), seconds)), jobs)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn before_anything_is_done_the_expectation_is_shared_by_the_jobs() {
        assert!(near(three(1).seconds_left(0.0), 40.0));
        assert!(near(three(2).seconds_left(5.0), 20.0));
        assert!(near(three(1).share(), 0.0));
    }

    #[test]
    fn what_ended_corrects_the_rest_of_its_kind() {
        let mut forecast = three(1);
        forecast.ended(0, Some(30.0));
        // 30 s are done, 30 + 20 are left, at the pace of 1 s a second.
        assert!(near(forecast.seconds_left(30.0), 50.0));
        assert!(near(forecast.share(), 30.0 / 80.0));
        forecast.given_up(2);
        assert!(near(forecast.seconds_left(30.0), 30.0));
    }

    #[test]
    fn what_was_done_before_is_no_measure_of_this_sweeps_pace() {
        let mut forecast = three(1);
        forecast.resumed(2, 50, 100);
        forecast.progress(2, Progress::Train { done: 75, of: 100, loss: None });
        let done = 0.9 * 0.25 * 20.0;
        let left = 20.0 + (1.0 - 0.9 * 0.75) * 20.0;
        assert!(near(forecast.seconds_left(done * 3.0), left * 3.0));
        assert!(near(forecast.under_way(2).unwrap(), 0.9 * 0.75));
        forecast.ended(2, None);
        assert_eq!(forecast.under_way(2), None);
    }

    #[test]
    fn a_cell_that_starts_after_it_was_given_up_counts_again() {
        let mut forecast = three(1);
        forecast.progress(2, Progress::Train { done: 50, of: 100, loss: None });
        forecast.given_up(2);
        // 9 s of work took 9 s; 10 + 10 are left.
        assert!(near(forecast.seconds_left(9.0), 20.0));
        forecast.began(2);
        assert!(near(forecast.seconds_left(9.0), 40.0));
    }
}
