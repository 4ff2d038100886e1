//! Everything a page shows, computed once; the formats only lay it out.

mod skipped;

pub use skipped::SkippedEvals;

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::DataFrame;

use self::skipped::skipped_evals;
use crate::ablation::Ablation;
use crate::aggregate::{Aggregate, aggregate, aggregate_frame};
use crate::frame::{evals_frame, runs_frame};
use crate::grid::{Grid, GridReport, settle};
use crate::outcome::{Outcome, outcomes};
use crate::record::{RunRecord, Status};
use crate::report::{ReportError, ReportMeta};
use crate::select::{NotCounted, select, warnings};
use crate::sentences::{NOTHING, workload_sentence};
use crate::settings::Settings;
use crate::standing::{Contest, Metric, Region};
use crate::stats::Estimate;

/// A report before it has a format.
#[derive(Debug, Clone)]
pub struct Report {
    /// Title, command and skipped cells, as the caller gave them.
    pub meta: ReportMeta,
    /// What "solved" and "effective length" mean.
    pub settings: Settings,
    /// All encodings of all records, sorted by name: the order of colours in every figure.
    pub encodings: Vec<Encoding>,
    /// Sorted by name.
    pub workloads: Vec<Workload>,
    /// One per workload.
    pub sentences: Vec<String>,
    /// What makes the cells hard to compare.
    pub warnings: Vec<String>,
    /// All records, sorted by workload, encoding, seed and key.
    pub cells: Vec<RunRecord>,
    /// Cells without influence on any number.
    pub not_counted: Vec<NotCounted>,
    /// Evaluations that were not possible.
    pub skipped_evals: Vec<SkippedEvals>,
    /// Aggregated evaluations; see [`aggregate_frame`].
    pub aggregate: DataFrame,
    /// All evaluations of all records; see [`evals_frame`].
    pub evals: DataFrame,
    /// All records; see [`runs_frame`].
    pub runs: DataFrame,
}

/// An encoding as the report calls and colours it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    /// Name of the suite's expression.
    pub name: String,
    /// Its label, or its name where several share the label.
    pub display: String,
    /// Registry id.
    pub id: String,
    /// Place in the sorted list: chooses colour, line and marker.
    pub slot: usize,
}

/// A task-and-sizes group.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The task's label.
    pub task: String,
    /// What ranks.
    pub headline: Metric,
    /// What lengths count.
    pub len_unit: String,
    /// The headline metric of guessing.
    pub chance: Option<f64>,
    /// Lengths in training (one, unless the records disagree).
    pub train_lens: Vec<u64>,
    /// In distribution, up to the training length.
    pub inside: Contest,
    /// Everything else.
    pub beyond: Contest,
    /// What the seeds achieved, one for each encoding; empty for tasks that cannot be solved.
    pub outcomes: Vec<Outcome>,
    /// Changes of [`Settings::ablation_base`], in distribution and beyond; empty without a base.
    pub ablations: Vec<Ablation>,
    /// The workload's grid; all other fields are then about the values chosen of it.
    pub grid: Option<GridReport>,
    /// Aggregated evaluations of this workload.
    pub rows: Vec<Aggregate>,
    /// Mean loss over seeds by step, for each encoding.
    pub training: Vec<Curve>,
    /// What each encoding costs.
    pub costs: Vec<Cost>,
}

/// A training curve: the mean over the seeds that have a loss at that step.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name of the encoding.
    pub encoding: String,
    /// Step and loss in nats per scored token.
    pub points: Vec<(u64, f64)>,
}

/// What an encoding costs on a workload; means over seeds of finished cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Name of the encoding.
    pub encoding: String,
    /// Parameters of the model.
    pub params_total: u64,
    /// Parameters of the encoding.
    pub params_encoding: u64,
    /// Analytic FLOPs of a training step.
    pub flops_train_step: u64,
    /// Tokens per second in training.
    pub tokens_per_second: Option<f64>,
    /// Seconds of a step (mean over seeds of the median).
    pub step_seconds: Option<f64>,
    /// Its step time over that of `rope`.
    pub step_ratio: Option<f64>,
    /// Highest peak memory.
    pub peak_bytes: Option<u64>,
}

impl Report {
    /// [`Report::with`] the default settings.
    ///
    /// # Errors
    /// As [`Report::with`].
    pub fn new(records: &[RunRecord], meta: &ReportMeta) -> Result<Self, ReportError> {
        Self::with(records, meta, &Settings::default())
    }

