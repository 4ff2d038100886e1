//! Seeds that an encoding lacks on a workload.

use std::collections::BTreeSet;

use polars::prelude::*;

use super::selection::Selection;
use crate::frame::rows;

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
