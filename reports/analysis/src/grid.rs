//! Grids: cells that differ in one value of their configuration, with the same values for all encodings.
//!
//! For each encoding one value is selected for all of its seeds: the one with the best mean *validation* over seeds.
//! Validations are drawn from another random stream than the evaluations that a report shows, so the selection does
//! not use the numbers that are reported. METHODOLOGY.md describes the bias that remains.

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::*;
use serde_json::Value;

use super::error::AnalysisError;
use super::ranking::Ranking;
use super::selection::{has_status, stable};
use crate::frame::{Frames, rows};
use records::RunRecord;

/// The grid of a workload with the value selected for each encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadGrid {
    /// Path into a cell's configuration of the setting that varies.
    pub axis: String,
    /// Values of the grid, ascending.
    pub values: Vec<f64>,
    /// Value of the axis in the suite without a grid, read from the newest cell.
    pub default: Option<f64>,
    /// Selected values, one for each encoding, sorted by name.
    pub choices: Vec<GridChoice>,
    /// Seeds that had no part in the selection and whose results stand for the selected values; empty: those of the
    /// selection.
    pub fresh_seeds: BTreeSet<u64>,
}

/// Grid of a workload, with the rankings at the default value. All other results of the workload are at the selected
/// values.
#[derive(Debug, Clone)]
pub struct GridReport {
    /// Grid with the selected values.
    pub grid: WorkloadGrid,
    /// Rankings of the regions with evaluations, every encoding at the default value.
    pub defaults: Vec<Ranking>,
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
    /// Total cost of all cells of the encoding that take part in the selection; fresh seeds do not.
    pub spent: GridCost,
}

/// Criterion by which a value was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// The best mean of the last validations over seeds.
    Validation,
    /// The default value, or the smallest value if the default was not run, because no value has a validation of
    /// every seed.
    Default,
}

/// Result of an encoding at one value of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridResult {
    /// Value of the setting.
    pub value: f64,
    /// Number of seeds with a record.
    pub seeds: u32,
    /// Number of seeds that diverged; they are scored as exact match 0 and infinite loss.
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

/// Total cost of cells. Diverged and failed cells are included up to their last step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GridCost {
    /// Number of cells that were run.
    pub cells: u32,
    /// Optimizer steps of all cells.
    pub steps: u64,
    /// Wall-clock seconds of training.
    pub seconds: f64,
    /// Whether the time of a cell was disturbed; see [`records::RunRecord::disturbance`].
    pub disturbed: bool,
    /// Analytic floating-point operations of training.
    pub flops: f64,
}

impl WorkloadGrid {
    /// Returns the selection for an encoding by its name; `None` if the grid has no record of it.
    pub fn choice(&self, encoding: &str) -> Option<&GridChoice> {
        self.choices.iter().find(|choice| choice.encoding == encoding)
    }

    /// Returns the last component of the path, for example `learning_rate`.
    pub fn short_axis(&self) -> &str {
        self.axis.rsplit('.').next().unwrap_or(&self.axis)
    }

    /// Returns the names of encodings whose selected value is the first or last of a grid of three or more values: a
    /// wider grid may contain a better one.
    pub fn at_the_edge(&self) -> Vec<&str> {
        let (Some(first), Some(last)) = (self.values.first(), self.values.last()) else {
            return Vec::new();
        };
        let edge = |value: f64| same(value, *first) || same(value, *last);
        let at = self.choices.iter().filter(|c| c.by == ChosenBy::Validation && edge(c.value));
        if self.values.len() < 3 { Vec::new() } else { at.map(|c| c.encoding.as_str()).collect() }
    }
}

/// Cells of a workload split by the values selected from its grid.
#[derive(Debug)]
pub struct GridSelection {
    /// Cells without a grid value and those at the selected values.
    pub selected: DataFrame,
    /// Cells at the default value of the grid.
    pub defaults: DataFrame,
    /// The grid, if the workload has one.
    pub grid: Option<WorkloadGrid>,
}

rows! {
    /// Grid setting and value of a cell.
    struct GridPlace {
        grid_axis: Option<String>,
        grid_value: Option<f64>,
        grid_default: Option<bool>,
        grid_fresh: bool,
        seed: u64,
        config: String,
    }
}

