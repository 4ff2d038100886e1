//! Affine projection of the layer input to one number per head and token.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::ops::linear;
use crate::reference::{Tokens, table_f64, values_f64};
use crate::{Dims, init};

/// Projection `x . weight + bias`, initialised as the linear layers of FoX and PaTH: weights with
/// standard deviation 0.02.
#[derive(Module, Debug)]
pub struct HeadProjection {
    /// Weight of the projection, `[C, H]`.
    weight: Param<Tensor<2>>,
    /// Bias of the projection, `[H]`.
    bias: Param<Tensor<1>>,
}

impl HeadProjection {
    /// Initialises the weights from `rng` and every bias at `bias`.
    pub fn init(dims: &Dims, bias: f64, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        Self {
            weight: init::normal(0.02, [dims.width, dims.heads], rng, device),
            bias: init::constant(bias as f32, [dims.heads], device),
        }
    }

    /// Number of learned parameters of one projection.
    pub fn param_count(dims: &Dims) -> usize {
        dims.width * dims.heads + dims.heads
    }

    /// Applies the projection, `[B, T, C] -> [B, H, T, 1]`.
    pub fn forward(&self, x: &Tensor<3>) -> Tensor<4> {
        let values = linear(x.clone(), self.weight.val(), Some(self.bias.val()));
        values.swap_dims(1, 2).unsqueeze_dim(3)
    }

    /// Returns the weight, `[channel][head]`, and the bias for scalar references.
    pub fn scalars(&self) -> (Tokens, Vec<f64>) {
        (table_f64(&self.weight), values_f64(&self.bias))
    }
}
