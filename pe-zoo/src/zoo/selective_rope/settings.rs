//! Settings of Selective RoPE, their checks and their cost.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use super::SelectiveRope;
use crate::math::frequencies::inverse_frequencies;
use crate::settings::check_above_zero;
use crate::{Dims, PeError, PositionEncoding};

/// Map from tokens to steps, the increments of the angles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Map {
    /// Low-rank map of the whole model width.
    LowRank {
        /// Rank of the map.
        rank: usize,
    },
    /// One map for the slice of each head.
    FullRank {},
}

/// Filter over the steps of neighbouring tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Filter {
    /// Learned causal convolution of each channel, without bias.
    Convolution {
        /// Length of the convolution in tokens.
        #[serde(default = "four")]
        kernel: usize,
        /// Activation after the convolution.
        #[serde(default)]
        activation: ConvActivation,
    },
    /// Difference from the step of the previous token.
    Difference {},
}

/// Activation after the convolution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConvActivation {
    /// The identity: no activation.
    #[default]
    None,
    /// The SiLU function, `x sigma(x)`.
    Silu,
}

/// Gate that multiplies the steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Gate {
    /// Steps are not gated.
    None {},
    /// One gate per head.
    PerHead {},
    /// One gate per head, from a low-rank map.
    PerHeadLowRank {
        /// Rank of the map.
        #[serde(default = "sixteen")]
        rank: usize,
    },
    /// One gate per pair of channels, from a low-rank map.
    PerChannel {
        /// Rank of the map.
        #[serde(default = "sixteen")]
        rank: usize,
    },
}

/// Temperatures: factors from the sum of steps to the angle of each pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Temperature {
    /// Temperatures spaced as the frequencies of RoPE.
    Rope {
        /// Ratio of the largest temperature to the smallest, approximately.
        #[serde(default = "half_a_million")]
        base: f64,
        /// Largest temperature, that of the first pair.
        #[serde(default = "one")]
        largest: f64,
    },
    /// Tangents of evenly spaced half angles, as in random Fourier features.
    Rfa {
        /// Largest angle as a share of pi, between 0 and 1.
        theta: f64,
        /// Largest temperature, that of the last pair.
        #[serde(default = "one")]
        largest: f64,
    },
}

fn four() -> usize {
    4
}

fn sixteen() -> usize {
    16
}

fn one() -> f64 {
    1.0
}

fn half_a_million() -> f64 {
    500_000.0
}

impl Temperature {
    /// Temperature of each pair.
    pub fn values(&self, head_dim: usize) -> Vec<f64> {
        match self {
            Self::Rope { base, largest } => {
                inverse_frequencies(*base, head_dim).into_iter().map(|f| largest * f).collect()
            }
            Self::Rfa { theta, largest } => {
                let last = (head_dim / 2).saturating_sub(1).max(1) as f64;
                // sqrt((1 - cos a) / (1 + cos a)), whose denominator would vanish near pi.
                let tangent = |a: f64| (a / 2.0).tan();
                let top = tangent(theta * PI);
                (0..head_dim / 2)
                    .map(|m| largest * tangent(theta * PI * m as f64 / last) / top)
                    .collect()
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), PeError> {
        let pe = SelectiveRope::CARD.id;
        let (Self::Rope { largest, .. } | Self::Rfa { largest, .. }) = *self;
        check_above_zero(pe, "temperature.largest", largest)?;
        match *self {
            Self::Rope { base, .. } => {
                let usable = base.is_finite() && base >= 1.0;
                PeError::require(usable, pe, "temperature.base", base, "at least 1")
            }
            Self::Rfa { theta, .. } => {
                let usable = theta > 0.0 && theta < 1.0;
                let expected = "a share of pi between 0 and 1";
                PeError::require(usable, pe, "temperature.theta", theta, expected)
            }
        }
    }
}

crate::settings! {
    /// Settings of Selective RoPE.
    pub struct SelectiveRopeConfig {
        /// Map from tokens to steps.
        pub map: Map = Map::LowRank { rank: 32 },
        /// Filter over the steps of neighbouring tokens.
        pub filter: Filter = Filter::Convolution { kernel: 4, activation: ConvActivation::None },
        /// Whether a learned positive step is added to each step.
        pub bias: bool = false,
        /// Gate that multiplies the steps.
        pub gate: Gate = Gate::None {},
        /// Temperatures of the pairs.
        pub temperature: Temperature = Temperature::Rope { base: half_a_million(), largest: 1.0 },
    }
}

impl SelectiveRopeConfig {
    /// Length of the convolution in tokens; `None` without one.
    pub(super) fn kernel(&self) -> Option<usize> {
        match self.filter {
            Filter::Convolution { kernel, .. } => Some(kernel),
            Filter::Difference {} => None,
        }
    }

    /// Number of weights of one layer that each token is multiplied with once.
    pub(super) fn weights(&self, dims: &Dims) -> usize {
        let channels = dims.heads * (dims.head_dim / 2);
        self.projections(dims) + channels * self.kernel().unwrap_or(0)
    }

    /// Number of those weights that belong to linear maps.
    pub(super) fn projections(&self, dims: &Dims) -> usize {
        let (width, channels) = (dims.width, dims.heads * (dims.head_dim / 2));
        let map = match self.map {
            Map::LowRank { rank } => rank * (width + channels),
            Map::FullRank {} => width * (dims.head_dim / 2),
        };
        let gate = match self.gate {
            Gate::None {} => 0,
            Gate::PerHead {} => width * dims.heads,
            Gate::PerHeadLowRank { rank } => rank * (width + dims.heads),
            Gate::PerChannel { rank } => rank * (width + channels),
        };
        map + gate
    }
}
