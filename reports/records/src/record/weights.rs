//! Weights that a training left.

use serde::{Deserialize, Serialize};

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
