//! Records that reproduce a published number, grouped by recipe.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::*;
use rayon::prelude::*;
use serde_json::Value;

use super::published::{
    PublishedColumn, PublishedMetric, PublishedRow, PublishedTable, SmallerSuite,
};
use super::recipe::{Identity, SettingDifference, differences, is_identical};
use crate::frame::{Frames, join_cells, rows};
use records::number;
use records::store::cell_key_without;
use stats::estimate::half_width_factor;
use stats::{Estimate, RESOLUTION};

/// Runs of one recipe with all their seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeRun {
    /// Suite of another size that was asked for; `None`: any suite.
    pub suite: Option<String>,
    /// Metric of the runs.
    pub metric: PublishedMetric,
    /// Settings that differ from the published ones.
    pub differences: Vec<SettingDifference>,
    /// Settings of the encoding that are not published and differ from the defaults of pe-zoo.
    pub choices: Vec<String>,
    /// Mean over the finished seeds, in the published unit; `None` if all diverged.
    pub mean: Option<f64>,
    /// 95% interval of the mean over seeds, in the published unit; `None` with one seed.
    pub interval: Option<(f64, f64)>,
    /// Value of each finished seed, on the scale of the metric of records.
    pub by_seed: BTreeMap<u64, f64>,
    /// Mean exact match at the greatest length within the training distribution, 0 to 1; `None` for perplexities, and
    /// if nothing was evaluated there.
    pub fit: Option<f64>,
    /// Number of diverged seeds.
    pub diverged: u32,
    /// Start time of the newest record, or of its evaluation from kept weights.
    pub newest: String,
}

/// Criteria for the records that are compared with a number.
pub(super) struct Wanted<'a> {
    pub(super) table: &'a PublishedTable,
    pub(super) row: &'a PublishedRow,
    pub(super) column: &'a PublishedColumn,
    pub(super) split: &'a str,
    pub(super) encoding: &'a Identity,
    /// Suite of another size; `None`: any suite at the size of the table.
    pub(super) smaller: Option<&'a SmallerSuite>,
}

/// Finished cell of a task with published numbers.
struct FinishedRun {
    cell: RunCell,
    config: Value,
    /// Hash of the configuration without seed, evaluation, backend and engine: cells with equal ones are seeds of one recipe.
    recipe: String,
    evaluations: Vec<RunEvaluation>,
}

rows! {
    struct RunCell {
        cell: u32,
        suite: String,
        workload: String,
        task: String,
        status: String,
        seed: u64,
        key: String,
        config: String,
        train_len: u64,
        train_steps: u64,
        stopped_early: bool,
        newest_utc: String,
        grid_axis: Option<String>,
        grid_fresh: bool,
    }
}

rows! {
    struct RunEvaluation {
        cell: u32,
        split: String,
        in_distribution: bool,
        len: u64,
        exact_match: f64,
        token_accuracy: f64,
        nll: f64,
    }
}

impl FinishedRun {
    fn is_done(&self) -> bool {
        self.cell.status == "done"
    }

    /// Start time of the last part and key: the order from oldest to newest.
    fn started(&self) -> (&str, &str) {
        (&self.cell.newest_utc, &self.cell.key)
    }
}

/// Finished cells of the tasks with published numbers.
pub(super) struct Candidates(Vec<FinishedRun>);

