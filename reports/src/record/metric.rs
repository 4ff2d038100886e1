//! The metrics that rank, and how they are shown.

use super::eval::EvalPoint;
use crate::number;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Share of answers that are right as a whole; higher is better.
    ExactMatch,
    /// Share of scored tokens that are right; higher is better.
    TokenAccuracy,
    /// `exp` of the nll; lower is better. Held, averaged and compared as nll, shown as perplexity.
    Perplexity,
}

impl Metric {
    /// The metric that a record's `task.headline` names.
    pub fn from_headline(name: &str) -> Option<Self> {
        match name {
            "exact-match" => Some(Self::ExactMatch),
            "perplexity" => Some(Self::Perplexity),
            _ => None,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactMatch => "exact match",
            Self::TokenAccuracy => "token accuracy",
            Self::Perplexity => "perplexity",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self != Self::Perplexity
    }

    pub(crate) fn of(self, eval: &EvalPoint) -> f64 {
        match self {
            Self::ExactMatch => eval.exact_match,
            Self::TokenAccuracy => eval.token_accuracy,
            Self::Perplexity => eval.nll,
        }
    }

    /// `97.1 %` or `4.53`.
    pub fn show(self, value: f64) -> String {
        if self.higher_is_better() {
            number::percent(value)
        } else {
            number::three_digits(value.exp())
        }
    }

    /// The interval in the metric's unit; shares are cut to 0 and 100 %, which a t interval does
    /// not know about.
    pub fn show_interval(self, (low, high): (f64, f64)) -> String {
        if self.higher_is_better() {
            let (low, high) = (low.max(0.0), high.min(1.0));
            format!("{} to {}", number::points(low), number::points(high))
        } else {
            format!("{} to {}", number::three_digits(low.exp()), number::three_digits(high.exp()))
        }
    }

    /// How far apart the seeds of one encoding may lie: half of the scale above `chance`. `None` for a
    /// metric without a scale.
    pub(crate) fn bimodal_gap(self, chance: Option<f64>) -> Option<f64> {
        match self {
            Self::ExactMatch => Some(0.5 * (1.0 - chance.unwrap_or(0.0))),
            Self::TokenAccuracy => Some(0.5),
            Self::Perplexity => None,
        }
    }
}