/// Selects a value for each encoding of one workload.
///
/// # Errors
/// If a query fails.
pub fn select_grid_values(frames: &Frames) -> PolarsResult<GridSelection> {
    // From the oldest to the newest.
    let cells = frames.cells.sort(["newest_utc", "key"], stable())?;
    let placed = GridPlace::of(cells.clone().lazy())?;
    let Some(axis) = placed.iter().rev().find_map(|cell| cell.grid_axis.clone()) else {
        return Ok(GridSelection {
            selected: frames.cells.clone(),
            defaults: cells.clear(),
            grid: None,
        });
    };
    let (places, values, default) = values(&axis, &placed);
    let cells = cells.hstack(&[Column::new("value".into(), &places)])?.lazy();
    // Fresh seeds have no part in the selection; where there are any, results are theirs alone.
    let fresh_seeds: BTreeSet<u64> =
        placed.iter().filter(|cell| cell.grid_fresh).map(|cell| cell.seed).collect();
    let selecting = cells.clone().filter(col("grid_fresh").not());
    let choices = choices(selecting.clone(), frames, &values, default)?;
    let results = if fresh_seeds.is_empty() { cells } else { cells.filter(col("grid_fresh")) };
    let chosen = df!(
        "encoding" => choices.iter().map(|choice| choice.encoding.as_str()).collect::<Vec<_>>(),
        "chosen" => choices.iter().map(|choice| choice.value).collect::<Vec<_>>(),
    )?;
    let is_chosen =
        col("value").is_null().or(col("chosen").is_null()).or(col("value").eq(col("chosen")));
    let selected =
        results.left_join(chosen.lazy(), col("encoding"), col("encoding")).filter(is_chosen);
    let is_default = default.map_or(lit(false), |default| col("value").eq(lit(default)));
    let in_order = |cells: LazyFrame| cells.sort(["cell"], stable()).collect();
    Ok(GridSelection {
        selected: in_order(selected)?,
        defaults: in_order(selecting.filter(is_default))?,
        grid: Some(WorkloadGrid { axis, values, default, choices, fresh_seeds }),
    })
}

/// Value of a grid that was chosen for an encoding on a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenValue {
    /// Name of the workload.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Value of the setting that was chosen.
    pub value: f64,
}

/// Values that the validations of all grids among the records choose.
///
/// # Errors
/// [`AnalysisError::Frame`] if a query fails.
pub fn chosen_grid_values(records: &[RunRecord]) -> Result<Vec<ChosenValue>, AnalysisError> {
    let mut workloads: BTreeMap<&str, Vec<RunRecord>> = BTreeMap::new();
    for record in records {
        workloads.entry(&record.workload).or_default().push(record.clone());
    }
    let mut chosen = Vec::new();
    for (workload, own) in workloads {
        let Some(grid) = select_grid_values(&Frames::of(&own)?)?.grid else { continue };
        chosen.extend(grid.choices.into_iter().map(|choice| ChosenValue {
            workload: workload.to_owned(),
            encoding: choice.encoding,
            value: choice.value,
        }));
    }
    Ok(chosen)
}

fn same(a: f64, b: f64) -> bool {
    a.total_cmp(&b).is_eq()
}

/// Returns the grid value of each cell, all values, and the default. A cell that was run before the suite had a grid
/// is assigned by its configuration. If no cell is marked as the default, the newest such cell defines the default. A
/// cell at no value of the grid, for example of an older suite, has `None`.
fn values(axis: &str, cells: &[GridPlace]) -> (Vec<Option<f64>>, Vec<f64>, Option<f64>) {
    let pointer = format!("/{}", axis.replace('.', "/"));
    let on_axis = |cell: &&GridPlace| cell.grid_axis.as_deref() == Some(axis);
    let configured = |cell: &GridPlace| {
        let config: Value = serde_json::from_str(&cell.config).ok()?;
        config.pointer(&pointer)?.as_f64()
    };
    let place = |cell: &GridPlace| {
        Some(cell).filter(on_axis).and_then(|cell| cell.grid_value).or_else(|| configured(cell))
    };
    let marked = cells.iter().rev().find(|cell| on_axis(cell) && cell.grid_default == Some(true));
    let before = || cells.iter().rev().filter(|cell| cell.grid_axis.is_none()).find_map(configured);
    let default = marked.map_or_else(before, place);
    let mut values: Vec<f64> =
        cells.iter().filter(on_axis).filter_map(|cell| cell.grid_value).chain(default).collect();
    values.sort_by(f64::total_cmp);
    values.dedup_by(|a, b| same(*a, *b));
    let known = |value: &f64| values.iter().any(|other| same(*other, *value));
    (cells.iter().map(|cell| place(cell).filter(known)).collect(), values, default)
}

