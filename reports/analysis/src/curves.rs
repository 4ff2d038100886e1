//! Training curves, averaged over seeds.

use polars::prelude::*;

use super::selection::{Selection, stable};
use crate::frame::rows;
use records::Metric;
use stats::Mean;

/// Curve of a quantity by training step.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name of the encoding.
    pub encoding: String,
    /// Points, sorted by step.
    pub points: Vec<StepMean>,
}

/// Curves of the validations of one split.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitCurves {
    /// Name of the split.
    pub split: String,
    /// Curve of each encoding.
    pub curves: Vec<Curve>,
}

/// Mean over the seeds that have a value at a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepMean {
    /// Optimizer steps done so far.
    pub step: u64,
    /// Mean and interval over seeds.
    pub value: Mean,
}

rows! {
    /// Mean over the seeds with a value at a step.
    struct StepSeeds {
        encoding: String,
        step: u64,
        value: Mean,
    }
}

fn curves(points: LazyFrame, value: &str) -> PolarsResult<Vec<Curve>> {
    let by = ["encoding", "step"];
    let seeds =
        points.group_by_stable(by.map(col)).agg([col(value).alias("value")]).sort(by, stable());
    let curve = |steps: &[StepSeeds]| Curve {
        encoding: steps[0].encoding.clone(),
        points: steps.iter().map(|at| StepMean { step: at.step, value: at.value }).collect(),
    };
    Ok(StepSeeds::of(seeds)?.chunk_by(|a, b| a.encoding == b.encoding).map(curve).collect())
}

/// Computes curves of the training loss, in nats per scored token.
///
/// # Errors
/// If the query fails.
pub(super) fn training(counted: &Selection<'_>) -> PolarsResult<Vec<Curve>> {
    curves(counted.rows(|frames| &frames.curves), "loss")
}

/// Computes curves of the headline metric in validations; negative log-likelihood if the headline metric is
/// perplexity.
///
/// # Errors
/// If the query fails.
pub(super) fn validation(counted: &Selection<'_>, headline: Metric) -> PolarsResult<Vec<Curve>> {
    curves(counted.rows(|frames| &frames.validations), headline.column())
}

rows! {
    struct ValidatedSplit {
        split: String,
    }
}

/// Computes curves as [`validation`], for each further split that was validated.
///
/// # Errors
/// If a query fails.
pub(super) fn split_validation(
    counted: &Selection<'_>,
    headline: Metric,
) -> PolarsResult<Vec<SplitCurves>> {
    let points = counted.rows(|frames| &frames.split_validations);
    let splits = points.clone().group_by_stable([col("split")]).agg([len()]);
    let of = |ValidatedSplit { split }: ValidatedSplit| {
        let own = points.clone().filter(col("split").eq(lit(split.as_str())));
        Ok(SplitCurves { curves: curves(own, headline.column())?, split })
    };
    ValidatedSplit::of(splits)?.into_iter().map(of).collect()
}
