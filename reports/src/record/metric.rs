//! Metrics that rank encodings, and their formatting.

use serde::{Deserialize, Serialize};

use super::eval::EvalPoint;
use crate::number;

/// A metric of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Exact match: share of samples that are correct as a whole; higher is better.
    ExactMatch,
    /// Token accuracy: share of scored tokens that are correct; higher is better.
    TokenAccuracy,
    /// Perplexity, `exp(nll)`; lower is better. Averaged and compared as nll, shown as perplexity.
    Perplexity,
}

impl Metric {
    /// Returns the metric that a record's `task.headline` names; `None` for an unknown name.
    pub fn from_headline(name: &str) -> Option<Self> {
        match name {
            "exact-match" => Some(Self::ExactMatch),
            "perplexity" => Some(Self::Perplexity),
            _ => None,
        }
    }

    /// Returns the name of the metric for use in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactMatch => "exact match",
            Self::TokenAccuracy => "token accuracy",
            Self::Perplexity => "perplexity",
        }
    }

    /// Reports whether higher values are better.
    pub fn higher_is_better(self) -> bool {
        self != Self::Perplexity
    }

    /// Returns the column of the metric in frames; negative log-likelihood for perplexity.
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::ExactMatch => "exact_match",
            Self::TokenAccuracy => "token_accuracy",
            Self::Perplexity => "nll",
        }
    }

    pub(crate) fn of(self, eval: &EvalPoint) -> f64 {
        match self {
            Self::ExactMatch => eval.exact_match,
            Self::TokenAccuracy => eval.token_accuracy,
            Self::Perplexity => eval.nll,
        }
    }

    /// Formats a value: `97.1 %` or `4.53`.
    pub fn show(self, value: f64) -> String {
        if self.higher_is_better() {
            number::percent(value)
        } else {
            number::three_digits(value.exp())
        }
    }

    /// Formats an interval; shares are clamped to 0 and 100 %, because a t interval may exceed them.
    pub fn show_interval(self, (low, high): (f64, f64)) -> String {
        if self.higher_is_better() {
            let (low, high) = (low.max(0.0), high.min(1.0));
            format!("{} to {}", number::points(low), number::points(high))
        } else {
            format!("{} to {}", number::three_digits(low.exp()), number::three_digits(high.exp()))
        }
    }
}
