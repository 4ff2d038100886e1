//! State of the tokens besides query, key and value.

use burn::tensor::Tensor;

/// Per-token tensors of one layer, each `[B, 1 or H, T, any]`.
///
/// The token axis is always axis 2, so that a cache can append tokens and rows can be told from
/// columns without knowing the meaning of the numbers.
#[derive(Debug, Clone, Default)]
pub struct TokenState {
    /// The tensors, in the encoding's own order.
    pub tensors: Vec<Tensor<4>>,
}

impl TokenState {
    /// The token axis of every tensor.
    pub const TOKEN_AXIS: usize = 2;

    /// Appends the tokens of `next` after those of `self`.
    #[must_use]
    pub fn followed_by(&self, next: &Self) -> Self {
        if self.tensors.is_empty() {
            return next.clone();
        }
        let tensors = self
            .tensors
            .iter()
            .zip(&next.tensors)
            .map(|(old, new)| Tensor::cat(vec![old.clone(), new.clone()], Self::TOKEN_AXIS))
            .collect();
        Self { tensors }
    }
}
