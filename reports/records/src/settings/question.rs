//! A comparison of two encodings that a suite defines in advance.

use serde::{Deserialize, Serialize};

use super::region::Region;
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