impl Candidates {
    /// Selects the cells of the tasks of tables.
    ///
    /// # Errors
    /// If a query fails.
    pub(super) fn of<'a>(
        frames: &Frames,
        tables: impl Iterator<Item = &'a PublishedTable>,
    ) -> PolarsResult<Self> {
        let tasks: BTreeSet<&str> = tables
            .flat_map(|table| table.task.iter().chain(table.smaller.iter().map(|own| &own.task)))
            .map(String::as_str)
            .collect();
        let is = |name: &str, values: &[&str]| {
            values.iter().fold(lit(false), |any, value| any.or(col(name).eq(lit(*value))))
        };
        let wanted = is("task", &tasks.into_iter().collect::<Vec<_>>());
        let wanted = wanted.and(is("status", &["done", "diverged"]));
        let cells = frames.cells.clone().lazy().filter(wanted).collect()?;
        let evaluations = join_cells(
            cells.clone().lazy().select([col("cell")]),
            frames.evaluations.clone().lazy(),
            JoinType::Inner,
        );
        let mut cells = RunCell::of(cells.lazy())?;
        // Where fresh seeds are reported, the cells that chose their learning rates are no results.
        let place = |cell: &RunCell| (cell.suite.clone(), cell.workload.clone());
        let fresh: BTreeSet<_> = cells.iter().filter(|cell| cell.grid_fresh).map(place).collect();
        cells.retain(|cell| {
            cell.grid_axis.is_none() || cell.grid_fresh || !fresh.contains(&place(cell))
        });
        let mut own: BTreeMap<u32, Vec<RunEvaluation>> = BTreeMap::new();
        for evaluation in RunEvaluation::of(evaluations)? {
            own.entry(evaluation.cell).or_default().push(evaluation);
        }
        let cells: Vec<_> = cells
            .into_iter()
            .map(|cell| (own.remove(&cell.cell).unwrap_or_default(), cell))
            .collect();
        let finished = |(evaluations, cell): (Vec<RunEvaluation>, RunCell)| {
            let config: Value = serde_json::from_str(&cell.config).ok()?;
            let recipe = cell_key_without(&config, &["seed", "eval", "backend", "engine"]);
            Some(FinishedRun { cell, config, recipe, evaluations })
        };
        Ok(Self(cells.into_par_iter().filter_map(finished).collect()))
    }

    /// Returns the runs of a published number, sorted by the number of differences from the recipe, then by the number of
    /// choices of their own (both ascending), then by the number of seeds (most first), by the factors between their
    /// numbers and the published ones (smallest first) and by age (newest first). Results do not affect the order.
    pub(super) fn runs(&self, wanted: &Wanted<'_>) -> Vec<RecipeRun> {
        let mut recipes: BTreeMap<&str, BTreeMap<u64, &FinishedRun>> = BTreeMap::new();
        for run in self.0.iter().filter(|run| wanted.is(run)) {
            if run.is_done() && wanted.evaluation(run).is_none() {
                continue;
            }
            let seeds = recipes.entry(&run.recipe).or_default();
            let held = seeds.entry(run.cell.seed).or_insert(run);
            // Of two cells of one seed the one started last is used.
            if run.started() > held.started() {
                *held = run;
            }
        }
        let mut runs: Vec<RecipeRun> = recipes
            .into_values()
            .filter_map(|seeds| wanted.run(&seeds.into_values().collect::<Vec<_>>()))
            .collect();
        let distance = |run: &RecipeRun| -> f64 {
            run.differences.iter().map(SettingDifference::distance).sum()
        };
        runs.sort_by(|a, b| {
            let few = |run: &RecipeRun| (run.differences.len(), run.choices.len());
            few(a)
                .cmp(&few(b))
                .then(b.seeds().cmp(&a.seeds()))
                .then(distance(a).total_cmp(&distance(b)))
                .then(b.newest.cmp(&a.newest))
        });
        runs
    }
}

