//! Metrics of individual runs: whether and when training was solved, and the effective length.
//!
//! They are defined for tasks ranked by exact match only: text has no criterion of being solved.

use polars::prelude::*;

use super::selection::{Selection, has_status, mean};
use crate::frame::{join_cells, rows};
use records::settings::Settings;
use stats::sorted_median;

/// Median over seeds with the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianRange {
    /// Median over the seeds.
    pub median: f64,
    /// Minimum and maximum over the seeds.
    pub range: (f64, f64),
    /// Number of seeds behind the median.
    pub n: u32,
}

impl MedianRange {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let range = (*values.first()?, *values.last()?);
        Some(Self { median: sorted_median(&values), range, n: values.len() as u32 })
    }
}

/// Run metrics of one encoding on a workload, over its seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMetrics {
    /// Name of the encoding.
    pub encoding: String,
    /// Number of seeds that solved training.
    pub solved: u32,
    /// Number of seeds trained to the end or until they diverged.
    pub run: u32,
    /// Number of these seeds with validations, from which their time to solve is taken; the loss is used for the
    /// others.
    pub by_validation: u32,
    /// Steps to solve training, over the seeds that did and whose validations or losses show when.
    pub solve_steps: Option<MedianRange>,
    /// Seconds to solve training, over the same seeds.
    pub solve_seconds: Option<MedianRange>,
    /// Whether the time of one of these seeds was disturbed; see [`records::RunRecord::disturbance`].
    pub disturbed: bool,
    /// Effective length over the finished seeds, in the task's unit of length.
    pub effective: Option<MedianRange>,
    /// Whether the median effective length is the longest evaluated length, so that the true value may be larger.
    pub effective_at_least: bool,
    /// Median of the ratio of effective length to training length.
    pub effective_ratio: Option<f64>,
}

impl RunMetrics {
    /// Returns the share of seeds that solved training; `None` if none was run.
    pub fn fit_rate(&self) -> Option<f64> {
        (self.run > 0).then(|| f64::from(self.solved) / f64::from(self.run))
    }
}

rows! {
    /// Metrics of all runs of an encoding; null for a seed that did not solve training or has no effective length.
    struct EncodingRuns {
        encoding: String,
        train_len: Vec<u64>,
        solved: Vec<bool>,
        solve_step: Vec<Option<u64>>,
        solve_seconds: Vec<Option<f64>>,
        disturbed: Vec<bool>,
        validated: Vec<bool>,
        effective: Vec<Option<u64>>,
        longest: Vec<Option<u64>>,
    }
}

/// Run metrics of each encoding, sorted by name, from one cell for each seed. Empty for a task that cannot be solved.
///
/// A cell solved training if its exact match, averaged over all evaluations in distribution, is at least
/// [`Settings::solved_exact_match`]; a diverged cell did not. It solved at its first solving validation if it has
/// validations, otherwise at the first point of its curve with a loss of at most [`Settings::solved_loss`]. A point is
/// the mean loss since the point before, so the time is late by at most one interval between points.
///
/// The effective length is the largest evaluated length up to which exact match is at least
/// [`Settings::effective_exact_match`] at every evaluated length, on the splits that training drew from (those with an
/// evaluation in distribution). A length at which the cell could not be evaluated is not held.
///
/// # Errors
/// If the query fails.
pub(super) fn run_metrics(
    ended: &Selection<'_>,
    settings: &Settings,
) -> PolarsResult<Vec<RunMetrics>> {
    let first = |name: &str| col(name).first();
    let inside = ended
        .rows(|frames| &frames.evaluations)
        .filter(col("in_distribution"))
        .group_by_stable([col("cell")])
        .agg([mean("exact_match").alias("inside")]);
    let validated = ended
        .rows(|frames| &frames.validations)
        .group_by([col("cell")])
        .agg([len().alias("validations")]);
    let low_loss = ended
        .rows(|frames| &frames.curves)
        .filter(col("loss").lt_eq(lit(settings.solved_loss)))
        .group_by_stable([col("cell")])
        .agg([first("step"), first("seconds")]);
    // Polars takes NaN for the greatest number.
    let solved =
        col("inside").gt_eq(lit(settings.solved_exact_match)).and(col("inside").is_not_nan());
    let time = |by_validation: &str, by_loss: &str| {
        let time =
            when(col("validations").is_not_null()).then(col(by_validation)).otherwise(col(by_loss));
        when(col("solved")).then(time).otherwise(NULL.lit())
    };
    let join = |left, right| join_cells(left, right, JoinType::Left);
    let runs = [inside, validated, low_loss, effective_lengths(ended, settings)?]
        .into_iter()
        .fold(ended.cells().filter(col("headline").eq(lit("exact-match"))), join)
        .with_columns([when(has_status("diverged"))
            .then(lit(false))
            .when(has_status("done"))
            .then(solved)
            .otherwise(NULL.lit())
            .alias("solved")])
        .filter(col("solved").is_not_null())
        .with_columns([
            time("solved_step", "step").alias("solve_step"),
            time("solved_seconds", "seconds").alias("solve_seconds"),
            col("validations").is_not_null().alias("validated"),
        ])
        .group_by_stable([col("encoding")])
        .agg(EncodingRuns::COLUMNS[1..].iter().copied().map(col).collect::<Vec<_>>());
    Ok(EncodingRuns::of(runs)?.into_iter().map(metrics).collect())
}

