//! The complete analysis of records: everything that a report shows, as numbers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rayon::prelude::*;

use super::ablation::Ablation;
use super::aggregate::{Aggregate, aggregate};
use super::costs::{EncodingCost, costs, machines};
use super::curves::{Curve, training, validation};
use super::error::AnalysisError;
use super::gates::{GateMean, gates};
use super::grid::{GridReport, WorkloadGrid, select_grid_values};
use super::grouping::by_workload;
use super::missing_seeds::{MissingSeeds, missing_seeds};
use super::ranking::{Ranking, Region};
use super::run_metrics::{RunMetrics, run_metrics};
use super::select::{NotCounted, select};
use super::settings::Settings;
use super::skipped::{SkippedEvals, skipped_evals};
use super::slices::{SliceSet, slices};
use crate::record::{Metric, RunRecord, Status, newest_by};

/// Facts about a report that its records do not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportMeta {
    /// Title of the page.
    pub title: String,
    /// The command that produced the results.
    pub command: String,
    /// Cells or workloads without a record, each with the reason.
    pub skipped: Vec<String>,
}

/// Analysis of records, without words and without a format.
#[derive(Debug, Clone)]
pub struct Report {
    /// Title, command and skipped cells, as given by the caller.
    pub meta: ReportMeta,
    /// Criteria for solved training and effective length.
    pub settings: Settings,
    /// Encodings of all records, sorted by name, which is the order of colours in every figure.
    pub encodings: Vec<Encoding>,
    /// Workloads, sorted by name.
    pub workloads: Vec<Workload>,
    /// Records sorted by workload, encoding, seed and key; without curves and slices, which the workloads hold.
    pub cells: Vec<RunRecord>,
    /// Cells without influence on any number.
    pub not_counted: Vec<NotCounted>,
    /// Evaluations that were not possible.
    pub skipped_evals: Vec<SkippedEvals>,
    /// Seeds that some encodings of a workload lack.
    pub missing_seeds: Vec<MissingSeeds>,
}

/// Names and colour slot of an encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// Name of the suite's expression.
    pub name: String,
    /// Label, or the name where several encodings share the label.
    pub display: String,
    /// Registry id, for example `rope`.
    pub id: String,
    /// Index in the sorted list; selects colour, dash and marker.
    pub slot: usize,
}

/// Results on one workload: a task at one size.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Index among the workloads.
    pub index: usize,
    /// Name of the workload.
    pub name: String,
    /// Label of the task.
    pub task: String,
    /// Metric that ranks the encodings.
    pub headline: Metric,
    /// Unit of lengths, for example `tokens`.
    pub len_unit: String,
    /// Headline metric of guessing, if it is known.
    pub chance: Option<f64>,
    /// Lengths in training (one, unless the records disagree).
    pub train_lens: Vec<u64>,
    /// Ranking in distribution, up to the training length.
    pub inside: Ranking,
    /// Ranking over all other evaluations.
    pub beyond: Ranking,
    /// Metrics of individual runs, one for each encoding; empty for tasks that cannot be solved.
    pub run_metrics: Vec<RunMetrics>,
    /// Changes of [`Settings::ablation_base`], in distribution and beyond; empty without a base.
    pub ablations: Vec<Ablation>,
    /// The grid, if there is one; all other fields are then at the selected values.
    pub grid: Option<GridReport>,
    /// Aggregated evaluations of this workload.
    pub rows: Vec<Aggregate>,
    /// Loss in nats by step, for each encoding.
    pub training: Vec<Curve>,
    /// The headline metric in validations by step, for each encoding that has some; nll for perplexity.
    pub validation: Vec<Curve>,
    /// Results by properties of samples and tokens.
    pub slices: Vec<SliceSet>,
    /// Agreement of gates with the counted tokens, by head.
    pub gates: Vec<GateMean>,
    /// Costs of each encoding.
    pub costs: Vec<EncodingCost>,
    /// Distinct conditions of its counted cells; times and memory are comparable only if there is one.
    pub machines: Vec<String>,
    /// Range of its cells in [`Report::cells`].
    pub(super) cells: Range<usize>,
}

