//! Building blocks shared by several encodings.

pub(crate) mod householder;

pub use crate::ops::running_sum::{RunningSum, running_sum};

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::ops::linear;
use crate::reference::{Tokens, table_f64, values_f64};
use crate::{Dims, ScoreMod, init};

/// Splits channels into heads, `[B, T, C] -> [B, H, T, C / H]`.
pub fn by_head(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, tokens, channels] = x.dims();
    x.reshape([batch, tokens, heads, channels / heads]).swap_dims(1, 2)
}

/// Returns the modifier that adds `factor * (sum of ln f over the tokens after j, up to and
/// including i)`; `log_forget` is `[B, H, S, 1]`, one number per column.
///
/// The engine subtracts running sums of the whole sequence, which are large and nearly equal for
/// long sequences. Their rounding errors are passed on as a second, small decay.
pub(crate) fn forget_decay(log_forget: Tensor<4>, factor: f64) -> ScoreMod {
    let sums = running_sum(log_forget.squeeze_dim::<3>(3) * factor);
    let decay = |cumulative| ScoreMod::Decay { cumulative };
    match sums.lost {
        Some(lost) => ScoreMod::Sum(vec![decay(sums.rounded), decay(lost)]),
        None => decay(sums.rounded),
    }
}

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
