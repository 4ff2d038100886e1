//! What is missing: evaluations that were not possible, and seeds that an encoding lacks on a workload.

use std::collections::BTreeSet;

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

/// Seeds that other encodings of the workload have and this one does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSeeds {
    /// Name of the workload.
    pub workload: String,
    /// Name of the encoding.
    pub encoding: String,
    /// Seeds that are missing, sorted.
    pub seeds: Vec<u64>,
}

rows! {
    struct EncodingSeeds {
        workload: String,
        encoding: String,
        seed: Vec<u64>,
    }
}

/// Missing seeds by encoding, sorted.
///
/// # Errors
/// If the query fails.
pub(super) fn missing_seeds(counted: &Selection<'_>) -> PolarsResult<Vec<MissingSeeds>> {
    let present =
        counted.cells().group_by_stable(["workload", "encoding"].map(col)).agg([col("seed")]);
    let present = EncodingSeeds::of(present)?;
    let all: BTreeSet<u64> = present.iter().flat_map(|own| own.seed.iter().copied()).collect();
    let missing = |own: EncodingSeeds| {
        let seeds = all.iter().copied().filter(|seed| !own.seed.contains(seed)).collect();
        MissingSeeds { workload: own.workload, encoding: own.encoding, seeds }
    };
    Ok(present.into_iter().map(missing).filter(|missing| !missing.seeds.is_empty()).collect())
}
