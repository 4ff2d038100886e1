//! Training in a record.

use serde::{Deserialize, Serialize};

use super::json_float;

/// Cost and course of training.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainSummary {
    /// Number of optimizer steps done.
    pub steps: u64,
    /// Number of sequences per training step.
    pub batch_size: u64,
    /// Number of tokens in all training steps.
    pub tokens: u64,
    /// Loss at the end, nats per scored token.
    #[serde(with = "json_float::option")]
    pub final_loss: Option<f64>,
    /// Wall-clock seconds of training, without validations.
    #[serde(with = "json_float")]
    pub seconds: f64,
    /// Median seconds of a step.
    #[serde(with = "json_float::option")]
    pub step_seconds_median: Option<f64>,
    /// Training throughput in tokens per second.
    #[serde(with = "json_float::option")]
    pub tokens_per_second: Option<f64>,
    /// Greatest load average of the machine over a minute (processes that run or wait), at the beginning and the end of
    /// training; `None` if not measured. See [`super::RunRecord::disturbance`].
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_float::option")]
    pub machine_load: Option<f64>,
    /// Number of devices that shared the micro-batches of each step; not written for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_parallel: Option<u64>,
    /// Training loss by step.
    pub curve: Vec<CurvePoint>,
    /// Validations on new samples of the training distribution; empty without validations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<Validation>,
    /// Validations of the further splits that the suite names, at the same steps; empty without such splits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub split_validations: Vec<SplitValidation>,
    /// Time at which training was solved; `None` if it was not, or without validations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solved: Option<Solved>,
    /// Whether training ended before its last step because it was solved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped_early: bool,
}

impl TrainSummary {
    /// Returns the summary of a training that has not begun.
    pub fn not_begun(batch_size: u64) -> Self {
        Self { batch_size, ..Self::default() }
    }
}

/// A validation during training: the first split at the training length, on samples that neither training nor the
/// final evaluations see.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Optimizer steps done so far.
    pub step: u64,
    /// Exact match: share of samples whose scored tokens are all correct, 0 to 1.
    #[serde(with = "json_float")]
    pub exact_match: f64,
    /// Token accuracy: share of scored tokens that are correct, 0 to 1.
    #[serde(with = "json_float")]
    pub token_accuracy: f64,
    /// Negative log-likelihood, nats per scored token.
    #[serde(with = "json_float")]
    pub nll: f64,
    /// Number of validation samples.
    pub samples: u64,
    /// Seconds of training up to this validation, without validations.
    #[serde(with = "json_float")]
    pub seconds: f64,
}

/// A validation of another split than the first, at the training length. It does not affect the training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitValidation {
    /// Name of the split.
    pub split: String,
    /// Result, with the step.
    pub result: Validation,
}

/// Time at which training was solved: the first of the required number of consecutive validations that met the
/// criterion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solved {
    /// Optimizer steps done so far.
    pub step: u64,
    /// Seconds of training up to then, without validations.
    #[serde(with = "json_float")]
    pub seconds: f64,
    /// Exact match required by the criterion.
    #[serde(with = "json_float")]
    pub exact_match: f64,
}

/// One point of a training curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// Optimizer steps done so far.
    pub step: u64,
    /// Mean loss since the previous point, nats per scored token.
    #[serde(with = "json_float")]
    pub loss: f64,
    /// Learning rate at this step.
    #[serde(with = "json_float")]
    pub learning_rate: f64,
    /// Wall-clock seconds since training began.
    #[serde(with = "json_float")]
    pub seconds: f64,
}

/// Step of a training whose weights are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightsAt {
    /// After the last step.
    #[default]
    Last,
    /// At the validation with the lowest negative log-likelihood; the first of equal ones.
    Best,
}

/// File with the weights of a training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptWeights {
    /// Name of the file in the folder `weights` of the results.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// Step of the training whose weights these are.
    pub at: WeightsAt,
    /// Number of optimizer steps before these weights.
    pub step: u64,
}
