//! # Selective RoPE: each token says by how much to turn
//!
//! ## What it does
//! Rotates queries and keys as RoPE does, but the angle grows from token to token by steps computed
//! from the tokens. A token can thus advance the position quickly or not at all.
//!
//! ## Formula
//! `u` is the layer's input, each head's slice of it divided by `sqrt(|slice|^2 + 1e-6)`;
//! `s = W2 W1 u` (`map`), `phi[t] = sum over k of taps[k] s[t - K + 1 + k]` or `s[t] - s[t - 1]`
//! (`filter`), `+ exp(b)` (`bias`), `* sigma(W u + b')` (`gate`);
//! `angle[t, m] = tau_m * sum of phi[r, m] for r <= t`, for the `D / 2` pairs `(m, m + D/2)`.
//!
//! ## Shapes
//! `state: [B, H, T, D/2]` (the steps `s`) and, with a gate, `[B, H, T, 1 or D/2]`;
//! `transform_qk: [B, H, T, D], [B, H, S, D]` unchanged, filter and sum running over all columns.
//!
//! ## Settings
//! `map`: `{ kind = "low-rank", rank = 32 }` (default, the published configurations; all heads from
//! the whole width) or `{ kind = "full-rank" }` (per head, its columns of length 1, one learned
//! multiplier per head).
//! `filter`: `{ kind = "convolution", kernel = 4, activation = "none" }` (default; or `silu`) or `{
//! kind = "difference" }` (the sum then gives `s` itself).
//! `bias` (false): a learned step of `exp(b)`, 1 at the start.
//! `gate`: `{ kind = "none" }` (default), `{ kind = "per-head" }`, `{ kind = "per-head-low-rank",
//! rank = 16 }` or `{ kind = "per-channel", rank = 16 }`.
//! `temperature`: `{ kind = "rope", base = 500000, largest = 1 }` (default; `tau_m = largest
//! base^(-2m / D)`) or `{ kind = "rfa", theta, largest = 1 }` (`0 < theta < 1`; `tau_m`
//! proportional to `sqrt((1 - cos a_m) / (1 + cos a_m))`, `a_m` spaced evenly from 0 to `theta
//! pi`).
//! Learned parameters per layer: the map has `rank (C + C/2)` or `C D/2 + H`; the filter `kernel C/2` or none; the step of
//! `bias` `C/2`; the gate none, `C H + H`, `rank (C + H) + H` or `rank (C + C/2) + C/2`.
//!
//! ## Initial values
//! Maps, filter and gates: as PyTorch starts linear layers and convolutions, which the authors' code leaves as they are.
//!
//! ## Deviations
//! Temperatures are fixed, as in the published configurations (the authors' code can train them).
//! Initial values are those of PyTorch's layers, `+-1 / sqrt(inputs)`, and for the full-rank map
//! `+-sqrt(12 / D)`, whose scale its normalisation removes.
//!
//! ## References
//! Movahedi et al. 2025, "Selective Rotary Position Embedding", arXiv 2511.17388; authors' code
//! `timurcarstensen/selective-rope` `modules/rotary.py` at d12e82503d.

mod phases;
mod settings;

pub use phases::{PerHead, PhaseMap, Phases, Projection};
pub use settings::{ConvActivation, Filter, Gate, Map, SelectiveRopeConfig, Temperature};

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::{LayerContext, StateContext};
use crate::reference::{Heads, ScalarInput, ScalarReference, rope};
use crate::rotary::{Rotation, check_pairs};
use crate::settings::check_size;
use crate::{Cost, Dims, PeError, PositionEncoding, Positions, TokenState};

/// Rotation of queries and keys by angles computed from the tokens.
#[derive(Module, Debug)]
pub struct SelectiveRope {
    /// Learned parameters, one set per layer.
    pub layers: Vec<Phases>,
    #[module(skip)]
    temperatures: Vec<f64>,
    /// Cache key of the temperatures among the values stored with the positions.
    #[module(skip)]
    key: String,
}

