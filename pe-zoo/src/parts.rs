//! Building blocks shared by several encodings.

pub(crate) mod forget;
mod head_projection;
pub(crate) mod householder;

pub use crate::ops::running_sum::{RunningSum, running_sum};
pub use head_projection::HeadProjection;

use burn::tensor::Tensor;

/// Splits channels into heads, `[B, T, C] -> [B, H, T, C / H]`.
pub fn by_head(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, tokens, channels] = x.dims();
    x.reshape([batch, tokens, heads, channels / heads]).swap_dims(1, 2)
}