    /// Computes everything from `records`, in whatever order they come.
    ///
    /// # Errors
    /// [`ReportError::Setting`] when a setting cannot work, [`ReportError::UnknownHeadline`] when a record's headline metric is none that is known,
    /// [`ReportError::Frame`] when polars fails, [`ReportError::Record`] when a record has no JSON form.
    pub fn with(
        records: &[RunRecord],
        meta: &ReportMeta,
        settings: &Settings,
    ) -> Result<Self, ReportError> {
        settings.check()?;
        let mut cells = as_on_disk(records)?;
        let suites: BTreeSet<&str> = cells.iter().map(|r| r.suite.as_str()).collect();
        if suites.len() > 1 {
            // The names of workloads are unique within a suite only.
            for record in &mut cells {
                record.workload = format!("{}: {}", record.suite, record.workload);
            }
        }
        cells.sort_by(|a, b| {
            let id = |r: &RunRecord| {
                (r.workload.clone(), r.encoding.name.clone(), r.seed, r.key.clone())
            };
            id(a).cmp(&id(b))
        });
        let settled = settle(&cells);
        let (counted, not_counted) = select(&settled.ranked);
        let (defaults, _) = select(&settled.defaults);
        let rows = aggregate(&counted);
        let encodings = encodings(&cells);
        let display: BTreeMap<String, String> =
            encodings.iter().map(|e| (e.name.clone(), e.display.clone())).collect();
        let names: BTreeSet<&str> = cells.iter().map(|r| r.workload.as_str()).collect();
        let workloads = names
            .into_iter()
            .map(|name| {
                let of = |records: &[RunRecord]| {
                    records.iter().filter(|r| r.workload == name).cloned().collect::<Vec<_>>()
                };
                let grid = settled.grids.get(name).map(|grid| (grid.clone(), of(&defaults)));
                workload(name, &settled.ranked, &counted, grid, &rows, &display, settings)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut sentences: Vec<String> = workloads
            .iter()
            .map(|w| {
                let grid = w.grid.as_ref().map_or_else(String::new, |g| g.grid.sentence());
                let (inside, beyond) = (&w.inside, &w.beyond);
                workload_sentence(&w.name, &w.len_unit, inside, beyond, &not_counted) + &grid
            })
            .collect();
        if sentences.is_empty() {
            sentences.push(NOTHING.to_owned());
        }
        Ok(Self {
            meta: meta.clone(),
            settings: settings.clone(),
            encodings,
            workloads,
            sentences,
            warnings: warnings(&cells, settings),
            not_counted,
            skipped_evals: skipped_evals(&counted),
            aggregate: aggregate_frame(&rows)?,
            evals: evals_frame(&cells)?,
            runs: runs_frame(&cells)?,
            cells,
        })
    }

    /// The encoding of this name. Every name in the report is in the list.
    pub fn encoding(&self, name: &str) -> Option<&Encoding> {
        self.encodings.iter().find(|e| e.name == name)
    }

    /// How the report calls the encoding of this name.
    pub fn display<'a>(&'a self, name: &'a str) -> &'a str {
        self.encoding(name).map_or(name, |e| &e.display)
    }

    /// When, where and by which command, a line each. The date is that of the cells, not of the
    /// rendering, so that the same records give the same bytes.
    pub fn about(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let started = || self.cells.iter().map(|r| r.started_utc.as_str());
        match (started().min(), started().max()) {
            (Some(first), Some(last)) if first == last => {
                lines.push(format!("Cells started {first}"));
            }
            (Some(first), Some(last)) => lines.push(format!("Cells started {first} to {last}")),
            _ => {}
        }
        let hosts: BTreeSet<String> = self
            .cells
            .iter()
            .map(|r| format!("Host: {}, {} threads, {}", r.host.cpu, r.host.threads, r.host.os))
            .collect();
        lines.extend(hosts);
        if !self.meta.command.is_empty() {
            lines.push(format!("Command: `{}`", self.meta.command));
        }
        lines
    }

    /// The smallest and the largest n behind any number; `None` without numbers.
    pub fn seeds(&self) -> Option<(u32, u32)> {
        let n = || self.workloads.iter().flat_map(|w| &w.rows).map(|r| r.exact_match.n);
        n().min().zip(n().max())
    }
}

/// The records as they would be read from their files: numbers rounded as [`RunRecord`] says. A
/// report made right after a run is then byte for byte the one made of the files later.
fn as_on_disk(records: &[RunRecord]) -> Result<Vec<RunRecord>, ReportError> {
    records
        .iter()
        .map(|record| {
            serde_json::to_string(record)
                .and_then(|text| serde_json::from_str(&text))
                .map_err(|source| ReportError::Record { key: record.key.clone(), source })
        })
        .collect()
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
    cells: &[RunRecord],
    counted: &[RunRecord],
    grid: Option<(Grid, Vec<RunRecord>)>,
    rows: &[Aggregate],
    display: &BTreeMap<String, String>,
    settings: &Settings,
) -> Result<Workload, ReportError> {
    let all: Vec<&RunRecord> = cells.iter().filter(|r| r.workload == name).collect();
    let counted: Vec<&RunRecord> = counted.iter().filter(|r| r.workload == name).collect();
    let mut headline = Metric::ExactMatch;
    for record in &all {
        headline = Metric::from_headline(&record.task.headline).ok_or_else(|| {
            ReportError::UnknownHeadline {
                key: record.key.clone(),
                headline: record.task.headline.clone(),
            }
        })?;
    }
    let contest = |records: &[&RunRecord], region| Contest::new(records, display, region, headline);
    let (inside, beyond) = (contest(&counted, Region::Inside), contest(&counted, Region::Beyond));
    let grid = grid.map(|(grid, defaults)| {
        let defaults: Vec<&RunRecord> = defaults.iter().collect();
        GridReport {
            grid,
            default_inside: contest(&defaults, Region::Inside),
            default_beyond: contest(&defaults, Region::Beyond),
        }
    });
    let ablations = settings.ablation_base.iter().flat_map(|base| {
        [&inside, &beyond]
            .into_iter()
            .filter(|contest| !contest.points.is_empty())
            .filter_map(|contest| Ablation::of(contest, base))
    });
    let ablations = ablations.collect();
    // A seed that diverged was trained, and did not solve: it belongs in the fit rate. The newest
    // record of its seed counts, as for the others.
    let diverged = newest_diverged(&all);
    let ended: Vec<&RunRecord> = counted.iter().copied().chain(diverged).collect();
    // Names come from the records, so there is a first one.
    let task = all.first().map(|r| r.task.clone());
    let train_lens: BTreeSet<u64> = all.iter().map(|r| r.train_len).collect();
    Ok(Workload {
        name: name.to_owned(),
        task: task.as_ref().map_or_else(String::new, |t| t.label.clone()),
        len_unit: task.as_ref().map_or_else(String::new, |t| t.len_unit.clone()),
        chance: task.and_then(|t| t.chance),
        headline,
        train_lens: train_lens.into_iter().collect(),
        outcomes: outcomes(&ended, settings),
        inside,
        beyond,
        ablations,
        grid,
        rows: rows.iter().filter(|r| r.workload == name).cloned().collect(),
        training: training(&counted),
        costs: costs(&counted),
    })
}

fn newest_diverged<'a>(records: &[&'a RunRecord]) -> Vec<&'a RunRecord> {
    let mut newest: BTreeMap<(&str, u64), &RunRecord> = BTreeMap::new();
    for record in records {
        let held = newest.entry((&record.encoding.name, record.seed)).or_insert(record);
        if (&record.started_utc, &record.key) > (&held.started_utc, &held.key) {
            *held = record;
        }
    }
    newest.into_values().filter(|r| matches!(r.status, Status::Diverged { .. })).collect()
}