impl SelectiveRope {
    /// Temperatures of the pairs, `[1, 1, 1, D/2]`.
    fn temperatures(&self, at: &Positions, device: &Device) -> Tensor<4> {
        at.memo(&self.key, device, || {
            let values = self.temperatures.iter().map(|t| *t as f32).collect::<Vec<_>>();
            let shape = [1, 1, 1, values.len()];
            Tensor::from_data(TensorData::new(values, shape), device)
        })
    }
}

impl PositionEncoding for SelectiveRope {
    type Settings = SelectiveRopeConfig;

    const CARD: Card = Card {
        id: "selective-rope",
        label: "Selective RoPE",
        summary: "Rotates queries and keys by angles that grow by steps computed from the tokens.",
        parameters: "L (rank (C + C/2) + 2 C)",
        paper: "Movahedi et al. 2025",
        url: "https://arxiv.org/abs/2511.17388",
    };

    fn card(settings: &SelectiveRopeConfig) -> Card {
        let parameters = match settings {
            SelectiveRopeConfig {
                map: Map::LowRank { .. },
                filter: Filter::Convolution { kernel: 4, .. },
                bias: false,
                gate: Gate::None {},
                temperature: _,
            } => Self::CARD.parameters,
            _ => "L (map + filter + bias + gate)",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &SelectiveRopeConfig, dims: &Dims) -> Result<(), PeError> {
        let pe = Self::CARD.id;
        check_pairs(pe, dims.head_dim)?;
        // Slices of the inputs stand for the heads; those that a map of full rank reads are as wide as a head.
        let fits = match settings.map {
            Map::LowRank { .. } => dims.width.is_multiple_of(dims.heads),
            Map::FullRank {} => dims.width == dims.heads_width(),
        };
        let expected =
            "a multiple of the number of heads; with a map of full rank, heads times head_dim";
        PeError::require(fits, pe, "model.width", dims.width, expected)?;
        if let Map::LowRank { rank } = settings.map {
            check_size(pe, "map.rank", rank)?;
        }
        check_size(pe, "filter.kernel", settings.kernel().unwrap_or(1))?;
        if let Gate::PerHeadLowRank { rank } | Gate::PerChannel { rank } = settings.gate {
            check_size(pe, "gate.rank", rank)?;
        }
        settings.temperature.check()
    }

    fn build(
        settings: &SelectiveRopeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        Ok(SelectiveRope {
            layers: (0..dims.layers).map(|_| Phases::new(settings, dims, rng, device)).collect(),
            temperatures: settings.temperature.values(dims.head_dim),
            key: format!("selective-rope {} {:?}", dims.head_dim, settings.temperature),
        })
    }

    fn param_count(settings: &SelectiveRopeConfig, dims: &Dims) -> Option<usize> {
        let channels = dims.heads * (dims.head_dim / 2);
        let extra_scalars = match settings.map {
            Map::LowRank { .. } => 0,
            Map::FullRank {} => dims.heads,
        };
        let gate_offsets = match settings.gate {
            Gate::None {} => 0,
            Gate::PerHead {} | Gate::PerHeadLowRank { .. } => dims.heads,
            Gate::PerChannel { .. } => channels,
        };
        let bias = if settings.bias { channels } else { 0 };
        Some(dims.layers * (settings.weights(dims) + extra_scalars + gate_offsets + bias))
    }

    fn cost(settings: &SelectiveRopeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let tokens = dims.layers * len;
        let channels = dims.heads * (dims.head_dim / 2);
        let taps = 2 * settings.kernel().unwrap_or(1);
        Some(
            Cost::none()
                .product("steps, gates", tokens * settings.projections(dims))
                .elementwise("lengths of slices", 4 * tokens * dims.width)
                .elementwise(
                    "filter, gate, running sum, temperature",
                    tokens * channels * (taps + 6),
                )
                .elementwise("rotation of queries and keys", 6 * tokens * dims.heads_width()),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        TokenState { tensors: self.layers[ctx.layer].per_token(ctx.x) }
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let phases = self.layers[ctx.layer].phases(&ctx.cols.tensors);
        let angles = phases.cumsum(2) * self.temperatures(ctx.at, &q.device());
        Rotation::by_angles(angles).turn_both(q, k, ctx.at)
    }
}

impl ScalarReference for SelectiveRope {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let steps = self.layers[input.layer].scalar(&input.x, input.q.len());
        rope::selective_rope(input, &steps, &self.temperatures)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let steps = self.layers[input.layer].scalar(&input.x, input.q.len());
        rope::selective_rope_logits(input, &steps, &self.temperatures)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::zoo::tests::Examples;
    use crate::{Dims, PositionEncoding};

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on query, key, state; content dependent, ignores positions, shift invariant",
        texts: &[
            "selective-rope",
            "selective-rope{map={kind=full-rank},bias=true,filter={kind=convolution,kernel=3,activation=silu}}",
            "selective-rope{filter={kind=difference},gate={kind=per-head}}",
            "selective-rope{map={kind=low-rank,rank=2},filter={kind=convolution,kernel=1},gate={kind=per-head-low-rank,rank=3},temperature={kind=rfa,theta=0.4,largest=0.5}}",
            "selective-rope{bias=true,gate={kind=per-channel},temperature={kind=rope,base=10.0,largest=0.3}}",
        ],
    }];

