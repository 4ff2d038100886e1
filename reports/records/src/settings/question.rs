//! What a suite asks in advance: comparisons of two encodings, claims of papers, uses of encodings.

use serde::{Deserialize, Serialize};

use crate::record::Metric;

/// Question of a suite: two encodings to compare; section `[question]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Names of the two encodings; differences are the first minus the second.
    pub encodings: [String; 2],
    /// Names of the workloads; empty for all.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// Metric that is compared; by default the one that ranks the encodings of the workload.
    #[serde(default)]
    pub metric: Option<Metric>,
    /// Evaluations that are compared; by default those of the deciding region, as on the front page.
    #[serde(default)]
    pub region: Option<Region>,
    /// Whether to compare the factor by which the perplexity changes from the evaluations in distribution, in place of
    /// the perplexity itself. Workloads that are ranked by another metric have no answer then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub change: bool,
    /// Largest rise of the perplexity, in percent of its value in distribution, that counts as no rise. `encodings`
    /// then names one encoding twice. Its perplexity at the longest evaluated length is compared with its value in distribution,
    /// raised by this margin.
    /// Workloads that are ranked by another metric have no answer then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin_percent: Option<u32>,
}

impl Question {
    /// Checks the question.
    ///
    /// # Errors
    /// Message that says what was found and expected.
    pub fn check(&self) -> Result<(), String> {
        let [a, b] = &self.encodings;
        match (a == b, self.margin_percent) {
            (true, None) => Err(format!(
                "`encodings` names `{a}` twice, expected two different encodings; to ask whether `{a}` keeps its \
                 perplexity, set `margin_percent`"
            )),
            (false, Some(_)) => Err(format!(
                "`margin_percent` compares an encoding with itself, expected `encodings = [\"{a}\", \"{a}\"]`, found \
                 the second encoding `{b}`"
            )),
            (true, Some(_)) if self.change => {
                Err("`change` and `margin_percent` are both given, expected one".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the names of the two that are compared, as results are named.
    pub fn compared(&self) -> [String; 2] {
        let [a, b] = self.encodings.clone();
        match self.margin_percent {
            Some(margin) => [a, format!("in distribution + {margin}%")],
            None => [a, b],
        }
    }
}

/// Use of encodings and the workloads that stand for it; section `[[use]]` of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UseCase {
    /// The use in a few words, for example `Counting`.
    pub name: String,
    /// Names of the workloads.
    pub tasks: Vec<String>,
}

/// Position of evaluations relative to training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Region {
    /// Splits that training draws from, up to the training length.
    Inside,
    /// Splits that training draws from, beyond the training length.
    Longer,
    /// Other splits, up to the training length.
    Shifted,
    /// Other splits, beyond the training length.
    Both,
}

impl Region {
    /// All regions in order.
    pub const ALL: [Self; 4] = [Self::Inside, Self::Longer, Self::Shifted, Self::Both];

    /// Name of the region for use in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inside => "in distribution",
            Self::Longer => "at longer lengths",
            Self::Shifted => "on other distributions",
            Self::Both => "on other distributions at longer lengths",
        }
    }

    /// Returns the name of the region in tables for other programs.
    pub fn id(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Longer => "longer",
            Self::Shifted => "shifted",
            Self::Both => "both",
        }
    }
}

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
    /// Result that the claim expects of each comparison: `better` (default) or `not-better`.
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
