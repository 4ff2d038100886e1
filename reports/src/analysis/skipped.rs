//! Evaluations that were not possible.

use std::collections::BTreeSet;

use crate::record::RunRecord;

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
    pub lens: BTreeSet<u64>,
    /// Seeds that were skipped, sorted.
    pub seeds: BTreeSet<u64>,
    /// Reason, as a phrase.
    pub reason: String,
}

/// Gathered over seeds and lengths, in the order of the records.
pub(super) fn skipped_evals(counted: &[&RunRecord]) -> Vec<SkippedEvals> {
    let mut found: Vec<SkippedEvals> = Vec::new();
    for record in counted {
        for skipped in &record.skipped_evals {
            let known = found.iter().position(|s| {
                (&s.workload, &s.encoding, &s.split, &s.reason)
                    == (&record.workload, &record.encoding.name, &skipped.split, &skipped.reason)
            });
            let index = known.unwrap_or_else(|| {
                found.push(SkippedEvals {
                    workload: record.workload.clone(),
                    encoding: record.encoding.name.clone(),
                    split: skipped.split.clone(),
                    lens: BTreeSet::new(),
                    seeds: BTreeSet::new(),
                    reason: skipped.reason.clone(),
                });
                found.len() - 1
            });
            found[index].lens.insert(skipped.len);
            found[index].seeds.insert(record.seed);
        }
    }
    found
}
