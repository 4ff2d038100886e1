//! Records beside a published number, gathered by recipe.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::published::{PublishedColumn, PublishedMetric, PublishedTable};
use super::recipe::{Identity, Paths, SettingDifference, differences, is_identical};
use crate::number;
use crate::record::{EvalPoint, RunRecord, Status};
use crate::stats::estimate::half_width_factor;
use crate::stats::{Estimate, RESOLUTION};
use crate::store::cell_key_without;

/// Runs of one recipe with all their seeds, for comparison with a published number.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeRun {
    /// Settings that are not the published ones.
    pub differences: Vec<SettingDifference>,
    /// Settings of the encoding that are not published and are not the zoo's defaults.
    pub choices: Vec<String>,
    /// Mean over the finished seeds, in the published unit; `None` if all diverged.
    pub mean: Option<f64>,
    /// 95 % interval of the mean over seeds, in the published unit; `None` with one seed.
    pub interval: Option<(f64, f64)>,
    /// Number of finished seeds.
    pub seeds: u32,
    /// Number of diverged seeds.
    pub diverged: u32,
    /// Suites and workloads of the runs, as `suite/workload`.
    pub workloads: BTreeSet<String>,
    /// Keys of the cells from which the number was computed.
    pub keys: BTreeSet<String>,
    /// Start time of the newest record.
    pub newest: String,
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
}

/// Finished records by task and id of the encoding, each with the key of its recipe, which is made once.
pub(super) struct Candidates<'a>(BTreeMap<(&'a str, &'a str), Vec<(&'a RunRecord, String)>>);

impl<'a> Candidates<'a> {
    /// Selects the records of these tasks and encodings.
    pub(super) fn of(
        records: &'a [RunRecord],
        tasks: &BTreeSet<String>,
        encodings: &BTreeMap<String, Identity>,
    ) -> Self {
        let ids: BTreeSet<&str> = encodings.values().map(|identity| identity.id.as_str()).collect();
        let wanted = |record: &'a RunRecord| {
            let ended = matches!(record.status, Status::Done | Status::Diverged { .. });
            let id = Identity::id_of(&record.config).filter(|id| ids.contains(id));
            id.filter(|_| ended && tasks.contains(&record.task.id))
                .map(|id| ((record.task.id.as_str(), id), (record, recipe_key(record))))
        };
        let keyed: Vec<_> = records.par_iter().filter_map(wanted).collect();
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, candidate) in keyed {
            found.entry(id).or_default().push(candidate);
        }
        Self(found)
    }
}

impl Wanted<'_> {
    fn is(&self, record: &RunRecord) -> bool {
        self.encoding.is_of(&record.config, self.free)
            && is_identical(&record.config, &self.identity)
    }

    fn evaluation<'r>(&self, record: &'r RunRecord) -> Option<&'r EvalPoint> {
        let len = (self.column.length_ratio * record.train_len as f64).round() as u64;
        record.evals.iter().find(|e| e.split == self.split && e.len == len)
    }
}

/// Key of a recipe: hash of the configuration without seed, evaluation, backend and engine. Records with equal keys
/// are seeds of one recipe.
fn recipe_key(record: &RunRecord) -> String {
    cell_key_without(&record.config, &["seed", "eval", "backend", "engine"])
}

/// The runs beside a published number: the one with the fewest differences first, then the one with
/// the fewest choices of its own, then the one with the most seeds, then the newest. Never by its result.
pub(super) fn runs(candidates: &Candidates<'_>, wanted: &Wanted<'_>) -> Vec<RecipeRun> {
    let mut recipes: BTreeMap<&str, BTreeMap<u64, &RunRecord>> = BTreeMap::new();
    let id = (wanted.task, wanted.encoding.id.as_str());
    let alike = candidates.0.get(&id).into_iter().flatten();
    for (record, key) in alike.filter(|(record, _)| wanted.is(record)) {
        if record.status == Status::Done && wanted.evaluation(record).is_none() {
            continue;
        }
        let seeds = recipes.entry(key).or_default();
        let held = seeds.entry(record.seed).or_insert(record);
        // Two records of one seed are one seed: the one started last counts.
        if record.started() > held.started() {
            *held = record;
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
            .then(b.newest.cmp(&a.newest))
            .then(a.keys.cmp(&b.keys))
    });
    runs
}

fn run(seeds: &[&RunRecord], wanted: &Wanted<'_>) -> Option<RecipeRun> {
    let first = seeds.first()?;
    let metric = wanted.table.metric_of(wanted.column);
    let done: Vec<f64> = seeds
        .iter()
        .filter(|record| record.status == Status::Done)
        .filter_map(|record| Some(raw(metric, wanted.evaluation(record)?)))
        .collect();
    let estimate = Estimate::of(&done);
    Some(RecipeRun {
        differences: all_differences(seeds, wanted),
        choices: wanted.encoding.choices(&first.config, wanted.free),
        mean: estimate.map(|e| shown(metric, e.mean)),
        interval: estimate.and_then(|e| interval(metric, &e)),
        seeds: done.len() as u32,
        diverged: (seeds.len() - done.len()) as u32,
        workloads: seeds.iter().map(|r| format!("{}/{}", r.suite, r.workload)).collect(),
        keys: seeds.iter().map(|r| r.key.clone()).collect(),
        newest: seeds.iter().map(|r| r.started_utc.clone()).max()?,
    })
}

/// All differences from the published recipe: of the configuration and of the quantities derived
/// from it.
fn all_differences(seeds: &[&RunRecord], wanted: &Wanted<'_>) -> Vec<SettingDifference> {
    let config = seeds.first().map(|record| differences(&record.config, &wanted.table.recipe));
    let early =
        seeds.iter().filter(|record| record.train.stopped_early).map(|r| r.train.steps).min();
    let stopped = early.map(|step| SettingDifference {
        path: "train, stopped as soon as solved,".to_owned(),
        published: "to the end".to_owned(),
        ours: format!("from step {step} on"),
    });
    config.into_iter().flatten().chain(stopped).collect()
}

/// Value of one seed on the scale on which values are averaged: a fraction, or nats.
fn raw(metric: &PublishedMetric, eval: &EvalPoint) -> f64 {
    match metric {
        PublishedMetric::ExactMatchPercent => eval.exact_match,
        PublishedMetric::ErrorPercent => 1.0 - eval.exact_match,
        PublishedMetric::TokenErrorPercent => 1.0 - eval.token_accuracy,
        PublishedMetric::Perplexity => eval.nll,
        // Refused for tables with a task.
        PublishedMetric::Other(_) => f64::NAN,
    }
}

/// Converts a value from that scale to the published unit.
fn shown(metric: &PublishedMetric, raw: f64) -> f64 {
    if *metric == PublishedMetric::Perplexity { raw.exp() } else { 100.0 * raw }
}

/// Student's interval with a spread of at least [`RESOLUTION`], shares cut to 0 and 100 %.
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