    const DIMS: Dims =
        Dims { layers: 1, width: 128, heads: 2, head_dim: 64, train_len: 8, max_len: 8 };

    fn config(settings: serde_json::Value) -> SelectiveRopeConfig {
        serde_json::from_value(settings).unwrap()
    }

    /// Expected values for D 64.
    #[test]
    fn temperatures_are_those_of_the_specification() {
        let rope = SelectiveRopeConfig::default().temperature.values(64);
        for (m, expected) in [(0, 1.0), (1, 0.663_601), (31, 3.0139e-6)] {
            assert!((rope[m] / expected - 1.0).abs() < 2e-5, "{m}: {}", rope[m]);
        }
        let rfa = Temperature::Rfa { theta: 0.5, largest: 2.0 }.values(10);
        // Tangents of 0, pi/16, …, pi/4, times 2.
        let tangents = (0..5).map(|m| 2.0 * (std::f64::consts::PI * f64::from(m) / 16.0).tan());
        for (temperature, expected) in rfa.iter().zip(tangents) {
            assert!((temperature - expected).abs() < 1e-12, "{rfa:?}");
        }
        // `1 + cos` of an angle so near to pi is 0.
        let steep = Temperature::Rfa { theta: 1.0 - 1e-9, largest: 2.0 }.values(64);
        assert!(steep.iter().all(|temperature| temperature.is_finite()), "{steep:?}");
        assert!((steep[31] - 2.0).abs() < 1e-3, "{steep:?}");
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        for (settings, expected) in [
            (json!({ "map": { "kind": "low-rank", "rank": 0 } }), "map.rank is 0"),
            (json!({ "filter": { "kind": "convolution", "kernel": 0 } }), "filter.kernel is 0"),
            (json!({ "gate": { "kind": "per-channel", "rank": 0 } }), "gate.rank is 0"),
            (json!({ "temperature": { "kind": "rfa", "theta": 1.5 } }), "temperature.theta is 1.5"),
            (json!({ "temperature": { "kind": "rope", "base": 0.5 } }), "temperature.base is 0.5"),
        ] {
            let error = SelectiveRope::check(&config(settings), &DIMS).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn settings_of_another_kind_are_refused_by_name() {
        for settings in [
            json!({ "map": { "kind": "full-rank", "rank": 3 } }),
            json!({ "gate": { "kind": "per-head", "rank": 3 } }),
            json!({ "gate": { "kind": "none", "rank": 3 } }),
        ] {
            let error =
                serde_json::from_value::<SelectiveRopeConfig>(settings).unwrap_err().to_string();
            assert!(error.contains("unknown field `rank`"), "{error}");
        }
    }

    #[test]
    fn the_formula_in_the_table_is_the_count_of_the_default() {
        let (width, rank) = (DIMS.width, 32);
        // Four taps per pair of channels are two per channel.
        let formula = DIMS.layers * (rank * (width + width / 2) + 2 * width);
        assert_eq!(
            SelectiveRope::param_count(&SelectiveRopeConfig::default(), &DIMS),
            Some(formula)
        );
    }
}
