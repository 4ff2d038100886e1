//! Evaluations in a record.

use serde::{Deserialize, Serialize};

use super::json_float;
use super::outcomes::Outcomes;
use super::unseen::Unseen;

/// One evaluation: a split at a length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalPoint {
    /// Name of the split.
    pub split: String,
    /// Whether the split is in distribution *and* `len <= train_len`.
    pub in_distribution: bool,
    /// Whether the split is a training split, for any length; `None` in records of schema 2 and before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained_split: Option<bool>,
    /// Sequence length, in `task.len_unit`.
    pub len: u64,
    /// Number of sequences evaluated.
    pub samples: u64,
    /// Number of scored tokens.
    pub scored_tokens: u64,
    /// Exact match: share of samples whose scored tokens are all correct, 0 to 1.
    #[serde(with = "json_float")]
    pub exact_match: f64,
    /// Token accuracy: share of scored tokens that are correct, 0 to 1.
    #[serde(with = "json_float")]
    pub token_accuracy: f64,
    /// Negative log-likelihood, nats per scored token.
    #[serde(with = "json_float")]
    pub nll: f64,
    /// Perplexity per scored token, `exp(nll)`.
    #[serde(with = "json_float")]
    pub perplexity: f64,
    /// Bits per byte of text; `None` unless the task is text.
    #[serde(with = "json_float::option")]
    pub bits_per_byte: Option<f64>,
    /// Wall-clock seconds of the evaluation.
    #[serde(with = "json_float")]
    pub seconds: f64,
    /// Exact match of guessing at this split and length; `None` if unknown.
    #[serde(default, with = "json_float::option", skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// Answers to the single questions; `None` in records of schema 2 and before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Outcomes>,
    /// The questions that training cannot draw, where it can draw others of the evaluation; `None` if all questions are
    /// alike. Of records of schema 4 and before those of this repository have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Unseen>,
    /// Share of the unseen questions whose answers occur in training, which is the best exact match that can be expected;
    /// `None` if all do. Of records of schema 4 and before those of this repository have it.
    #[serde(default, with = "json_float::option", skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<f64>,
    /// The evaluation by properties of samples and tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slices>,
}

impl EvalPoint {
    /// Returns the results on the unseen questions, if the evaluation has some and others.
    pub fn partly_unseen(&self) -> Option<&Unseen> {
        self.unseen.as_ref().filter(|unseen| unseen.questions.count() > 0)
    }

    /// Returns the outcomes of the questions that count: the unseen ones if the evaluation has some and others, otherwise all.
    pub fn counted_outcomes(&self) -> Option<Outcomes> {
        let outcomes = self.outcomes.as_ref()?;
        match self.partly_unseen() {
            Some(unseen) => unseen.questions.of(outcomes),
            None => Some(outcomes.clone()),
        }
    }

    /// Reports whether training draws all of the questions, though not as often: the evaluation belongs to no region.
    pub fn is_all_trained(&self) -> bool {
        self.unseen.as_ref().is_some_and(|unseen| unseen.questions.count() == 0)
    }
}

/// Separator of the names of a pair of properties.
pub const PAIRED: &str = " x ";
/// Factor of the first value in the combined value of a pair of properties.
pub const PAIR: u64 = 1000;

/// Unit of the counts of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceUnit {
    /// Whole samples; accuracy is exact match.
    Samples,
    /// Scored tokens; accuracy is token accuracy.
    Tokens,
}

impl SliceUnit {
    /// Returns the name of the unit in JSON and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Tokens => "tokens",
        }
    }
}

/// Results of an evaluation by one property, as columns of equal length, sorted by the property's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slices {
    /// Name of the property, for example `distance`. A pair of properties is named `a x b` and has the values
    /// [`PAIR`] `a + b`.
    pub name: String,
    /// Unit of the counts.
    pub unit: SliceUnit,
    /// Values of the property, ascending.
    pub values: Vec<u32>,
    /// Number of samples or tokens of each value.
    pub counts: Vec<u64>,
    /// Exact match or token accuracy of each value, 0 to 1.
    #[serde(with = "json_float::vec")]
    pub accuracy: Vec<f64>,
    /// Negative log-likelihood of each value, nats per scored token.
    #[serde(with = "json_float::vec")]
    pub nll: Vec<f64>,
}

/// An evaluation that was not possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedEval {
    /// Name of the split.
    pub split: String,
    /// Sequence length, in `task.len_unit`.
    pub len: u64,
    /// Reason, as a phrase.
    pub reason: String,
}

/// Agreement of one head's gates with the tokens that the task counts: area under the ROC curve of the gate as a
/// classifier of counted tokens, within each scored row, averaged over rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateScore {
    /// Kind of gate, for example `gates`.
    pub gate: String,
    /// Index of the layer, from 0.
    pub layer: u32,
    /// Index of the head, from 0.
    pub head: u32,
    /// Area under the ROC curve. 1: the gates of counted tokens are above all others; 0.5: no relation; 0: below all
    /// others.
    #[serde(with = "json_float")]
    pub auc: f64,
    /// Number of rows with tokens of both classes.
    pub rows: u64,
}
