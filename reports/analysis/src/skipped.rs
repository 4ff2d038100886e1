//! Evaluations that were not possible.

use polars::prelude::*;

use super::selection::Selection;
use crate::frame::rows;

rows! {
    /// Evaluations of one encoding that were left out for one reason.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SkippedEvals {
        /// Name of the workload: a task at one size.
        pub workload: String,
        /// Name of the encoding.
        pub encoding: String,
        /// Name of the split.
        pub split: String,
        /// Lengths that were skipped, sorted.
        pub lens: Vec<u64>,
        /// Seeds that were skipped, sorted.
        pub seeds: Vec<u64>,
        /// Reason, as a phrase.
        pub reason: String,
    }
}

/// Gathers skipped evaluations over seeds and lengths, in the order of cells.
///
/// # Errors
/// If the query fails.
pub(super) fn skipped_evals(counted: &Selection<'_>) -> PolarsResult<Vec<SkippedEvals>> {
    let values = |name: &str| col(name).unique().sort(SortOptions::default());
    let skipped = counted
        .rows(|frames| &frames.skipped)
        .group_by_stable(["workload", "encoding", "split", "reason"].map(col))
        .agg([values("len").alias("lens"), values("seed").alias("seeds")]);
    SkippedEvals::of(skipped)
}