impl Workload {
    /// Ranking beyond training, or in distribution where nothing else was evaluated.
    pub fn deciding(&self) -> &Ranking {
        if self.beyond.points.is_empty() { &self.inside } else { &self.beyond }
    }
}

impl Report {
    /// [`Report::with`] the default settings.
    ///
    /// # Errors
    /// As [`Report::with`].
    pub fn new<'a>(
        records: impl Into<Cow<'a, [RunRecord]>>,
        meta: &ReportMeta,
    ) -> Result<Self, AnalysisError> {
        Self::with(records, meta, &Settings::default())
    }

    /// Analyses `records`, in any order. Owned records are not copied.
    ///
    /// # Errors
    /// [`AnalysisError::Setting`] when a setting cannot work, [`AnalysisError::UnknownHeadline`] when a record's
    /// headline metric is none that is known.
    pub fn with<'a>(
        records: impl Into<Cow<'a, [RunRecord]>>,
        meta: &ReportMeta,
        settings: &Settings,
    ) -> Result<Self, AnalysisError> {
        settings.check()?;
        let mut cells = records.into().into_owned();
        let suites: BTreeSet<&str> = cells.iter().map(|r| r.suite.as_str()).collect();
        if suites.len() > 1 {
            // The names of workloads are unique within a suite only.
            for record in &mut cells {
                record.workload = format!("{}: {}", record.suite, record.workload);
            }
        }
        cells.par_sort_by(|a, b| {
            (&a.workload, &a.encoding.name, a.seed, &a.key).cmp(&(
                &b.workload,
                &b.encoding.name,
                b.seed,
                &b.key,
            ))
        });
        let settled = select_grid_values(&cells);
        let (counted, not_counted) = select(settled.selected.iter().copied());
        let (defaults, _) = select(settled.defaults.iter().copied());
        let rows = aggregate(counted.iter().copied());
        let encodings = encodings(&cells);
        let display: BTreeMap<String, String> =
            encodings.iter().map(|e| (e.name.clone(), e.display.clone())).collect();
        let ranked = by_workload(&settled.selected);
        let (counted_of, defaults_of) = (by_workload(&counted), by_workload(&defaults));
        let none: &[&RunRecord] = &[];
        // Results are gathered before the first error is looked for, so that it is always the same one.
        let found: Vec<Result<Workload, AnalysisError>> = ranked
            .par_iter()
            .map(|(name, ranked)| {
                let counted = counted_of.get(name).map_or(none, |own| own);
                let defaults = defaults_of.get(name).map_or(none, |own| own);
                let grid = settled.grids.get(*name).map(|grid| (grid.clone(), defaults));
                workload(name, ranked, counted, grid, &rows, &display, settings)
            })
            .collect();
        let mut workloads = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (index, w) in workloads.iter_mut().enumerate() {
            w.index = index;
            // Of all cells: those at values of a grid that were not chosen have a place too.
            let start = cells.partition_point(|r| r.workload < w.name);
            let count = cells[start..].partition_point(|r| r.workload == w.name);
            w.cells = start..start + count;
        }
        let skipped_evals = skipped_evals(&counted);
        let missing_seeds = missing_seeds(&counted);
        // The largest parts of a record are in the workloads by now, and formats need room.
        cells.par_iter_mut().for_each(|record| {
            record.train.curve = Vec::new();
            for eval in &mut record.evals {
                eval.slices = Vec::new();
            }
        });
        Ok(Self {
            meta: meta.clone(),
            settings: settings.clone(),
            encodings,
            workloads,
            not_counted,
            skipped_evals,
            missing_seeds,
            cells,
        })
    }

    /// Looks up an encoding by name. Every name in the report is in the list.
    pub fn encoding(&self, name: &str) -> Option<&Encoding> {
        self.encodings.iter().find(|e| e.name == name)
    }

    /// Display name of an encoding.
    pub fn display<'a>(&'a self, name: &'a str) -> &'a str {
        self.encoding(name).map_or(name, |e| &e.display)
    }

    /// Smallest and largest number of seeds behind any number; `None` without numbers.
    pub fn seeds(&self) -> Option<(u32, u32)> {
        let n = || self.workloads.iter().flat_map(|w| &w.rows).map(|r| r.exact_match.n);
        n().min().zip(n().max())
    }
}

