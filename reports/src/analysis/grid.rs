//! Grids: cells that differ from each other in one value of their configuration, the same values for all
//! encodings.
//!
//! Of each encoding one value counts, the same for all of its seeds: the one whose mean *validation* over
//! seeds is best. Validations are drawn from another stream than the evaluations that a report shows, so no
//! value is chosen by the numbers that it is then judged by. Where a suite has fresh seeds, which had no part in the
//! choice, results are theirs alone. What is uncorrected without them stands in METHODOLOGY.md.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ranking::Ranking;
use crate::record::Metric;
use crate::record::{RunRecord, Status};

/// The grid of a workload with the value selected for each encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadGrid {
    /// Path into a cell's configuration of the setting that varies.
    pub axis: String,
    /// Values of the grid, ascending.
    pub values: Vec<f64>,
    /// Value of the axis in the suite without a grid, taken from the newest cell.
    pub default: Option<f64>,
    /// Selected values, one for each encoding, sorted by name.
    pub choices: Vec<GridChoice>,
    /// Seeds that had no part in the selection and whose results stand for the selected values; empty: those of the
    /// selection.
    pub fresh_seeds: BTreeSet<u64>,
}

/// The grid of a workload with rankings at the default value. All other numbers of a report on the workload are at
/// the selected values.
#[derive(Debug, Clone)]
pub struct GridReport {
    /// The grid and the selected values.
    pub grid: WorkloadGrid,
    /// In distribution, every encoding at the default value.
    pub default_inside: Ranking,
    /// Beyond training, every encoding at the default value.
    pub default_beyond: Ranking,
}

/// The value selected for an encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct GridChoice {
    /// Name of the encoding.
    pub encoding: String,
    /// Value of the setting.
    pub value: f64,
    /// Criterion of the selection.
    pub by: ChosenBy,
    /// Results at each value, ascending.
    pub points: Vec<GridResult>,
    /// Cost of all of its cells.
    pub spent: GridCost,
}

/// Criterion by which a value was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// The best mean of the last validation over seeds.
    Validation,
    /// The default, or the least value if the default was not run: no value has a validation of every seed.
    Default,
}

/// Result of an encoding at one value of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridResult {
    /// Value of the setting.
    pub value: f64,
    /// Number of seeds with a record.
    pub seeds: u32,
    /// Number of seeds that diverged; they count as no correct answer and infinite loss.
    pub diverged: u32,
    /// Mean of the last validations; `None` if a seed of the encoding has none at this value.
    pub validation: Option<Score>,
}

/// Validation score that selects a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Exact match, 0 to 1.
    pub exact_match: f64,
    /// Negative log-likelihood, nats per scored token.
    pub nll: f64,
}

/// Total cost of cells, those that diverged or failed included as far as they got.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GridCost {
    /// Number of cells that were run.
    pub cells: u32,
    /// Optimizer steps of all cells.
    pub steps: u64,
    /// Wall-clock seconds of training.
    pub seconds: f64,
    /// Analytic floating-point operations of training.
    pub flops: f64,
}

impl WorkloadGrid {
    /// The value selected for an encoding.
    pub fn choice(&self, encoding: &str) -> Option<&GridChoice> {
        self.choices.iter().find(|choice| choice.encoding == encoding)
    }

    /// Last component of the path, for example `learning_rate`.
    pub fn short_axis(&self) -> &str {
        self.axis.rsplit('.').next().unwrap_or(&self.axis)
    }

    /// Names of encodings whose selected value is the first or last of a grid of three or more values: a wider grid
    /// may hold a better one.
    pub fn at_the_edge(&self) -> Vec<&str> {
        let (Some(first), Some(last)) = (self.values.first(), self.values.last()) else {
            return Vec::new();
        };
        let edge = |value: f64| same(value, *first) || same(value, *last);
        let at = self.choices.iter().filter(|c| c.by == ChosenBy::Validation && edge(c.value));
        if self.values.len() < 3 { Vec::new() } else { at.map(|c| c.encoding.as_str()).collect() }
    }
}

/// Records split by the values selected from grids.
pub(crate) struct GridSelection<'a> {
    /// Records without a grid and those at the selected values.
    pub(crate) selected: Vec<&'a RunRecord>,
    /// Records at the default value of a grid.
    pub(crate) defaults: Vec<&'a RunRecord>,
    /// Grids by name of the workload.
    pub(crate) grids: BTreeMap<String, WorkloadGrid>,
}