fn by_encoding<'a>(records: &[&'a RunRecord]) -> BTreeMap<&'a str, Vec<&'a RunRecord>> {
    let mut groups: BTreeMap<&str, Vec<&RunRecord>> = BTreeMap::new();
    for record in records {
        groups.entry(&record.encoding.name).or_default().push(record);
    }
    groups
}

fn training(records: &[&RunRecord]) -> Vec<Curve> {
    by_encoding(records)
        .into_iter()
        .map(|(encoding, records)| {
            let mut steps: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for point in records.iter().flat_map(|r| &r.train.curve) {
                steps.entry(point.step).or_default().push(point.loss);
            }
            let points = steps
                .into_iter()
                .filter_map(|(step, losses)| Some((step, Estimate::of(&losses)?.mean)))
                .collect();
            Curve { encoding: encoding.to_owned(), points }
        })
        .collect()
}

fn costs(records: &[&RunRecord]) -> Vec<Cost> {
    let mean = |records: &[&RunRecord], get: fn(&RunRecord) -> Option<f64>| {
        let values: Vec<f64> = records.iter().filter_map(|r| get(r)).collect();
        Estimate::of(&values).map(|e| e.mean)
    };
    let groups = by_encoding(records);
    let step = |records: &[&RunRecord]| mean(records, |r| r.train.step_seconds_median);
    let yardstick = groups.get("rope").and_then(|records| step(records));
    groups
        .into_iter()
        .filter_map(|(encoding, records)| {
            let first = records.first()?;
            debug_assert!(records.iter().all(|r| r.status == Status::Done));
            let step_seconds = step(&records);
            Some(Cost {
                encoding: encoding.to_owned(),
                params_total: first.params.total,
                params_encoding: first.params.encoding,
                flops_train_step: first.flops.train_step,
                tokens_per_second: mean(&records, |r| r.train.tokens_per_second),
                step_ratio: step_seconds.zip(yardstick).map(|(a, b)| a / b),
                step_seconds,
                peak_bytes: records.iter().filter_map(|r| r.peak_bytes).max(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
