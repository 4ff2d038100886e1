//! # GRAPE: positions as group actions, in four variants
//!
//! ## What it does
//! Rotates queries and keys by learned frequencies (`multiplicative`) or by angles computed from the
//! tokens and summed along the sequence (`contextual`); or subtracts from the logits the distance
//! times a slope computed from key and query (`additive`), or a sum of such slopes over the tokens
//! between key and query (`path`).
//!
//! ## Formula
//! `multiplicative`: position `n` turns plane `(m, m + D/2)` by `-n f_m`, `f_m = exp(stored_m / 16)`.
//! `contextual`: by `-f_m` times the sum over earlier tokens of `omega = sigma((W x + b) / 16)`,
//! `f_m = exp(stored_m)`.
//! `additive`: `logit = q.k / sqrt(D) - (i - j) softplus(w_h) slope_h (g_j + g'_i)`,
//! `g_j = softplus(u_h . k_j / (|u_h| sqrt(D)))`, `g'_i = softplus(v_h . q_i / (|v_h| sqrt(D)))`.
//! `path`: `logit = q.k / sqrt(D) + slope_h (sum over l in j+1..=i of
//! ln sigma(p_i . R_l rms(p_l) / d))`, `p = W x` per head, `R_l` turns every plane by `-l`.
//! Slopes are ALiBi's. QK normalisation: `q <- w_q q / rms(q)`, `k <- w_k k / rms(k)`.
//!
//! ## Shapes
//! `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged; `score: TokenPrice`
//! (`additive`), `StepPrices` (`path`); `state: [B, 1 or H, T, 1]` (`contextual`, `omega`), `[B, H, T, d]` (`path`, `p`).
//!
//! ## Settings
//! `variant`: `{ type = "path", .. }` (default, the best in the paper), `{ type = "multiplicative", .. }`,
//! `{ type = "contextual", .. }` or `{ type = "additive", .. }`. Of each: `qk_norm`, `none` or `rms`.
//! `path`: `dim` (8), `qk_norm` (`rms`).
//! `multiplicative`: `base` (10000), `spectrum` (`all-heads` or `per-head`), `storage` (16),
//! `qk_norm` (`none`).
//! `contextual`: `base` (10000), `phase` (`all-heads` or `per-head`), `qk_norm` (`rms`).
//! `additive`: `gate` (`key`, `query` or `both`), `qk_norm` (`none`).
//!
//! ## Initial values
//! Those of the authors' code: `softplus(w_h)` 1 and directions normal with deviation `D^(-1/2)` (`additive`), `omega`
//! 0.394 for all tokens (`contextual`), RoPE's frequencies (`multiplicative`), projections normal with deviation
//! `C^(-1/2) / 2` (`path`).
//!
//! ## Deviations
//! All models of the authors, including that of RoPE, normalise queries and keys. The model here does
//! not, and neither do `multiplicative` and `additive` by default. `contextual` starts with an omega of
//! 0.394, as the authors' code does; a comment there speaks of 0.001. `storage` only divides the
//! learning rate of the frequencies. The epsilon in the norm of `path`'s `p` is f32's machine epsilon, 1.2e-7, at every
//! precision; PyTorch's default, which the authors' code has, is the epsilon of the type that it computes in.
//!
//! ## References
//! Zhang et al. 2025, "Group Representational Position Encoding", arXiv 2512.07805;
//! `model-architectures/GRAPE` at f5b539f350.

mod additive;
mod contextual;
mod multiplicative;
mod norm;
mod path;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use additive::{Additive, AdditiveConfig, GateInput};
pub use contextual::{ContextualConfig, ContextualRotation};
pub use multiplicative::{HeadSharing, Multiplicative, MultiplicativeConfig};
pub use norm::{QkNorm, QkNorms};
pub use path::{AdditivePath, AdditivePathConfig};

use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext, StateContext};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::{Cost, Dims, PeError, PositionEncoding, ScoreMod, TokenState};

/// The four variants of GRAPE, each with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Variant {
    /// Rotation by learned frequencies.
    Multiplicative(MultiplicativeConfig),
    /// Rotation by angles that are sums over the tokens.
    Contextual(ContextualConfig),
    /// Distance times a slope computed from key and query.
    Additive(AdditiveConfig),
    /// Sum of slopes over the tokens between key and query.
    Path(AdditivePathConfig),
}

crate::settings! {
    /// Settings of the GRAPE encoding: its variant.
    pub struct GrapeConfig {
        /// Variant of GRAPE, with its settings.
        pub variant: Variant = Variant::Path(AdditivePathConfig::default()),
    }
}

/// Module of one of the four variants.
#[derive(Module, Debug)]
pub enum Grape {
    /// Rotation by learned frequencies.
    Multiplicative(Multiplicative),
    /// Rotation by angles that are sums over the tokens.
    Contextual(ContextualRotation),
    /// Distance times a slope computed from key and query.
    Additive(Additive),
    /// Sum of slopes over the tokens between key and query.
    Path(AdditivePath),
}

