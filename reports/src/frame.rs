//! Polars tables of records: evaluations, runs, training curves, and aggregates over seeds.

use std::collections::BTreeSet;

use polars::prelude::*;

use crate::record::RunRecord;
use crate::stats::{Estimate, half_width_factor};

/// One row per evaluation of every record, in the records' order, with all identifying columns.
/// `status` tells the state of the record; only `done` rows belong in aggregates.
///
/// # Errors
/// When polars cannot build the frame.
pub fn evals_frame(records: &[RunRecord]) -> PolarsResult<DataFrame> {
    let rows: Vec<_> = records
        .iter()
        .flat_map(|record| record.evals.iter().map(move |eval| (record, eval)))
        .collect();
    macro_rules! column {
        ($f:expr) => {
            rows.iter().map($f).collect::<Vec<_>>()
        };
    }
    df!(
        "suite" => column!(|(r, _)| r.suite.as_str()),
        "workload" => column!(|(r, _)| r.workload.as_str()),
        "task" => column!(|(r, _)| r.task.id.as_str()),
        "task_version" => column!(|(r, _)| r.task.version),
        "headline" => column!(|(r, _)| r.task.headline.as_str()),
        "encoding" => column!(|(r, _)| r.encoding.name.as_str()),
        "encoding_id" => column!(|(r, _)| r.encoding.id.as_str()),
        "seed" => column!(|(r, _)| r.seed),
        "key" => column!(|(r, _)| r.key.as_str()),
        "status" => column!(|(r, _)| r.status.name()),
        "train_len" => column!(|(r, _)| r.train_len),
        "split" => column!(|(_, e)| e.split.as_str()),
        "in_distribution" => column!(|(_, e)| e.in_distribution),
        "len" => column!(|(_, e)| e.len),
        "samples" => column!(|(_, e)| e.samples),
        "scored_tokens" => column!(|(_, e)| e.scored_tokens),
        "exact_match" => column!(|(_, e)| e.exact_match),
        "token_accuracy" => column!(|(_, e)| e.token_accuracy),
        "nll" => column!(|(_, e)| e.nll),
        "perplexity" => column!(|(_, e)| e.perplexity),
        "bits_per_byte" => column!(|(_, e)| e.bits_per_byte),
        "seconds" => column!(|(_, e)| e.seconds),
        "backend" => column!(|(r, _)| r.backend.as_str()),
        "engine" => column!(|(r, _)| r.engine.as_str()),
        "precision" => column!(|(r, _)| r.precision.as_str()),
        "commit" => column!(|(r, _)| r.commit.as_deref()),
        "dirty" => column!(|(r, _)| r.dirty),
        "host_cpu" => column!(|(r, _)| r.host.cpu.as_str()),
    )
}

/// One row per record, whatever its status: what it cost, where it ran, how it ended.
///
/// # Errors
/// When polars cannot build the frame.
pub fn runs_frame(records: &[RunRecord]) -> PolarsResult<DataFrame> {
    macro_rules! column {
        ($f:expr) => {
            records.iter().map($f).collect::<Vec<_>>()
        };
    }
    let reasons: Vec<String> = records.iter().map(|r| r.status.reason()).collect();
    df!(
        "suite" => column!(|r| r.suite.as_str()),
        "workload" => column!(|r| r.workload.as_str()),
        "task" => column!(|r| r.task.id.as_str()),
        "encoding" => column!(|r| r.encoding.name.as_str()),
        "encoding_id" => column!(|r| r.encoding.id.as_str()),
        "seed" => column!(|r| r.seed),
        "key" => column!(|r| r.key.as_str()),
        "status" => column!(|r| r.status.name()),
        "reason" => reasons,
        "train_len" => column!(|r| r.train_len),
        "params_total" => column!(|r| r.params.total),
        "params_encoding" => column!(|r| r.params.encoding),
        "flops_train_step" => column!(|r| r.flops.train_step),
        "flops_forward_per_token" => column!(|r| r.flops.forward_per_token),
        "train_steps" => column!(|r| r.train.steps),
        "batch_size" => column!(|r| r.train.batch_size),
        "train_tokens" => column!(|r| r.train.tokens),
        "final_loss" => column!(|r| r.train.final_loss),
        "train_seconds" => column!(|r| r.train.seconds),
        "step_seconds_median" => column!(|r| r.train.step_seconds_median),
        "tokens_per_second" => column!(|r| r.train.tokens_per_second),
        "peak_bytes" => column!(|r| r.peak_bytes),
        "host_cpu" => column!(|r| r.host.cpu.as_str()),
        "threads" => column!(|r| r.host.threads),
        "jobs" => column!(|r| r.host.jobs),
        "backend" => column!(|r| r.backend.as_str()),
        "engine" => column!(|r| r.engine.as_str()),
        "precision" => column!(|r| r.precision.as_str()),
        "commit" => column!(|r| r.commit.as_deref()),
        "dirty" => column!(|r| r.dirty),
        "started_utc" => column!(|r| r.started_utc.as_str()),
    )
}

