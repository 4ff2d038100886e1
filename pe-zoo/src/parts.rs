//! Building blocks shared by several encodings.

pub(crate) mod forget;
pub(crate) mod head_projection;
pub(crate) mod householder;

use burn::tensor::Tensor;

/// Splits channels into heads, `[B, T, C] -> [B, H, T, C / H]`.
pub(crate) fn by_head(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, tokens, channels] = x.dims();
    x.reshape([batch, tokens, heads, channels / heads]).swap_dims(1, 2)
}
