//! Activations of feed-forward networks.

use serde::{Deserialize, Serialize};

/// Activation of the feed-forward network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActivationKind {
    /// Rectified linear unit, `max(x, 0)`.
    #[default]
    Relu,
    /// Gaussian error linear unit `x Phi(x)`, without approximation.
    Gelu,
    /// SwiGLU, `silu(x W) * (x V)`.
    SwiGlu,
}