/// Computes the columns `cell`, `effective` and `longest`: the effective length, 0 if exact match is too low at the
/// shortest length, and the longest evaluated length.
fn effective_lengths(ended: &Selection<'_>, settings: &Settings) -> PolarsResult<LazyFrame> {
    let done = || ended.cells().filter(has_status("done")).select([col("cell")]);
    let evaluations = ended.evaluations();
    let split = [col("cell"), col("split")];
    let training = evaluations
        .clone()
        .filter(col("in_distribution"))
        .select(&split)
        .unique(None, UniqueKeepStrategy::Any);
    let high = col("exact_match")
        .gt_eq(lit(settings.effective_exact_match))
        .and(col("exact_match").is_not_nan());
    let evaluated =
        evaluations.select([col("cell"), col("split"), col("len"), high.alias("holds")]);
    let skipped = ended.rows(|frames| &frames.skipped);
    let skipped =
        skipped.select([col("cell"), col("split"), col("len"), lit(false).alias("holds")]);
    let lengths = concat([evaluated, skipped], UnionArgs::default())?
        .join(training, &split, &split, JoinArgs::new(JoinType::Inner))
        .inner_join(done(), col("cell"), col("cell"));
    let lost = lengths
        .clone()
        .filter(col("holds").not())
        .group_by([col("cell")])
        .agg([col("len").min().alias("lost")]);
    let held = col("lost").is_null().or(col("len").lt(col("lost")));
    Ok(lengths.left_join(lost, col("cell"), col("cell")).group_by([col("cell")]).agg([
        col("len").filter(held).max().fill_null(lit(0_u64)).alias("effective"),
        col("len").max().alias("longest"),
    ]))
}

fn metrics(runs: EncodingRuns) -> RunMetrics {
    let lengths = runs.effective.iter().zip(&runs.longest).zip(&runs.train_len);
    let mut lengths: Vec<(u64, bool, f64)> = lengths
        .filter_map(|((len, longest), trained)| {
            let len = (*len)?;
            Some((len, Some(len) == *longest, len as f64 / *trained as f64))
        })
        .collect();
    lengths.sort_by_key(|(len, at_least, _)| (*len, *at_least));
    let ratios = lengths.iter().map(|(.., ratio)| *ratio).collect();
    RunMetrics {
        encoding: runs.encoding,
        solved: runs.solved.iter().filter(|solved| **solved).count() as u32,
        run: runs.solved.len() as u32,
        by_validation: runs.validated.iter().filter(|validated| **validated).count() as u32,
        solve_steps: MedianRange::of(
            runs.solve_step.iter().flatten().map(|step| *step as f64).collect(),
        ),
        disturbed: runs.solve_seconds.iter().zip(&runs.disturbed).any(|(s, d)| s.is_some() && *d),
        solve_seconds: MedianRange::of(runs.solve_seconds.into_iter().flatten().collect()),
        effective: MedianRange::of(lengths.iter().map(|(len, ..)| *len as f64).collect()),
        effective_at_least: lengths
            .get(lengths.len() / 2)
            .is_some_and(|(_, at_least, _)| *at_least),
        effective_ratio: MedianRange::of(ratios)
            .map(|m| m.median)
            .filter(|ratio| ratio.is_finite()),
    }
}

#[cfg(test)]
mod tests;
