//! Errors of comparisons.

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
    pub(super) fn unknown(what: &'static str, name: &str, known: Vec<String>) -> Self {
        // Up to half of the letters may differ, at least one.
        let near = known
            .iter()
            .map(|k| (strsim::damerau_levenshtein(&name.to_lowercase(), &k.to_lowercase()), k))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= (name.chars().count() / 2).max(1));
        Self::Unknown { what, name: name.to_owned(), nearest: near.map(|(_, k)| k.clone()), known }
    }
}