fn encodings(cells: &[RunRecord]) -> Vec<Encoding> {
    let infos: BTreeMap<&str, &RunRecord> =
        cells.iter().map(|r| (r.encoding.name.as_str(), r)).collect();
    let with_label = |label: &str| infos.values().filter(|r| r.encoding.label == label).count();
    infos
        .values()
        .enumerate()
        .map(|(slot, r)| Encoding {
            name: r.encoding.name.clone(),
            // `RoPE` stays the plain one's label beside `rope(linear)`.
            display: if with_label(&r.encoding.label) == 1 || r.encoding.name == r.encoding.id {
                r.encoding.label.clone()
            } else {
                r.encoding.name.clone()
            },
            id: r.encoding.id.clone(),
            slot,
        })
        .collect()
}

fn workload(
    name: &str,
    all: &[&RunRecord],
    counted: &[&RunRecord],
    grid: Option<(WorkloadGrid, &[&RunRecord])>,
    rows: &[Aggregate],
    display: &BTreeMap<String, String>,
    settings: &Settings,
) -> Result<Workload, AnalysisError> {
    let mut headline = Metric::ExactMatch;
    for record in all {
        headline = Metric::from_headline(&record.task.headline).ok_or_else(|| {
            AnalysisError::UnknownHeadline {
                key: record.key.clone(),
                headline: record.task.headline.clone(),
            }
        })?;
    }
    let ranking = |records: &[&RunRecord], region| Ranking::new(records, display, region, headline);
    let (inside, beyond) = (ranking(counted, Region::Inside), ranking(counted, Region::Beyond));
    let grid = grid.map(|(grid, defaults)| GridReport {
        grid,
        default_inside: ranking(defaults, Region::Inside),
        default_beyond: ranking(defaults, Region::Beyond),
    });
    let ablations = settings.ablation_base.iter().flat_map(|base| {
        [&inside, &beyond]
            .into_iter()
            .filter(|ranking| !ranking.points.is_empty())
            .filter_map(|ranking| Ablation::of(ranking, base))
    });
    let ablations = ablations.collect();
    // A seed that diverged was trained, and did not solve: it belongs in the fit rate. The newest
    // record of its seed counts, as for the others.
    let diverged = newest_diverged(all);
    let ended: Vec<&RunRecord> = counted.iter().copied().chain(diverged).collect();
    // Names come from the records, so there is a first one.
    let task = all.first().map(|r| r.task.clone());
    let train_lens: BTreeSet<u64> = all.iter().map(|r| r.train_len).collect();
    Ok(Workload {
        index: 0,
        name: name.to_owned(),
        task: task.as_ref().map_or_else(String::new, |t| t.label.clone()),
        len_unit: task.as_ref().map_or_else(String::new, |t| t.len_unit.clone()),
        chance: task.and_then(|t| t.chance),
        headline,
        train_lens: train_lens.into_iter().collect(),
        run_metrics: run_metrics(&ended, settings),
        inside,
        beyond,
        ablations,
        grid,
        rows: rows.iter().filter(|r| r.workload == name).cloned().collect(),
        training: training(counted),
        validation: validation(counted, headline),
        slices: slices(counted),
        gates: gates(counted),
        costs: costs(counted),
        machines: machines(counted),
        cells: 0..0,
    })
}

/// The newest record of each seed, where that seed diverged.
fn newest_diverged<'a>(records: &[&'a RunRecord]) -> Vec<&'a RunRecord> {
    let newest = newest_by(records.iter().copied(), |r| (r.encoding.name.as_str(), r.seed));
    newest.into_values().filter(|r| matches!(r.status, Status::Diverged { .. })).collect()
}

#[cfg(test)]
mod tests;