/// Selects a value for each workload and encoding.
pub(crate) fn select_grid_values(records: &[RunRecord]) -> GridSelection<'_> {
    let mut settled =
        GridSelection { selected: Vec::new(), defaults: Vec::new(), grids: BTreeMap::new() };
    let mut workloads: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for record in records {
        workloads.entry(&record.workload).or_default().push(record);
    }
    for (workload, records) in workloads {
        let Some(newest) = newest(records.iter().copied().filter(|r| r.grid.is_some())) else {
            settled.selected.extend(records);
            continue;
        };
        let axis = newest.grid.as_ref().map_or("", |point| &point.axis).to_owned();
        let placed = placed(&axis, &records);
        let grid = choose(axis, &placed);
        for (record, value) in records.iter().zip(&placed.values) {
            let choice = grid.choice(&record.encoding.name);
            let chosen = choice.zip(*value).is_none_or(|(c, value)| same(c.value, value));
            if chosen && (grid.fresh_seeds.is_empty() || is_fresh(record)) {
                settled.selected.push(record);
            }
            if !is_fresh(record) && grid.default.zip(*value).is_some_and(|(a, b)| same(a, b)) {
                settled.defaults.push(record);
            }
        }
        settled.grids.insert(workload.to_owned(), grid);
    }
    settled
}

fn newest<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Option<&'a RunRecord> {
    records.max_by_key(|r| r.started())
}

fn same(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq()
}

/// Records of a workload with the grid value of each.
struct Placed<'a> {
    records: &'a [&'a RunRecord],
    /// Grid value of each record; `None` for cells at no value of the grid, for example of an older suite.
    values: Vec<Option<f64>>,
    all: Vec<f64>,
    default: Option<f64>,
}

/// Assigns grid values. A cell from before the suite had a grid is assigned by its configuration. If no cell is
/// marked as the default, the newest such cell states the default.
fn placed<'a>(axis: &str, records: &'a [&'a RunRecord]) -> Placed<'a> {
    let pointer = format!("/{}", axis.replace('.', "/"));
    let point = |record: &'a RunRecord| record.grid.as_ref().filter(|point| point.axis == axis);
    let configured = |record: &RunRecord| record.config.pointer(&pointer).and_then(Value::as_f64);
    let place =
        |record: &'a RunRecord| point(record).map(|p| p.value).or_else(|| configured(record));
    let all = || records.iter().copied();
    let marked = newest(all().filter(|r| point(r).is_some_and(|p| p.default)));
    let default = marked
        .or_else(|| newest(all().filter(|r| r.grid.is_none() && configured(r).is_some())))
        .and_then(place);
    let mut values: Vec<f64> = all().filter_map(point).map(|p| p.value).chain(default).collect();
    values.sort_by(f64::total_cmp);
    values.dedup_by(|a, b| same(*a, *b));
    let known = |value: &f64| values.iter().any(|other| same(*other, *value));
    Placed {
        records,
        values: all().map(|r| place(r).filter(known)).collect(),
        all: values,
        default,
    }
}

fn choose(axis: String, placed: &Placed<'_>) -> WorkloadGrid {
    let default = placed.default;
    // The newest record of each encoding, value and seed counts, as everywhere.
    let mut cells: BTreeMap<&str, BTreeMap<(u64, u64), &RunRecord>> = BTreeMap::new();
    for (record, value) in placed.records.iter().zip(&placed.values) {
        let Some(value) = value.filter(|_| !is_fresh(record)) else { continue };
        let cells = cells.entry(&record.encoding.name).or_default();
        let held = cells.entry((value.to_bits(), record.seed)).or_insert(*record);
        if record.started() > held.started() {
            *held = record;
        }
    }
    let choices = cells
        .into_iter()
        .map(|(encoding, cells)| choice(encoding, &cells, &placed.all, default))
        .collect();
    let fresh = placed.records.iter().filter(|record| is_fresh(record));
    let fresh_seeds = fresh.map(|record| record.seed).collect();
    WorkloadGrid { axis, values: placed.all.clone(), default, choices, fresh_seeds }
}

/// Whether the record's seed had no part in choosing its value.
fn is_fresh(record: &RunRecord) -> bool {
    record.grid.as_ref().is_some_and(|point| point.fresh)
}

/// Value of a grid that was chosen for an encoding on a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenValue {
    /// Name of the workload.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// The chosen value.
    pub value: f64,
}

