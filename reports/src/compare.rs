//! Head to head: two encodings, seed by seed, wherever both were run under the same conditions.
//!
//! The pair is named in advance, so nothing has to be paid for a choice among many: a region of a workload is a
//! family of its own, as METHODOLOGY.md has it. Evaluations by split and length are one family for each workload
//! and region, slices one for each workload and property; Holm's correction runs over each family. Everything is
//! decided in [`crate::stats`].
//!
//! [`HeadToHead`] is plain data; `compare::document` makes tables, text and pages of it.

mod comparison;
mod document;
mod error;
mod matching;
mod pairwise;
mod tables;

pub use self::comparison::{
    Better, Compared, ComparedEncoding, Difference, EvaluationPoint, HeadToHead,
    PairwiseComparison, RegionEvaluations, Request, Slice,
};
pub use self::document::document;
pub use self::error::CompareError;
use crate::record::RunRecord;

/// Compares two encodings.
///
/// Records that are not done do not count, and of a grid those at values that were not chosen ([`crate::analysis::grid`],
/// as in a report). Where a folder holds cells of several configurations of a workload, the one started last
/// counts.
///
/// # Errors
/// [`CompareError`]: a name that no record has, or no seed that both have.
pub fn compare(records: &[RunRecord], request: &Request) -> Result<HeadToHead, CompareError> {
    let found = matching::find(records, request)?;
    let comparisons = found.pairs.iter().map(pairwise::pairwise).collect();
    Ok(HeadToHead { a: found.a, b: found.b, comparisons, left_out: found.left_out })
}

#[cfg(test)]
mod tests;
