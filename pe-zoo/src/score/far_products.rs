//! Products of other queries and keys for pairs of tokens at a long distance.

use burn::tensor::Tensor;

/// Replaces the products `q_i . k_j` of pairs at distances of `from` and more by those of other queries and keys, as in methods
/// that shorten distances beyond a window.
#[derive(Debug, Clone)]
pub struct FarProducts {
    /// Queries of far pairs, `[B, H, T, D]`.
    pub queries: Tensor<4>,
    /// Keys of far pairs, `[B, H, S, D]`.
    pub keys: Tensor<4>,
    /// Smallest distance of a far pair.
    pub from: usize,
}
