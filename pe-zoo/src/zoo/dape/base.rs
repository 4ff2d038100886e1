//! Base bias that DAPE adapts: a fixed or learned bias with its own settings.

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Dape;
use crate::encoding::ScoreContext;
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::zoo::alibi::{self, Alibi};
use crate::zoo::fire::{self, Fire};
use crate::zoo::kerple::{self, Kerple};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod};

/// Base bias, with its own settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Base {
    /// No base; the network sees the logits alone.
    None {},
    /// ALiBi as the base.
    Alibi(alibi::AlibiConfig),
    /// KERPLE as the base.
    Kerple(kerple::KerpleConfig),
    /// FIRE as the base.
    Fire(fire::FireConfig),
}

/// Module of the base bias.
#[derive(Module, Debug)]
pub enum BaseBias {
    /// The bias of ALiBi.
    Alibi(alibi::Alibi),
    /// The bias of KERPLE.
    Kerple(kerple::Kerple),
    /// The bias of FIRE.
    Fire(fire::Fire),
}

impl Base {
    pub(super) fn init(
        &self,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Option<BaseBias>, PeError> {
        Ok(match self {
            Self::None {} => None,
            Self::Alibi(config) => Some(BaseBias::Alibi(Alibi::build(config, dims, rng, device)?)),
            Self::Kerple(config) => {
                Some(BaseBias::Kerple(Kerple::build(config, dims, rng, device)?))
            }
            Self::Fire(config) => {
                let activation = config.activation.or(Some(fire::Activation::LeakyRelu));
                let config = fire::FireConfig { activation, ..config.clone() };
                Some(BaseBias::Fire(Fire::build(&config, dims, rng, device)?))
            }
        })
    }

    pub(super) fn check(&self, dims: &Dims) -> Result<(), PeError> {
        match self {
            Self::None {} => Ok(()),
            Self::Alibi(config) => Alibi::check(config, dims),
            Self::Kerple(config) => {
                let is_bias = config.weight == kerple::ContentWeight::None;
                let expected = "`none`, because the base of DAPE is a bias";
                PeError::require(is_bias, Dape::CARD.id, "weight", "power", expected)
                    .and_then(|()| Kerple::check(config, dims))
            }
            Self::Fire(config) => Fire::check(config, dims),
        }
        .map_err(|error| match error {
            PeError::InvalidSetting { field, value, expected, .. } => {
                PeError::invalid(Dape::CARD.id, &format!("base.{field}"), value, expected)
            }
            other => other,
        })
    }

    /// Number of learned parameters of the base.
    pub(super) fn param_count(&self, dims: &Dims) -> usize {
        match self {
            Self::None {} => 0,
            Self::Alibi(config) => Alibi::param_count(config, dims).unwrap_or(0),
            Self::Kerple(config) => Kerple::param_count(config, dims).unwrap_or(0),
            Self::Fire(config) => Fire::param_count(config, dims).unwrap_or(0),
        }
    }

    /// Cost of the base bias itself.
    pub(super) fn cost(&self, dims: &Dims, len: usize) -> Cost {
        match self {
            Self::None {} => Cost::none(),
            Self::Alibi(config) => Alibi::cost(config, dims, len).unwrap_or_else(Cost::none),
            Self::Kerple(config) => Kerple::cost(config, dims, len).unwrap_or_else(Cost::none),
            Self::Fire(config) => Fire::cost(config, dims, len).unwrap_or_else(Cost::none),
        }
    }
}

impl BaseBias {
    /// Returns the modifier that the base would be by itself.
    pub(super) fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        match self {
            Self::Alibi(base) => base.score(ctx),
            Self::Kerple(base) => base.score(ctx),
            Self::Fire(base) => base.score(ctx),
        }
    }

    /// Implements [`ScalarReference::differentiable_at`] for the parameters of the base.
    pub(super) fn differentiable_at(&self, parameter: usize, value: f64) -> bool {
        match self {
            Self::Alibi(base) => base.differentiable_at(parameter, value),
            Self::Kerple(base) => base.differentiable_at(parameter, value),
            Self::Fire(base) => base.differentiable_at(parameter, value),
        }
    }

    /// Computes the base bias of every pair in scalar f64.
    pub(super) fn scalar(&self, input: &ScalarInput) -> Heads {
        match self {
            Self::Alibi(base) => base.scalar_bias(input),
            Self::Kerple(base) => base.scalar_bias(input),
            Self::Fire(base) => base.scalar_bias(input),
        }
    }
}
