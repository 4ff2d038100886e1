//! Normalisation of queries and keys, applied last.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::ops::rms_norm;
use crate::reference::{grape, values_f64};
use crate::settings::of_layer;
use crate::{Cost, Dims, init};

/// Constant added to the mean of squares, as in the authors' code.
const EPS: f64 = 1e-5;

/// Whether queries and keys are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QkNorm {
    /// Queries and keys are not normalised.
    None,
    /// Root mean square normalisation with a learned weight per channel.
    Rms,
}

/// Learned weights of the normalisation, one set per layer; empty without normalisation.
#[derive(Module, Debug)]
pub struct QkNorms {
    /// Weights of queries, `[D]` for each layer.
    pub q: Vec<Param<Tensor<1>>>,
    /// Weights of keys, `[D]` for each layer.
    pub k: Vec<Param<Tensor<1>>>,
}

impl QkNorm {
    fn sets(self, dims: &Dims) -> usize {
        match self {
            Self::None => 0,
            Self::Rms => dims.layers,
        }
    }

    pub(super) fn init(self, dims: &Dims, device: &Device) -> QkNorms {
        let weights =
            || (0..self.sets(dims)).map(|_| init::constant(1.0, [dims.head_dim], device)).collect();
        QkNorms { q: weights(), k: weights() }
    }

    pub(super) fn param_count(self, dims: &Dims) -> usize {
        2 * self.sets(dims) * dims.head_dim
    }

    pub(super) fn cost(self, dims: &Dims, len: usize) -> Cost {
        match self {
            Self::None => Cost::none(),
            Self::Rms => {
                let channels = 2 * dims.layers * len * dims.heads_width();
                Cost::none().elementwise("normalisation of queries and keys", 4 * channels)
            }
        }
    }
}

impl QkNorms {
    /// Normalises queries `[B, H, T, D]` and keys `[B, H, S, D]`; returns them unchanged without
    /// normalisation.
    pub(super) fn apply(&self, layer: usize, q: Tensor<4>, k: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        if self.q.is_empty() {
            return (q, k);
        }
        // In the order of the projections in memory, `[B, T, H, D]`, so that nothing is copied.
        let scaled = |u: Tensor<4>, weights: &[Param<Tensor<1>>]| {
            rms_norm(u.swap_dims(1, 2), of_layer(weights, layer).val(), EPS).swap_dims(1, 2)
        };
        (scaled(q, &self.q), scaled(k, &self.k))
    }

    /// Returns the weights of a layer in f64 for the scalar reference.
    pub(super) fn scalar(&self, layer: usize) -> Option<grape::ScalarNorm> {
        let weights = |sets: &[Param<Tensor<1>>]| values_f64(of_layer(sets, layer));
        (!self.q.is_empty()).then(|| grape::ScalarNorm { q: weights(&self.q), k: weights(&self.k) })
    }
}
