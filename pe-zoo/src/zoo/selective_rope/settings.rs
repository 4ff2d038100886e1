//! Settings, their checks and what they cost.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use super::SelectiveRope;
use crate::math::frequencies::inverse_frequencies;
use crate::{Dims, PeError, PositionEncoding};

/// How steps are read off the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Map {
    /// From the whole width through few numbers.
    LowRank {
        /// How many.
        rank: usize,
    },
    /// Per head, from its own slice.
    FullRank {},
}

/// How steps of neighbouring tokens are combined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Filter {
    /// A learned causal convolution of each channel, without bias.
    Convolution {
        /// Tokens that it sees.
        #[serde(default = "four")]
        kernel: usize,
        /// What follows it.
        #[serde(default)]
        activation: Activation,
    },
    /// The difference from the token before.
    Difference {},
}

/// What follows the convolution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// `x sigma(x)`.
    Silu,
}

/// What steps are multiplied by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Gate {
    /// Nothing.
    None {},
    /// One gate per head.
    PerHead {},
    /// One gate per head, through few numbers.
    PerHeadLowRank {
        /// How many.
        #[serde(default = "sixteen")]
        rank: usize,
    },
    /// One gate per pair of channels, through few numbers.
    PerChannel {
        /// How many.
        #[serde(default = "sixteen")]
        rank: usize,
    },
}

/// How fast each pair turns per step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Temperature {
    /// As the frequencies of RoPE.
    Rope {
        /// The slowest pair is about this many times slower than the fastest.
        #[serde(default = "half_a_million")]
        base: f64,
        /// The fastest.
        #[serde(default = "one")]
        largest: f64,
    },
    /// Tangents of evenly spaced half angles, as in random Fourier features.
    Rfa {
        /// The largest angle as a share of pi, between 0 and 1.
        theta: f64,
        /// The fastest.
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
    /// One per pair.
    pub fn values(&self, head_dim: usize) -> Vec<f64> {
        match self {
            Self::Rope { base, largest } => {
                inverse_frequencies(*base, head_dim).into_iter().map(|f| largest * f).collect()
            }
            Self::Rfa { theta, largest } => {
                let last = (head_dim / 2).saturating_sub(1).max(1) as f64;
                let tangent = |a: f64| ((1.0 - a.cos()) / (1.0 + a.cos())).sqrt();
                let top = tangent(theta * PI);
                (0..head_dim / 2)
                    .map(|m| largest * tangent(theta * PI * m as f64 / last) / top)
                    .collect()
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), PeError> {
        let (Self::Rope { largest, .. } | Self::Rfa { largest, .. }) = self;
        if !(largest.is_finite() && *largest > 0.0) {
            let expected = "a number above 0";
            return Err(PeError::invalid(
                SelectiveRope::CARD.id,
                "temperature.largest",
                largest,
                expected,
            ));
        }
        match self {
            Self::Rope { base, .. } if !(base.is_finite() && *base >= 1.0) => Err(
                PeError::invalid(SelectiveRope::CARD.id, "temperature.base", base, "at least 1"),
            ),
            Self::Rfa { theta, .. } if !(*theta > 0.0 && *theta < 1.0) => {
                let expected = "a share of pi between 0 and 1";
                Err(PeError::invalid(SelectiveRope::CARD.id, "temperature.theta", theta, expected))
            }
            _ => Ok(()),
        }
    }
}

/// Settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How steps are read off the tokens.
    pub map: Map,
    /// How steps of neighbouring tokens are combined.
    pub filter: Filter,
    /// Whether a learned positive step is added to each.
    pub bias: bool,
    /// What steps are multiplied by.
    pub gate: Gate,
    /// How fast each pair turns per step.
    pub temperature: Temperature,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            map: Map::LowRank { rank: 32 },
            filter: Filter::Convolution { kernel: 4, activation: Activation::None },
            bias: false,
            gate: Gate::None {},
            temperature: Temperature::Rope { base: half_a_million(), largest: 1.0 },
        }
    }
}

impl Config {
    /// Tokens that the convolution sees, if there is one.
    pub(super) fn kernel(&self) -> Option<usize> {
        match self.filter {
            Filter::Convolution { kernel, .. } => Some(kernel),
            Filter::Difference {} => None,
        }
    }

    /// Numbers of one layer that each token is multiplied with once.
    pub(super) fn weights(&self, dims: &Dims) -> usize {
        let channels = dims.heads * (dims.head_dim / 2);
        self.projections(dims) + channels * self.kernel().unwrap_or(0)
    }

    /// Those of them in linear maps.
    pub(super) fn projections(&self, dims: &Dims) -> usize {
        let (width, channels) = (dims.width(), dims.heads * (dims.head_dim / 2));
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
