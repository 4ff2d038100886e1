//! State of the tokens besides query, key and value.

use std::ops::Range;

use burn::tensor::Tensor;

/// Per-token tensors of one layer, each `[B, 1 or H, T, any]`.
///
/// Tokens are always on axis 2, so that a cache can append them and rows can be selected from
/// columns whatever the numbers mean.
#[derive(Debug, Clone, Default)]
pub struct TokenState {
    /// Tensors, each `[B, 1 or H, T, any]`, in the order defined by the encoding.
    pub tensors: Vec<Tensor<4>>,
}

impl TokenState {
    /// Axis of the tokens in every tensor.
    pub const TOKEN_AXIS: usize = 2;

    /// Returns the state of some of the tokens, given by index.
    pub(crate) fn of_tokens(&self, tokens: Range<usize>) -> Self {
        let of = |tensor: &Tensor<4>| tensor.clone().slice_dim(Self::TOKEN_AXIS, tokens.clone());
        Self { tensors: self.tensors.iter().map(of).collect() }
    }
}