/// One row per point of every training curve.
///
/// # Errors
/// When polars cannot build the frame.
pub fn curves_frame(records: &[RunRecord]) -> PolarsResult<DataFrame> {
    let rows: Vec<_> = records
        .iter()
        .flat_map(|record| record.train.curve.iter().map(move |point| (record, point)))
        .collect();
    macro_rules! column {
        ($f:expr) => {
            rows.iter().map($f).collect::<Vec<_>>()
        };
    }
    df!(
        "workload" => column!(|(r, _)| r.workload.as_str()),
        "encoding" => column!(|(r, _)| r.encoding.name.as_str()),
        "seed" => column!(|(r, _)| r.seed),
        "key" => column!(|(r, _)| r.key.as_str()),
        "status" => column!(|(r, _)| r.status.name()),
        "step" => column!(|(_, p)| p.step),
        "loss" => column!(|(_, p)| p.loss),
        "learning_rate" => column!(|(_, p)| p.learning_rate),
        "seconds" => column!(|(_, p)| p.seconds),
    )
}

/// The metrics that are aggregated; perplexity follows from `nll`.
const METRICS: [&str; 3] = ["exact_match", "token_accuracy", "nll"];

/// Aggregates a frame of [`evals_frame`] over seeds: one row per workload, encoding, split and
/// length, sorted, with `n` and for each of exact match, token accuracy and nll `_mean`, `_std`,
/// `_ci_low`, `_ci_high` (Student's t, 95 %, as [`Estimate`]; empty for n = 1). Only `done` rows enter.
///
/// Perplexity is aggregated where it is additive: `perplexity`, `perplexity_ci_low` and
/// `perplexity_ci_high` are `exp` of the mean nll and of the ends of its interval. One bad seed
/// (nll 20) would drown an arithmetic mean of perplexities.
///
/// The records of one cell must be unique (one per seed); [`crate::write_report`] sees to it.
///
/// # Errors
/// When a column is missing or polars fails.
pub fn aggregate(evals: &DataFrame) -> PolarsResult<DataFrame> {
    let mut summaries = vec![
        len().cast(DataType::UInt32).alias("n"),
        col("in_distribution").first(),
        col("train_len").first(),
        col("headline").first(),
        col("bits_per_byte").mean().alias("bits_per_byte_mean"),
    ];
    let mut bounds = Vec::new();
    for metric in METRICS {
        summaries.push(col(metric).mean().alias(format!("{metric}_mean")));
        summaries.push(col(metric).std(1).alias(format!("{metric}_std")));
        let mean = || col(format!("{metric}_mean"));
        let half = || col(format!("{metric}_std")) * col("factor");
        bounds.push((mean() - half()).alias(format!("{metric}_ci_low")));
        bounds.push((mean() + half()).alias(format!("{metric}_ci_high")));
    }
    let keys = ["workload", "encoding", "split", "len"];
    let mut columns: Vec<Expr> = keys.map(col).to_vec();
    columns.extend(["in_distribution", "train_len", "headline", "n"].map(col));
    for metric in METRICS {
        columns.extend(
            ["mean", "std", "ci_low", "ci_high"].map(|part| col(format!("{metric}_{part}"))),
        );
    }
    columns.push(col("bits_per_byte_mean"));
    let groups = evals
        .clone()
        .lazy()
        .filter(col("status").eq(lit("done")))
        .group_by_stable(keys.map(col))
        .agg(summaries)
        .collect()?;
    let counts: BTreeSet<u32> = groups.column("n")?.u32()?.iter().flatten().collect();
    let factors: Vec<Option<f64>> = counts.iter().map(|n| half_width_factor(*n)).collect();
    let counts: Vec<u32> = counts.into_iter().collect();
    let factors = df!("n" => counts, "factor" => factors)?;
    let mut frame = groups
        .lazy()
        .left_join(factors.lazy(), col("n"), col("n"))
        .with_columns(bounds)
        .select(columns)
        .sort(keys, SortMultipleOptions::default())
        .collect()?;
    for (from, to) in [
        ("nll_mean", "perplexity"),
        ("nll_ci_low", "perplexity_ci_low"),
        ("nll_ci_high", "perplexity_ci_high"),
    ] {
        let column = frame.column(from)?.f64()?.apply_values(f64::exp);
        frame.with_column(column.with_name(to.into()).into_series().into_column())?;
    }
    Ok(frame)
}