/// Calls an associated function of the variant's type, which `$call` refers to as `$Type`.
macro_rules! settings_of {
    ($settings:expr, $config:ident, $Type:ident => $call:expr) => {
        match &$settings.variant {
            Variant::Multiplicative($config) => {
                type $Type = Multiplicative;
                $call
            }
            Variant::Contextual($config) => {
                type $Type = ContextualRotation;
                $call
            }
            Variant::Additive($config) => {
                type $Type = Additive;
                $call
            }
            Variant::Path($config) => {
                type $Type = AdditivePath;
                $call
            }
        }
    };
}

/// Calls a method of the variant.
macro_rules! each {
    ($value:expr, $name:ident => $call:expr) => {
        match $value {
            Self::Multiplicative($name) => $call,
            Self::Contextual($name) => $call,
            Self::Additive($name) => $call,
            Self::Path($name) => $call,
        }
    };
}

impl PositionEncoding for Grape {
    type Settings = GrapeConfig;

    const CARD: Card = AdditivePath::CARD;

    fn card(settings: &GrapeConfig) -> Card {
        settings_of!(settings, config, E => E::card(config))
    }

    fn check(settings: &GrapeConfig, dims: &Dims) -> Result<(), PeError> {
        settings_of!(settings, config, E => E::check(config, dims))
    }

    fn build(
        settings: &GrapeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        Ok(match &settings.variant {
            Variant::Multiplicative(config) => {
                Self::Multiplicative(Multiplicative::build(config, dims, rng, device)?)
            }
            Variant::Contextual(config) => {
                Self::Contextual(ContextualRotation::build(config, dims, rng, device)?)
            }
            Variant::Additive(config) => {
                Self::Additive(Additive::build(config, dims, rng, device)?)
            }
            Variant::Path(config) => Self::Path(AdditivePath::build(config, dims, rng, device)?),
        })
    }

    fn param_count(settings: &GrapeConfig, dims: &Dims) -> Option<usize> {
        settings_of!(settings, config, E => E::param_count(config, dims))
    }

    fn cost(settings: &GrapeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        settings_of!(settings, config, E => E::cost(config, dims, len))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        each!(self, grape => grape.state(ctx))
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        each!(self, grape => grape.transform_qk(q, k, ctx))
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        each!(self, grape => grape.score(ctx))
    }
}

impl ScalarReference for Grape {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        each!(self, grape => grape.scalar_transformed(input))
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        each!(self, grape => grape.scalar_logits(input))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[
        Examples {
            facts: "acts on query, key, logits, state; content dependent; dense on GPUs in f32",
            texts: &["grape"],
        },
        Examples {
            facts: "acts on logits; content dependent, reads vectors, shift invariant; dense on GPUs in f32",
            texts: &["grape{variant={type=additive}}", "grape{variant={type=additive,gate=both}}"],
        },
        Examples {
            facts: "acts on query, key, logits; content dependent, reads vectors, shift invariant; dense on GPUs in f32",
            texts: &[
                "grape{variant={type=additive,gate=query,qk_norm=rms}}",
                "grape{variant={type=additive,gate=both,qk_norm=rms}}",
            ],
        },
        Examples {
            facts: "acts on query, key, state; content dependent, ignores positions, shift invariant",
            texts: &[
                "grape{variant={type=contextual}}",
                "grape{variant={type=contextual,phase=per-head}}",
                "grape{variant={type=contextual,qk_norm=none,base=50.0}}",
            ],
        },
        Examples {
            facts: "acts on query, key; shift invariant",
            texts: &[
                "grape{variant={type=multiplicative}}",
                "grape{variant={type=multiplicative,spectrum=per-head}}",
                "grape{variant={type=multiplicative,storage=1.0}}",
            ],
        },
        Examples {
            facts: "acts on query, key; content dependent",
            texts: &["grape{variant={type=multiplicative,qk_norm=rms}}"],
        },
        Examples {
            facts: "acts on logits, state; content dependent; dense on GPUs in f32",
            texts: &["grape{variant={type=path,dim=2,qk_norm=none}}"],
        },
    ];

    const DIMS: Dims =
        Dims { layers: 1, width: 12, heads: 2, head_dim: 6, train_len: 8, max_len: 8 };

    #[test]
    fn odd_planes_and_bad_storage_are_refused_by_name() {
        let odd = Dims { width: 10, head_dim: 5, ..DIMS };
        for variant in [
            Variant::Multiplicative(MultiplicativeConfig::default()),
            Variant::Contextual(ContextualConfig::default()),
        ] {
            let error = Grape::check(&GrapeConfig { variant }, &odd).unwrap_err().to_string();
            assert!(error.contains("grape: model.head_dim is 5"), "{error}");
        }
        let variant = Variant::Path(AdditivePathConfig { dim: 3, ..AdditivePathConfig::default() });
        let error = Grape::check(&GrapeConfig { variant }, &DIMS).unwrap_err().to_string();
        assert!(error.contains("variant.dim is 3") && error.contains("even"), "{error}");
        let config = MultiplicativeConfig { storage: 0.0, ..MultiplicativeConfig::default() };
        let error = Grape::check(&GrapeConfig { variant: Variant::Multiplicative(config) }, &DIMS)
            .unwrap_err();
        assert!(error.to_string().contains("variant.storage is 0"), "{error}");
    }

    #[test]
    fn the_best_variant_needs_no_even_head_dimension() {
        assert!(
            Grape::check(&GrapeConfig::default(), &Dims { width: 10, head_dim: 5, ..DIMS }).is_ok()
        );
    }
}
