//! Records that reproduce a published number, grouped by recipe.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::published::{PublishedColumn, PublishedMetric, PublishedTable, SmallerSuite};
use super::recipe::{Identity, Paths, SettingDifference, differences, is_identical};
use analysis::frame::{Frames, rows};
use records::number;
use records::store::cell_key_without;
use stats::estimate::half_width_factor;
use stats::{Estimate, RESOLUTION};

/// Runs of one recipe with all their seeds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecipeRun {
    /// Settings that differ from the published ones.
    pub differences: Vec<SettingDifference>,
    /// Settings of the encoding that are not published and differ from the defaults of pe-zoo.
    pub choices: Vec<String>,
    /// Mean over the finished seeds, in the published unit; `None` if all diverged.
    pub mean: Option<f64>,
    /// 95 % interval of the mean over seeds, in the published unit; `None` with one seed.
    pub interval: Option<(f64, f64)>,
    /// Value of each finished seed, as a fraction or in nats.
    pub by_seed: BTreeMap<u64, f64>,
    /// Mean exact match at the greatest length within the training distribution, 0 to 1; `None` for perplexities, and
    /// if nothing was evaluated there.
    pub fit: Option<f64>,
    /// Number of finished seeds.
    pub seeds: u32,
    /// Number of diverged seeds.
    pub diverged: u32,
    /// Suites and workloads of the runs, as `suite/workload`.
    pub workloads: BTreeSet<String>,
    /// Keys of the cells from which the number was computed.
    pub keys: BTreeSet<String>,
    /// Start time of the newest record, or of its evaluation from kept weights.
    pub newest: String,
}

impl RecipeRun {
    /// Sum of the distances of all settings from the published ones.
    fn distance(&self) -> f64 {
        self.differences.iter().map(SettingDifference::distance).sum()
    }
}

/// Criteria for the records that are compared with a number.
pub(super) struct Wanted<'a> {
    pub(super) table: &'a PublishedTable,
    pub(super) column: &'a PublishedColumn,
    pub(super) task: &'a str,
    pub(super) split: &'a str,
    pub(super) encoding: &'a Identity,
    pub(super) free: &'a BTreeSet<String>,
    pub(super) identity: Paths,
    /// Suite of the records, and their workload if it names one; `None`: any suite.
    pub(super) smaller: Option<&'a SmallerSuite>,
}

/// Finished cell of a task and encoding with published numbers.
pub(super) struct FinishedRun {
    cell: RunCell,
    config: Value,
    /// Key of the recipe; see [`recipe_key`].
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

/// Configuration, of which only the encoding's id is read.
#[derive(Deserialize)]
struct ConfiguredEncoding {
    encoding: EncodingId,
}

#[derive(Deserialize)]
struct EncodingId {
    id: String,
}

/// Finished cells by task and id of the encoding.
pub(super) struct Candidates(BTreeMap<(String, String), Vec<FinishedRun>>);

impl Candidates {
    /// Selects the cells of these tasks and encodings.
    ///
    /// # Errors
    /// If a query fails.
    pub(super) fn of(
        frames: &Frames,
        tasks: &BTreeSet<String>,
        encodings: &BTreeMap<String, Identity>,
    ) -> PolarsResult<Self> {
        let ids: BTreeSet<&str> = encodings.values().map(|identity| identity.id.as_str()).collect();
        let text = |name: &str| frames.cells.column(name)?.str();
        let (task, status, config) = (text("task")?, text("status")?, text("config")?);
        let id_of = |row: usize| {
            let ended = matches!(status.get(row)?, "done" | "diverged");
            if !ended || !tasks.contains(task.get(row)?) {
                return None;
            }
            let ConfiguredEncoding { encoding: EncodingId { id } } =
                serde_json::from_str(config.get(row)?).ok()?;
            ids.contains(id.as_str()).then_some((row as IdxSize, id))
        };
        // Few cells of a large report are those of a paper; only their texts are copied.
        let (rows, ids): (Vec<IdxSize>, Vec<String>) =
            (0..frames.cells.height()).into_par_iter().filter_map(id_of).unzip();
        let cells = frames.cells.select(RunCell::COLUMNS.iter().copied())?;
        let cells = cells.take(&IdxCa::from_vec("rows".into(), rows))?;
        let finished = |(id, cell): (String, RunCell)| {
            let config: Value = serde_json::from_str(&cell.config).ok()?;
            let recipe = recipe_key(&config);
            Some((id, FinishedRun { cell, config, recipe, evaluations: Vec::new() }))
        };
        let mut cells: Vec<(String, RunCell)> =
            ids.into_iter().zip(RunCell::of(cells.lazy())?).collect();
        // Where fresh seeds are reported, the cells that chose their learning rates are no results.
        let place = |cell: &RunCell| (cell.suite.clone(), cell.workload.clone());
        let fresh: BTreeSet<_> =
            cells.iter().filter(|(_, cell)| cell.grid_fresh).map(|(_, cell)| place(cell)).collect();
        cells.retain(|(_, cell)| {
            cell.grid_axis.is_none() || cell.grid_fresh || !fresh.contains(&place(cell))
        });
        let found: Vec<(String, FinishedRun)> =
            cells.into_par_iter().filter_map(finished).collect();
        let numbers =
            df!("cell" => found.iter().map(|(_, one)| one.cell.cell).collect::<Vec<_>>())?;
        let evaluations = frames.evaluations.clone().lazy();
        let mut own: BTreeMap<u32, Vec<RunEvaluation>> = BTreeMap::new();
        for evaluation in
            RunEvaluation::of(evaluations.inner_join(numbers.lazy(), col("cell"), col("cell")))?
        {
            own.entry(evaluation.cell).or_default().push(evaluation);
        }
        let mut candidates: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, mut candidate) in found {
            candidate.evaluations = own.remove(&candidate.cell.cell).unwrap_or_default();
            candidates.entry((candidate.cell.task.clone(), id)).or_default().push(candidate);
        }
        Ok(Self(candidates))
    }
}

