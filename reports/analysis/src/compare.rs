//! Comparison of two encodings, seed by seed, on all workloads where both were run under the same conditions.
//!
//! The pair is named in advance, so no correction for the choice among many encodings is needed: a region of a
//! workload is a family of its own, as described in METHODOLOGY.md. Evaluations by split and length form one family
//! per workload and region, slices one per workload and property; Holm's correction runs over each family. All tests
//! are in [`stats`].
//!
//! [`HeadToHead`] is plain data, which `reports::compare::document` lays out.

mod comparison;
mod matching;
mod pairwise;

pub use self::comparison::{
    Better, Compared, ComparedEncoding, Difference, EvaluationPoint, HeadToHead,
    PairwiseComparison, RegionEvaluations, Request, Slice,
};
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

/// Error of a comparison of two encodings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// No record has the name.
    #[error(
        "no record has the {what} `{name}`{}",
        nearest.as_ref().map_or_else(
            || format!("; there are: {}", known.join(", ")),
            |n| format!(" (did you mean `{n}`?)")
        )
    )]
    Unknown {
        /// Kind of name: `encoding`, `workload` or `task`.
        what: &'static str,
        /// Name that was asked for.
        name: String,
        /// Most similar known name, if one is similar enough.
        nearest: Option<String>,
        /// All names that records have.
        known: Vec<String>,
    },
    /// An encoding was compared with itself.
    #[error("`{name}` cannot be compared with itself; name two encodings")]
    Same {
        /// Name of the encoding.
        name: String,
    },
    /// No workload has seeds of both encodings.
    #[error(
        "no workload has runs of both `{a}` and `{b}` with the same seed under the same conditions:\n{}\nrun the \
         missing cells, for instance with `pe-bench run SUITE --encodings '{a},{b}' --seeds N`",
        reasons.join("\n")
    )]
    NothingPairs {
        /// Name of the first encoding.
        a: String,
        /// Name of the second encoding.
        b: String,
        /// Seeds of each encoding on each workload, one sentence each.
        reasons: Vec<String>,
    },
}

impl CompareError {
    fn unknown(what: &'static str, name: &str, known: Vec<String>) -> Self {
        // Up to half of the letters may differ, at least one.
        let near = known
            .iter()
            .map(|k| (strsim::damerau_levenshtein(&name.to_lowercase(), &k.to_lowercase()), k))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= (name.chars().count() / 2).max(1));
        Self::Unknown { what, name: name.to_owned(), nearest: near.map(|(_, k)| k.clone()), known }
    }
}

#[cfg(test)]
mod tests;
