//! Evaluations aggregated over seeds.

use polars::prelude::*;

use super::selection::{Selection, mean, stable};
use crate::frame::rows;
use records::Metric;
use stats::Estimate;

rows! {
    /// Aggregate over seeds of one encoding's evaluations on one split at one length.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Aggregate {
        /// Name of the workload: a task at one size.
        pub workload: String,
        /// Name of the encoding.
        pub encoding: String,
        /// Name of the split.
        pub split: String,
        /// Sequence length in the task's unit.
        pub len: u64,
        /// Whether the split is in distribution and the length within training.
        pub in_distribution: bool,
        /// Sequence length in training.
        pub train_len: u64,
        /// Metric that ranks encodings: `exact-match` or `perplexity`.
        pub headline: String,
        /// Number of questions of the evaluation.
        pub samples: u64,
        /// Number of unseen questions where training draws the others, of which the results below are; 0 if it draws all, and
        /// the results are those of all. `None` if all questions are alike.
        pub unseen_samples: Option<u64>,
        /// Share of the questions whose answers occur in training; `None` if all do.
        pub ceiling: Option<f64>,
        /// Exact match of the best constant answer at this length; `None` if unknown.
        pub chance: Option<f64>,
        /// Exact match, 0 to 1.
        pub exact_match: Estimate,
        /// Token accuracy, 0 to 1.
        pub token_accuracy: Estimate,
        /// Negative log-likelihood, nats per scored token.
        pub nll: Estimate,
        /// Mean bits per byte of text, where the task is text.
        pub bits_per_byte: Option<f64>,
    }
}

impl Aggregate {
    /// Estimate of a metric, on the metric's scale: nats for perplexity.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        metric.choose(self.exact_match, self.token_accuracy, self.nll)
    }
}

/// Aggregates the evaluations of cells over seeds: one for each encoding, split and length, sorted.
///
/// # Errors
/// If the query fails.
pub(super) fn aggregate(counted: &Selection<'_>) -> PolarsResult<Vec<Aggregate>> {
    let by = ["encoding", "split", "len"];
    let first = [
        "workload",
        "in_distribution",
        "train_len",
        "headline",
        "samples",
        "unseen_samples",
        "ceiling",
    ]
    .map(|name| col(name).first());
    let values = ["exact_match", "token_accuracy", "nll"].map(col);
    let others = [col("chance").fill_null(col("task_chance")).first(), mean("bits_per_byte")];
    let seeds = counted
        .evaluations()
        .group_by_stable(by.map(col))
        .agg([&first[..], &values, &others].concat())
        .sort(by, stable());
    let mut rows = Aggregate::of(seeds)?;
    for row in &mut rows {
        row.bits_per_byte = row.bits_per_byte.filter(|bits| bits.is_finite());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