/// One row of [`aggregate`].
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Task-and-sizes group.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Split.
    pub split: String,
    /// Length.
    pub len: u64,
    /// Split in distribution and length within training.
    pub in_distribution: bool,
    /// Length in training.
    pub train_len: u64,
    /// Share of whole answers, 0 to 1.
    pub exact_match: Estimate,
    /// Share of tokens, 0 to 1.
    pub token_accuracy: Estimate,
    /// Nats per scored token.
    pub nll: Estimate,
    /// Mean bits per byte.
    pub bits_per_byte: Option<f64>,
}

/// The rows of a frame made by [`aggregate`].
///
/// # Errors
/// When a column is missing or has another type.
pub fn aggregate_rows(frame: &DataFrame) -> PolarsResult<Vec<Aggregate>> {
    let text = |name: &str, row: usize| -> PolarsResult<String> {
        Ok(frame.column(name)?.str()?.get(row).unwrap_or_default().to_owned())
    };
    let whole = |name: &str, row: usize| -> PolarsResult<u64> {
        Ok(frame.column(name)?.u64()?.get(row).unwrap_or_default())
    };
    let real = |name: &str, row: usize| -> PolarsResult<Option<f64>> {
        Ok(frame.column(name)?.f64()?.get(row).filter(|x| x.is_finite()))
    };
    let estimate = |metric: &str, row: usize| -> PolarsResult<Estimate> {
        let bound = |part: &str| real(&format!("{metric}_{part}"), row);
        Ok(Estimate {
            mean: bound("mean")?.unwrap_or(f64::NAN),
            std: bound("std")?,
            ci95: bound("ci_low")?.zip(bound("ci_high")?),
            n: frame.column("n")?.u32()?.get(row).unwrap_or_default(),
        })
    };
    (0..frame.height())
        .map(|row| {
            Ok(Aggregate {
                workload: text("workload", row)?,
                encoding: text("encoding", row)?,
                split: text("split", row)?,
                len: whole("len", row)?,
                in_distribution: frame.column("in_distribution")?.bool()?.get(row).unwrap_or(false),
                train_len: whole("train_len", row)?,
                exact_match: estimate("exact_match", row)?,
                token_accuracy: estimate("token_accuracy", row)?,
                nll: estimate("nll", row)?,
                bits_per_byte: real("bits_per_byte_mean", row)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
