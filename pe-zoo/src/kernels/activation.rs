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
    /// GeGLU, `gelu(x W) * (x V)`, with [`GateFunction::Gelu`], as in Gemma.
    GeGlu,
}

/// Kind of an activation: of single numbers, or of pairs of them, one of which is a gate of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActivationUnit {
    Numbers(NumberActivation),
    Pairs(GateFunction),
}

impl ActivationKind {
    pub(crate) fn unit(self) -> ActivationUnit {
        match self {
            Self::Relu => ActivationUnit::Numbers(NumberActivation::Relu),
            Self::Gelu => ActivationUnit::Numbers(NumberActivation::Gelu),
            Self::SwiGlu => ActivationUnit::Pairs(GateFunction::Silu),
            Self::GeGlu => ActivationUnit::Pairs(GateFunction::Gelu),
        }
    }

    /// Whether the map before the activation computes two halves, and one of them is a gate of the other.
    pub(crate) fn is_gated(self) -> bool {
        matches!(self.unit(), ActivationUnit::Pairs(_))
    }
}

/// Activation of single numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NumberActivation {
    /// [`ActivationKind::Relu`].
    Relu,
    /// [`ActivationKind::Gelu`].
    Gelu,
}

/// Function of the half that multiplies the other one in a gated linear unit: `x sigmoid(u(x))`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateFunction {
    /// SiLU: `u(x) = x`.
    Silu,
    /// GELU approximated with tanh, `0.5 x (1 + tanh(u(x) / 2))`: `u(x) = sqrt(8 / pi) (x + 0.044715 x^3)`.
    Gelu,
}

/// `sqrt(8 / pi)`, slope at 0 of the argument of the sigmoid in [`GateFunction::Gelu`].
pub(crate) const GELU_SLOPE: f32 = 1.595_769_2;
/// Share of the cube in that argument.
pub(crate) const GELU_CUBE: f32 = 0.044_715;
