//! Products of queries with keys that every token in between has reflected.

use burn::tensor::Tensor;

/// Replaces the products `q_i . k_j` by `q_i . H_i H_{i-1} ... H_{j+1} k_j` with `H_t = I - beta_t
/// w_t w_t^T`.
#[derive(Debug, Clone)]
pub struct Reflected {
    /// Directions `w` of length at most 1, `[B, H, S, D]`.
    pub directions: Tensor<4>,
    /// Strengths `beta` from 0 to 2, `[B, H, S, 1]`.
    pub strengths: Tensor<4>,
}

impl Reflected {
    /// Number of columns that engines process together. Larger chunks mean fewer steps, smaller
    /// ones less work within each.
    pub(crate) const CHUNK: usize = 32;
}