impl Wanted<'_> {
    /// Metric of the records.
    pub(super) fn metric(&self) -> &PublishedMetric {
        let own = self.smaller.and_then(|smaller| smaller.metric.as_ref());
        own.unwrap_or_else(|| self.table.metric_of(self.column))
    }

    fn is(&self, run: &FinishedRun) -> bool {
        let of_suite = self.smaller.is_none_or(|smaller| {
            run.cell.suite == smaller.suite
                && smaller.workload.as_ref().is_none_or(|name| run.cell.workload == *name)
        });
        of_suite
            && self.encoding.is_of(&run.config, self.free)
            && is_identical(&run.config, &self.identity)
    }

    fn evaluation<'r>(&self, run: &'r FinishedRun) -> Option<&'r RunEvaluation> {
        let len = (self.column.length_ratio * run.cell.train_len as f64).round() as u64;
        run.evaluations.iter().find(|e| e.split == self.split && e.len == len)
    }
}

/// Key of a recipe: hash of the configuration without seed, evaluation, backend and engine. Cells with equal keys
/// are seeds of one recipe.
fn recipe_key(config: &Value) -> String {
    cell_key_without(config, &["seed", "eval", "backend", "engine"])
}

/// Returns the runs of a published number, sorted by the number of differences from the recipe, then by the number of
/// choices of their own (both ascending), then by the number of seeds (most first), by the factors between their
/// numbers and the published ones (smallest first) and by age (newest first). Results do not affect the order.
pub(super) fn runs(candidates: &Candidates, wanted: &Wanted<'_>) -> Vec<RecipeRun> {
    let mut recipes: BTreeMap<&str, BTreeMap<u64, &FinishedRun>> = BTreeMap::new();
    let id = (wanted.task.to_owned(), wanted.encoding.id.clone());
    let alike = candidates.0.get(&id).into_iter().flatten();
    for run in alike.filter(|run| wanted.is(run)) {
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
        .filter_map(|seeds| run(&seeds.into_values().collect::<Vec<_>>(), wanted))
        .collect();
    runs.sort_by(|a, b| {
        let few = a.differences.len().cmp(&b.differences.len());
        let plain = a.choices.len().cmp(&b.choices.len());
        few.then(plain)
            .then(b.seeds.cmp(&a.seeds))
            .then(a.distance().total_cmp(&b.distance()))
            .then(b.newest.cmp(&a.newest))
            .then(a.keys.cmp(&b.keys))
    });
    runs
}

fn run(seeds: &[&FinishedRun], wanted: &Wanted<'_>) -> Option<RecipeRun> {
    let first = seeds.first()?;
    let metric = wanted.metric();
    let by_seed: BTreeMap<u64, f64> = seeds
        .iter()
        .filter(|run| run.is_done())
        .filter_map(|run| Some((run.cell.seed, raw(metric, wanted.evaluation(run)?))))
        .collect();
    let done: Vec<f64> = by_seed.values().copied().collect();
    let estimate = Estimate::of(&done);
    let fits = seeds.iter().filter(|run| run.is_done()).map(|run| {
        let inside = run.evaluations.iter().filter(|e| e.in_distribution);
        inside.max_by_key(|e| e.len).map(|e| e.exact_match)
    });
    let fits: Option<Vec<f64>> = if metric.is_percent() { fits.collect() } else { None };
    Some(RecipeRun {
        differences: all_differences(seeds, wanted),
        choices: wanted.encoding.choices(&first.config, wanted.free),
        mean: estimate.map(|e| shown(metric, e.mean)),
        interval: estimate.and_then(|e| interval(metric, &e)),
        fit: fits.and_then(|fits| Estimate::of(&fits)).map(|fit| fit.mean),
        by_seed,
        seeds: done.len() as u32,
        diverged: (seeds.len() - done.len()) as u32,
        workloads: seeds.iter().map(|r| format!("{}/{}", r.cell.suite, r.cell.workload)).collect(),
        keys: seeds.iter().map(|r| r.cell.key.clone()).collect(),
        newest: seeds.iter().map(|r| r.cell.newest_utc.clone()).max()?,
    })
}

/// Returns all differences from the published recipe: of the configuration and of the quantities derived from it.
fn all_differences(seeds: &[&FinishedRun], wanted: &Wanted<'_>) -> Vec<SettingDifference> {
    let config = seeds.first().map(|run| differences(&run.config, &wanted.table.recipe));
    let early =
        seeds.iter().filter(|run| run.cell.stopped_early).map(|run| run.cell.train_steps).min();
    let stopped = early.map(|step| SettingDifference {
        path: "train, stopped as soon as solved,".to_owned(),
        published: "to the end".to_owned(),
        ours: format!("from step {step} on"),
    });
    config.into_iter().flatten().chain(stopped).collect()
}

/// Returns the value of one seed on the scale on which values are averaged: a fraction, or nats.
fn raw(metric: &PublishedMetric, eval: &RunEvaluation) -> f64 {
    match metric {
        PublishedMetric::ExactMatchPercent => eval.exact_match,
        PublishedMetric::ErrorPercent => 1.0 - eval.exact_match,
        PublishedMetric::TokenErrorPercent => 1.0 - eval.token_accuracy,
        PublishedMetric::Perplexity => eval.nll,
        // Refused for tables with a task.
        PublishedMetric::Other(_) => f64::NAN,
    }
}

/// Converts a value from the scale of [`raw`] to the published unit.
fn shown(metric: &PublishedMetric, raw: f64) -> f64 {
    if *metric == PublishedMetric::Perplexity { raw.exp() } else { 100.0 * raw }
}

/// Returns Student's interval with a spread of at least [`RESOLUTION`]; shares are clamped to 0 and 100 %.
fn interval(metric: &PublishedMetric, estimate: &Estimate) -> Option<(f64, f64)> {
    let half = half_width_factor(estimate.n)? * estimate.std?.max(RESOLUTION);
    let ends = (shown(metric, estimate.mean - half), shown(metric, estimate.mean + half));
    let finite = ends.0.is_finite() && ends.1.is_finite();
    finite.then(|| if metric.is_percent() { (ends.0.max(0.0), ends.1.min(100.0)) } else { ends })
}

impl RecipeRun {
    /// Formats the result as `12.1 [8.0 to 16.1] n=3`, followed by the choices of the run.
    pub fn text(&self, metric: &PublishedMetric) -> String {
        let one = |value: f64| {
            if metric.is_percent() {
                number::points(value / 100.0)
            } else {
                number::three_digits(value)
            }
        };
        let mean = self.mean.map_or_else(|| "no value".to_owned(), one);
        let interval = self
            .interval
            .map_or_else(String::new, |(low, high)| format!(" [{} to {}]", one(low), one(high)));
        let diverged = match self.diverged {
            0 => String::new(),
            count => format!(", {count} diverged"),
        };
        let text = format!("{mean}{interval} n={}{diverged}", self.seeds);
        std::iter::once(&text).chain(&self.choices).cloned().collect::<Vec<_>>().join(", ")
    }
}
