//! Metrics that rank encodings, and their formatting.

use serde::{Deserialize, Serialize};

use super::eval::{EvalPoint, SliceUnit};
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
        self.choose("exact match", "token accuracy", "perplexity")
    }

    /// Reports whether higher values are better.
    pub fn higher_is_better(self) -> bool {
        self != Self::Perplexity
    }

    /// Returns that of three values which belongs to the metric.
    pub fn choose<T>(self, exact_match: T, token_accuracy: T, perplexity: T) -> T {
        match self {
            Self::ExactMatch => exact_match,
            Self::TokenAccuracy => token_accuracy,
            Self::Perplexity => perplexity,
        }
    }

    /// Returns the column of the metric in frames; negative log-likelihood for perplexity.
    pub fn column(self) -> &'static str {
        self.choose("exact_match", "token_accuracy", "nll")
    }

    /// Returns the name of the metric on the scale on which it is averaged: `nll` for perplexity.
    pub fn scale_name(self) -> &'static str {
        self.choose("exact match", "token accuracy", "nll")
    }

    /// Returns the metric of slices with this unit, where `self` ranks the encodings.
    #[must_use]
    pub fn of_slices(self, unit: SliceUnit) -> Self {
        match (self, unit) {
            (Self::Perplexity, _) => Self::Perplexity,
            (_, SliceUnit::Samples) => Self::ExactMatch,
            (_, SliceUnit::Tokens) => Self::TokenAccuracy,
        }
    }

    /// Returns the value of an evaluation, on the scale on which the metric is averaged.
    pub fn of(self, eval: &EvalPoint) -> f64 {
        self.choose(eval.exact_match, eval.token_accuracy, eval.nll)
    }

    /// Formats a value: `97.1%` or `4.53`.
    pub fn show(self, value: f64) -> String {
        if self.higher_is_better() {
            number::percent(value)
        } else {
            number::three_digits(value.exp())
        }
    }

    /// Cuts the interval of a difference to possible values, because a t interval of shares may exceed -1 and 1.
    pub fn cut_difference(self, interval: (f64, f64)) -> (f64, f64) {
        let (low, high) = interval;
        if self.higher_is_better() { (low.max(-1.0), high.min(1.0)) } else { (low, high) }
    }

    /// Formats an interval; shares are clamped to 0 and 100%, because a t interval may exceed them.
    pub fn show_interval(self, interval: (f64, f64)) -> String {
        let (low, high) = interval;
        if self.higher_is_better() {
            let (low, high) = (low.max(0.0), high.min(1.0));
            format!("{}, {}", number::points(low), number::points(high))
        } else {
            format!("{}, {}", number::three_digits(low.exp()), number::three_digits(high.exp()))
        }
    }
}
