//! Comparisons that cannot be made.

/// Why two encodings cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// No record has the name.
    #[error(
        "no record has the {what} `{name}`{}; there are: {}",
        nearest.as_ref().map(|n| format!(", did you mean `{n}`?")).unwrap_or_default(),
        known.join(", ")
    )]
    Unknown {
        /// `encoding`, `workload` or `task`.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// The nearest that there is, if one is near.
        nearest: Option<String>,
        /// All there are.
        known: Vec<String>,
    },
    /// An encoding against itself.
    #[error("`{name}` cannot be compared with itself; name two encodings")]
    Same {
        /// Its name.
        name: String,
    },
    /// Nothing was run with both.
    #[error(
        "no workload has seeds of both `{a}` and `{b}` under the same conditions:\n{}\nrun the missing cells, \
         such as with `pe-bench run SUITE --encodings '{a},{b}' --seed N`",
        reasons.join("\n")
    )]
    NothingPairs {
        /// One encoding.
        a: String,
        /// The other.
        b: String,
        /// What there is, workload by workload.
        reasons: Vec<String>,
    },
}

impl CompareError {
    pub(super) fn unknown(what: &'static str, name: &str, known: Vec<String>) -> Self {
        // Half of the letters may be wrong, one in the shortest names.
        let near = known
            .iter()
            .map(|k| (strsim::damerau_levenshtein(&name.to_lowercase(), &k.to_lowercase()), k))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= (name.chars().count() / 2).max(1));
        Self::Unknown { what, name: name.to_owned(), nearest: near.map(|(_, k)| k.clone()), known }
    }
}
