//! Settings of forgetting attention.

use serde::{Deserialize, Serialize};

use super::Fox;
use crate::settings::check_size;
use crate::{PeError, PositionEncoding};

crate::settings! {
    /// Time constants of the heads in tokens, log-spaced from the first head to the last.
    #[derive(Copy)]
    pub struct DecayTimes {
        /// Time constant of the first head, in tokens.
        pub tau_min: f64 = 2.0,
        /// Time constant of the last head, in tokens.
        pub tau_max: f64 = 128.0,
    }
}

impl DecayTimes {
    /// Returns the time constant of each head; `tau_min` if there is one head.
    pub fn values(self, heads: usize) -> Vec<f64> {
        let ratio = (self.tau_max / self.tau_min).ln();
        let steps = heads.saturating_sub(1).max(1) as f64;
        (0..heads).map(|h| self.tau_min * (ratio * h as f64 / steps).exp()).collect()
    }

    pub(super) fn check(self) -> Result<(), PeError> {
        let (pe, min, max) = (Fox::CARD.id, self.tau_min, self.tau_max);
        let usable = min.is_finite() && min > 0.0;
        PeError::require(usable, pe, "gates.tau_min", min, "a number of tokens above 0")?;
        let expected = format!("a number of at least tau_min, which is {min}");
        PeError::require(max.is_finite() && max >= min, pe, "gates.tau_max", max, expected)
    }
}

/// Input of the forget gates, and whether they are learned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ForgetGate {
    /// Each gate depends on the token through a learned projection per layer.
    Full {
        /// Initial value of every bias.
        #[serde(default = "open")]
        bias: f64,
    },
    /// Each gate depends on a key and on the row that reads it, by projections of both per layer.
    PerRow {
        /// Number of channels of each projection per head.
        #[serde(default = "eight")]
        dim: usize,
    },
    /// Each gate depends on the head alone and is learned.
    BiasOnly(DecayTimes),
    /// Each gate depends on the head alone and is constant.
    Fixed(DecayTimes),
}

/// Initial bias with which a gate forgets 0.7% per token.
fn open() -> f64 {
    5.0
}

fn eight() -> usize {
    8
}

crate::settings! {
    /// Settings of forgetting attention.
    pub struct FoxConfig {
        /// Input of the forget gates, and whether they are learned.
        pub gates: ForgetGate = ForgetGate::Full { bias: open() },
    }
}

impl FoxConfig {
    pub(super) fn checked(&self) -> Result<(), PeError> {
        let pe = Fox::CARD.id;
        match self.gates {
            ForgetGate::Full { bias } => {
                PeError::require(bias.is_finite(), pe, "gates.bias", bias, "a finite number")
            }
            ForgetGate::PerRow { dim } => check_size(pe, "gates.dim", dim),
            ForgetGate::BiasOnly(times) | ForgetGate::Fixed(times) => times.check(),
        }
    }
}