/// Values that the validations of all grids among the records choose.
pub fn chosen_grid_values(records: &[RunRecord]) -> Vec<ChosenValue> {
    let grids = select_grid_values(records).grids;
    let choices = grids.into_iter().flat_map(|(workload, grid)| {
        grid.choices.into_iter().map(move |choice| (workload.clone(), choice))
    });
    choices
        .map(|(workload, choice)| ChosenValue {
            workload,
            encoding: choice.encoding,
            value: choice.value,
        })
        .collect()
}

fn choice(
    encoding: &str,
    cells: &BTreeMap<(u64, u64), &RunRecord>,
    values: &[f64],
    default: Option<f64>,
) -> GridChoice {
    let seeds: BTreeSet<u64> = cells.keys().map(|(_, seed)| *seed).collect();
    let points: Vec<GridResult> = values.iter().map(|value| point(*value, &seeds, cells)).collect();
    let by_tokens = cells
        .values()
        .any(|r| Metric::from_headline(&r.task.headline).is_some_and(|m| m == Metric::Perplexity));
    let best =
        points.iter().filter_map(|p| Some((p.value, p.validation?))).min_by(|(a, x), (b, y)| {
            let exact = if by_tokens {
                std::cmp::Ordering::Equal
            } else {
                y.exact_match.total_cmp(&x.exact_match)
            };
            let at_default = |value: f64| default.is_none_or(|default| !same(value, default));
            exact
                .then(x.nll.total_cmp(&y.nll))
                .then(at_default(*a).cmp(&at_default(*b)))
                .then(a.total_cmp(b))
        });
    let run = |value: &f64| points.iter().any(|p| same(p.value, *value) && p.seeds > 0);
    let least = points.iter().find(|p| p.seeds > 0).map_or(f64::NAN, |p| p.value);
    let (value, by) = match best {
        Some((value, _)) => (value, ChosenBy::Validation),
        None => (default.filter(run).unwrap_or(least), ChosenBy::Default),
    };
    let spent = cells.values().fold(GridCost::default(), |sum, r| GridCost {
        cells: sum.cells + 1,
        steps: sum.steps.saturating_add(r.train.steps),
        seconds: sum.seconds + r.train.seconds,
        flops: sum.flops + r.flops.train_step as f64 * r.train.steps as f64,
    });
    GridChoice { encoding: encoding.to_owned(), value, by, points, spent }
}

fn point(
    value: f64,
    seeds: &BTreeSet<u64>,
    cells: &BTreeMap<(u64, u64), &RunRecord>,
) -> GridResult {
    let of = |seed: &u64| cells.get(&(value.to_bits(), *seed)).copied();
    let diverged = |r: &RunRecord| matches!(r.status, Status::Diverged { .. });
    let scores: Option<Vec<Score>> = seeds.iter().map(|seed| score(of(seed)?)).collect();
    let mean = |scores: &[Score], get: fn(&Score) -> f64| {
        scores.iter().map(get).sum::<f64>() / scores.len() as f64
    };
    GridResult {
        value,
        seeds: seeds.iter().filter_map(of).count() as u32,
        diverged: seeds.iter().filter_map(of).filter(|r| diverged(r)).count() as u32,
        validation: scores.filter(|scores| !scores.is_empty()).map(|scores| Score {
            exact_match: mean(&scores, |s| s.exact_match),
            nll: mean(&scores, |s| s.nll),
        }),
    }
}

/// Score of a cell: its last validation. A diverged training, or a validation that is not finite, scores no correct
/// answer and infinite loss.
fn score(record: &RunRecord) -> Option<Score> {
    let finite = |value: f64, otherwise: f64| if value.is_nan() { otherwise } else { value };
    match record.status {
        Status::Diverged { .. } => Some(Score { exact_match: 0.0, nll: f64::INFINITY }),
        Status::Done => record.train.validations.last().map(|v| Score {
            exact_match: finite(v.exact_match, 0.0),
            nll: finite(v.nll, f64::INFINITY),
        }),
        Status::TimedOut { .. }
        | Status::OutOfMemory { .. }
        | Status::Failed { .. }
        | Status::Interrupted => None,
    }
}

#[cfg(test)]
mod tests;
