//! Sum of content-dependent slopes (prices) of the tokens between key and query, as a modifier of the logits.

use burn::tensor::Tensor;

/// Adds `slopes[h]` times the sum over the columns `l` after `j`, up to and including the row's
/// own, of `ln sigma(queries[i] . keys[l] / E)`.
#[derive(Debug, Clone)]
pub struct StepPrices {
    /// Queries from which step prices are computed, `[B, H, T, E]`.
    pub queries: Tensor<4>,
    /// Keys from which step prices are computed, `[B, H, S, E]`.
    pub keys: Tensor<4>,
    /// Slopes of the heads, `[H]`.
    pub slopes: Tensor<1>,
}
