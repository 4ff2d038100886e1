//! Distance multiplied by slopes (prices) that depend on keys, queries or both, as a modifier of the logits.

use burn::tensor::Tensor;

/// Adds `-rate[h] (i - j) (keys[j] + queries[i])`: ALiBi with slopes that depend on the tokens.
#[derive(Debug, Clone)]
pub struct TokenPrice {
    /// Rates of the heads, `[H]`.
    pub rate: Tensor<1>,
    /// Prices of the keys, `[B, H, S, 1]`; 0 where absent.
    pub keys: Option<Tensor<4>>,
    /// Prices of the queries, `[B, H, T, 1]`; 0 where absent.
    pub queries: Option<Tensor<4>>,
}
