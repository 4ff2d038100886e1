//! Seeds that an encoding lacks on a workload.

use std::collections::BTreeSet;

use super::grouping::{by_encoding, by_workload};
use crate::record::RunRecord;

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

/// Missing seeds by workload and encoding.
pub(super) fn missing_seeds(counted: &[&RunRecord]) -> Vec<MissingSeeds> {
    let mut missing = Vec::new();
    for (workload, records) in by_workload(counted) {
        let all: BTreeSet<u64> = records.iter().map(|r| r.seed).collect();
        for (encoding, own) in by_encoding(&records) {
            let own: BTreeSet<u64> = own.iter().map(|r| r.seed).collect();
            if own.len() < all.len() {
                let seeds = all.difference(&own).copied().collect();
                let (workload, encoding) = (workload.to_owned(), encoding.to_owned());
                missing.push(MissingSeeds { workload, encoding, seeds });
            }
        }
    }
    missing
}
