//! What a record keeps of an evaluation.

use serde::{Deserialize, Serialize};

use super::json_float;

/// One evaluation: a split at a length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalPoint {
    /// Name of the split.
    pub split: String,
    /// The split is in distribution *and* `len <= train_len`.
    pub in_distribution: bool,
    /// Length, in `task.len_unit`.
    pub len: u64,
    /// Sequences evaluated.
    pub samples: u64,
    /// Tokens that count.
    pub scored_tokens: u64,
    /// Share of samples whose scored tokens are all right, 0 to 1.
    #[serde(with = "json_float")]
    pub exact_match: f64,
    /// Share of scored tokens that are right, 0 to 1.
    #[serde(with = "json_float")]
    pub token_accuracy: f64,
    /// Negative log-likelihood, nats per scored token.
    #[serde(with = "json_float")]
    pub nll: f64,
    /// `exp(nll)`.
    #[serde(with = "json_float")]
    pub perplexity: f64,
    /// Bits per byte of text, where the task is text.
    #[serde(with = "json_float::option")]
    pub bits_per_byte: Option<f64>,
    /// Wall-clock seconds of the evaluation.
    #[serde(with = "json_float")]
    pub seconds: f64,
    /// Exact match of the best answer that is given without looking, at this length; `None`: unknown.
    #[serde(default, with = "json_float::option", skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// The same evaluation by what travels with samples and tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slices>,
}

/// What stands between the names of two properties that are told together.
pub const PAIRED: &str = " x ";
/// The first of two properties counts this much in their common value.
pub const PAIR: u64 = 1000;

/// What a slice counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceUnit {
    /// Whole samples: accuracy is exact match.
    Samples,
    /// Scored tokens: accuracy is the share that is right.
    Tokens,
}

/// An evaluation by one property, as columns of one length, sorted by the property's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slices {
    /// The property, for example `distance`. Two of them together are `a x b`, and their values
    /// [`PAIR`] `a + b`.
    pub name: String,
    /// What is counted.
    pub unit: SliceUnit,
    /// Its values, rising.
    pub values: Vec<u32>,
    /// Samples or tokens of each value.
    pub counts: Vec<u64>,
    /// Exact match or token accuracy of each, 0 to 1.
    #[serde(with = "json_float::vec")]
    pub accuracy: Vec<f64>,
    /// Negative log-likelihood of each, nats per scored token.
    #[serde(with = "json_float::vec")]
    pub nll: Vec<f64>,
}

/// An evaluation that was not possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedEval {
    /// Name of the split.
    pub split: String,
    /// Length, in `task.len_unit`.
    pub len: u64,
    /// Why.
    pub reason: String,
}
