//! Comparison of two encodings, seed by seed, on all workloads where both were run under the same conditions.
//!
//! The pair is named in advance, so no correction for the choice among many encodings is needed: a region of a
//! workload is a family of its own, as described in METHODOLOGY.md. Evaluations by split and length form one family
//! per workload and region, slices one per workload and property; Holm's correction runs over each family. All tests
//! are in [`stats`].
//!
//! [`HeadToHead`] is plain data, which `reports::compare::document` lays out.

mod comparison;
mod error;
mod matching;
mod pairwise;

pub use self::comparison::{
    Better, Compared, ComparedEncoding, Difference, EvaluationPoint, HeadToHead,
    PairwiseComparison, RegionEvaluations, Request, Slice,
};
pub use self::error::CompareError;
use records::RunRecord;

/// Compares two encodings.
///
/// Records that are not done are ignored, and so are records of a grid at values that were not selected
/// ([`crate::grid`], as in a report). If a folder contains cells of several configurations of a workload,
/// the one started last is used.
///
/// # Errors
/// [`CompareError`] if no record has one of the names or the two encodings have no seed in common.
pub fn compare(records: &[RunRecord], request: &Request) -> Result<HeadToHead, CompareError> {
    let found = matching::find(records, request)?;
    let comparisons = found.pairs.iter().map(pairwise::pairwise).collect();
    Ok(HeadToHead { a: found.a, b: found.b, comparisons, left_out: found.left_out })
}

#[cfg(test)]
mod tests;
