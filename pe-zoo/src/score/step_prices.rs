//! A price for every step between key and query.

use burn::tensor::Tensor;

/// Adds `slopes[h]` times the sum over the columns `l` after `j`, up to and with the row's own, of
/// `ln sigma(queries[i] . keys[l] / E)`.
#[derive(Debug, Clone)]
pub struct StepPrices {
    /// Queries of the steps, `[B, H, T, E]`.
    pub queries: Tensor<4>,
    /// Keys of the steps, `[B, H, S, E]`.
    pub keys: Tensor<4>,
    /// Slopes of the heads, `[H]`.
    pub slopes: Tensor<1>,
}
