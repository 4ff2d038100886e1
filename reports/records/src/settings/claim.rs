//! Claims of papers that a suite sets beside its own results.

use serde::{Deserialize, Serialize};

use super::question::Question;

/// Claim of a paper, with the comparisons that decide it; section `[[claim]]` of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperClaim {
    /// The claim as a sentence without its full stop.
    pub text: String,
    /// Authors and year of the paper.
    pub source: String,
    /// Differences between the recipe of the paper and that of the suite, as a sentence.
    pub recipe: String,
    /// Result that the claim expects of each comparison.
    #[serde(default)]
    pub expected: ExpectedResult,
    /// Comparisons. Holm's correction covers the planned workloads of all comparisons of all claims, or of this claim with
    /// `correct_each_claim`.
    pub comparisons: Vec<Question>,
}

/// Result of a comparison that a claim expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedResult {
    /// The first encoding is better than the second.
    #[default]
    Better,
    /// The first encoding is not better than the second.
    NotBetter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_strictly() {
        let error =
            toml::from_str::<PaperClaim>("text = 'a'\nsource = 'b'\nrecipes = 'c'").unwrap_err();
        assert!(error.to_string().contains("unknown field `recipes`"), "{error}");
    }
}