impl Wanted<'_> {
    fn is(&self, run: &FinishedRun) -> bool {
        let identity = self.table.identity_of(self.row, self.column);
        let is_placed = match self.smaller {
            None => self.table.task.as_ref() == Some(&run.cell.task),
            Some(SmallerSuite { suite, task, workload, .. }) => {
                run.cell.suite == *suite
                    && run.cell.task == *task
                    && workload.as_ref().is_none_or(|name| run.cell.workload == *name)
            }
        };
        is_placed
            && self.encoding.is_of(&run.config, &self.row.free)
            && match self.smaller {
                None => is_identical(&run.config, &identity),
                Some(smaller) => is_identical(&run.config, &smaller.identity(identity)),
            }
    }

    fn evaluation<'r>(&self, run: &'r FinishedRun) -> Option<&'r RunEvaluation> {
        let len = (self.column.length_ratio * run.cell.train_len as f64).round() as u64;
        run.evaluations.iter().find(|e| e.split == self.split && e.len == len)
    }

    fn run(&self, seeds: &[&FinishedRun]) -> Option<RecipeRun> {
        let own = self.smaller.and_then(|smaller| smaller.metric.as_ref());
        let metric = own.unwrap_or_else(|| self.table.metric_of(self.column));
        let value = |run: &&&FinishedRun| {
            let RunEvaluation { exact_match, token_accuracy, nll, .. } = self.evaluation(run)?;
            let value = metric.of_records()?.choose(*exact_match, *token_accuracy, *nll);
            Some((run.cell.seed, value))
        };
        let done = || seeds.iter().filter(|run| run.is_done());
        let by_seed: BTreeMap<u64, f64> = done().filter_map(|run| value(&run)).collect();
        let estimate = Estimate::of(&by_seed.values().copied().collect::<Vec<_>>());
        let fits = done().map(|run| {
            let inside = run.evaluations.iter().filter(|e| e.in_distribution);
            inside.max_by_key(|e| e.len).map(|e| e.exact_match)
        });
        let fits: Option<Vec<f64>> = if metric.is_percent() { fits.collect() } else { None };
        let config = &seeds.first()?.config;
        let early = seeds.iter().filter(|run| run.cell.stopped_early);
        let stopped = early.map(|run| run.cell.train_steps).min().map(|step| SettingDifference {
            path: "end of training".to_owned(),
            published: "the last step".to_owned(),
            ours: format!("as soon as solved, at step {step} at the earliest"),
        });
        let recipe = differences(config, &self.table.recipe).into_iter().chain(stopped);
        Some(RecipeRun {
            suite: self.smaller.map(|smaller| smaller.suite.clone()),
            differences: recipe.collect(),
            choices: self.encoding.choices(config, &self.row.free),
            mean: estimate.map(|e| metric.shown(e.mean)),
            interval: estimate.and_then(|e| interval(metric, &e)),
            fit: fits.and_then(|fits| Estimate::of(&fits)).map(|fit| fit.mean),
            diverged: (seeds.len() - by_seed.len()) as u32,
            by_seed,
            newest: seeds.iter().map(|r| r.cell.newest_utc.clone()).max()?,
            metric: metric.clone(),
        })
    }
}

/// Returns Student's interval with a spread of at least [`RESOLUTION`]; shares are clamped to 0 and 100%.
fn interval(metric: &PublishedMetric, estimate: &Estimate) -> Option<(f64, f64)> {
    let half = half_width_factor(estimate.n)? * estimate.std?.max(RESOLUTION);
    let [a, b] = [-half, half].map(|side| metric.shown(estimate.mean + side));
    let (low, high) = (a.min(b), a.max(b));
    let finite = low.is_finite() && high.is_finite();
    finite.then(|| if metric.is_percent() { (low.max(0.0), high.min(100.0)) } else { (low, high) })
}

impl RecipeRun {
    /// Number of finished seeds.
    pub fn seeds(&self) -> u32 {
        self.by_seed.len() as u32
    }

    /// Formats the result as `12.1 [8.0, 16.1] n=3`, followed by the choices of the run.
    pub fn text(&self) -> String {
        let one = |value: f64| {
            if self.metric.is_percent() {
                number::points(value / 100.0)
            } else {
                number::three_digits(value)
            }
        };
        let mean = self.mean.map_or_else(|| "no value".to_owned(), one);
        let result = number::value_and_interval(mean, self.interval, one);
        let diverged = match self.diverged {
            0 => String::new(),
            count => format!(", {count} diverged"),
        };
        let text = format!("{result} n={}{diverged}", self.seeds());
        std::iter::once(&text).chain(&self.choices).cloned().collect::<Vec<_>>().join(", ")
    }

    /// Formats the result with its suite and unit: ``1.6 [1.5, 1.7] n=3 in `small` (perplexity)``.
    pub(super) fn text_with_suite(&self) -> String {
        let suite = self.suite.as_deref().unwrap_or_default();
        format!("{} in `{suite}` ({})", self.text(), self.metric.unit())
    }
}
