//! # Selective RoPE: each token says by how much to turn
//!
//! ## What it does
//! Turns queries and keys as RoPE does, but the angle grows from token to token by steps that are
//! read off the tokens themselves. A token can thus hurry the position on or hold it still.
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
//! `filter`: `{ kind = "convolution", kernel = 4, activation = "none" }` (default; or `silu`) or
//! `{ kind = "difference" }` (the sum then gives `s` itself).
//! `bias` (false): a learned step of `exp(b)`, 1 at the start.
//! `gate`: `{ kind = "none" }` (default), `{ kind = "per-head" }`, `{ kind = "per-head-low-rank",
//! rank = 16 }` or `{ kind = "per-channel", rank = 16 }`.
//! `temperature`: `{ kind = "rope", base = 500000, largest = 1 }` (default; `tau_m = largest
//! base^(-2m / D)`) or `{ kind = "rfa", theta, largest = 1 }` (`0 < theta < 1`; `tau_m` proportional
//! to `sqrt((1 - cos a_m) / (1 + cos a_m))`, `a_m` evenly from 0 to `theta pi`).
//!
//! ## Deviations
//! Temperatures are fixed, as in the published configurations (the authors' code can train them).
//! Initial values are those of PyTorch's layers, `+-1 / sqrt(inputs)`, and for the full-rank map
//! `+-sqrt(12 / D)`, which its normalisation takes back.
//!
//! ## References
//! Movahedi et al. 2025, "Selective Rotary Position Embedding", arXiv 2511.17388; authors' code
//! `timurcarstensen/selective-rope` `modules/rotary.py` at d12e82503d.

mod phases;
mod settings;

pub use phases::{PerHead, PhaseMap, Phases, Projection};
pub use settings::{Activation, Config, Filter, Gate, Map, Temperature};

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

use crate::encoding::{LayerContext, StateContext};
use crate::meta::{Claims, PeMeta, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference, selective_rope};
use crate::rotary::Rotation;
use crate::{PositionEncoding, Positions, TokenState};

/// The facts.
pub const META: PeMeta = PeMeta {
    id: "selective-rope",
    label: "Selective RoPE",
    summary: "Rotates queries and keys by angles that grow by steps read off the tokens.",
    sites: &[Site::QueryKey, Site::State],
    claims: Claims {
        shift_invariant: true,
        content_dependent: true,
        limited_length: false,
        depends_on_length: false,
    },
    parameters: "L (rank (C + C/2) + 2 C)",
    paper: "Movahedi et al. 2025",
    url: "https://arxiv.org/abs/2511.17388",
};

/// Rotation by angles that the tokens make.
#[derive(Module, Debug)]
pub struct SelectiveRope {
    /// One per layer.
    pub layers: Vec<Phases>,
    #[module(skip)]
    temperatures: Vec<f64>,
    /// Names the temperatures among what is kept beside positions.
    #[module(skip)]
    key: String,
}

impl SelectiveRope {
    /// `[1, 1, 1, D/2]`.
    fn temperatures(&self, at: &Positions, device: &Device) -> Tensor<4> {
        at.memo(&self.key, device, || {
            let values = self.temperatures.iter().map(|t| *t as f32).collect::<Vec<_>>();
            let shape = [1, 1, 1, values.len()];
            Tensor::from_data(TensorData::new(values, shape), device)
        })
    }
}

impl PositionEncoding for SelectiveRope {
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
        selective_rope::transformed(input, &steps, &self.temperatures)
    }

    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let steps = self.layers[input.layer].scalar(&input.x, input.q.len());
        selective_rope::logits(input, &steps, &self.temperatures)
    }
}

#[cfg(test)]
mod tests;