rows! {
    /// Cells of an encoding at one value, with the validation scores of those that have one.
    struct CellsAtValue {
        encoding: String,
        value: f64,
        seeds: u32,
        diverged: u32,
        exact_match: Vec<f64>,
        nll: Vec<f64>,
    }
}

rows! {
    /// All cells of an encoding.
    struct CellsOfEncoding {
        encoding: String,
        seeds: u32,
        by_tokens: bool,
        cells: u32,
        train_steps: Vec<u64>,
        train_seconds: Vec<f64>,
        disturbed: bool,
        flops_train_step: Vec<u64>,
    }
}

/// Selects a value for each encoding, from cells with their place in the column `value`.
fn choices(
    cells: LazyFrame,
    frames: &Frames,
    values: &[f64],
    default: Option<f64>,
) -> PolarsResult<Vec<GridChoice>> {
    let validations = frames.validations.clone().lazy().group_by_stable([col("cell")]);
    let last = validations.agg(["exact_match", "nll"].map(|name| col(name).last()));
    // A diverged training, or a validation that is not finite, scores no correct answer and infinite loss.
    let score = |name: &str, worst: f64| {
        let value = when(col(name).is_nan()).then(lit(worst)).otherwise(col(name));
        when(has_status("diverged"))
            .then(lit(worst))
            .when(has_status("done"))
            .then(value)
            .otherwise(NULL.lit())
            .alias(name)
    };
    // The newest cell of each encoding, value and seed is used, as in all analyses.
    let id = ["encoding", "value", "seed"];
    let newest = cells
        .filter(col("value").is_not_null())
        .unique_stable(Some(cols(id)), UniqueKeepStrategy::Last)
        .left_join(last, col("cell"), col("cell"))
        .with_columns([score("exact_match", 0.0), score("nll", f64::INFINITY)])
        .sort(id, stable());
    let at_values = newest.clone().group_by_stable(["encoding", "value"].map(col)).agg([
        len().alias("seeds"),
        has_status("diverged").sum().alias("diverged"),
        col("exact_match").drop_nulls(),
        col("nll").drop_nulls(),
    ]);
    let all_values = newest.group_by_stable([col("encoding")]).agg([
        col("seed").n_unique().alias("seeds"),
        col("headline").eq(lit("perplexity")).any(true).alias("by_tokens"),
        len().alias("cells"),
        col("train_steps"),
        col("train_seconds"),
        col("disturbed").any(true),
        col("flops_train_step"),
    ]);
    let at_values = CellsAtValue::of(at_values)?;
    let choice = |all: CellsOfEncoding| {
        let of_value = |value: f64| {
            at_values.iter().find(|at| at.encoding == all.encoding && same(at.value, value))
        };
        let points =
            values.iter().map(|value| point(*value, of_value(*value), all.seeds)).collect();
        choice(all, points, default)
    };
    Ok(CellsOfEncoding::of(all_values)?.into_iter().map(choice).collect())
}

fn choice(all: CellsOfEncoding, points: Vec<GridResult>, default: Option<f64>) -> GridChoice {
    let best =
        points.iter().filter_map(|p| Some((p.value, p.validation?))).min_by(|(a, x), (b, y)| {
            // Means that are equal but for rounding tie.
            let exact_match = |score: &Score| (score.exact_match * 1e12).round();
            let exact = if all.by_tokens {
                std::cmp::Ordering::Equal
            } else {
                exact_match(y).total_cmp(&exact_match(x))
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
    let work = all.flops_train_step.iter().zip(&all.train_steps);
    let spent = GridCost {
        cells: all.cells,
        steps: all.train_steps.iter().fold(0, |sum, steps| steps.saturating_add(sum)),
        seconds: all.train_seconds.iter().fold(0.0, |sum, seconds| sum + seconds),
        disturbed: all.disturbed,
        flops: work.fold(0.0, |sum, (flops, steps)| sum + *flops as f64 * *steps as f64),
    };
    GridChoice { encoding: all.encoding, value, by, points, spent }
}

/// Returns the result at a value; its validation is set if all `seeds` seeds of the encoding have one.
fn point(value: f64, cells: Option<&CellsAtValue>, seeds: u32) -> GridResult {
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let scored = cells.filter(|cells| cells.exact_match.len() == seeds as usize);
    GridResult {
        value,
        seeds: cells.map_or(0, |cells| cells.seeds),
        diverged: cells.map_or(0, |cells| cells.diverged),
        validation: scored
            .map(|cells| Score { exact_match: mean(&cells.exact_match), nll: mean(&cells.nll) }),
    }
}

#[cfg(test)]
mod tests;
