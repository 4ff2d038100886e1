//! The distance at a price that keys, queries or both set.

use burn::tensor::Tensor;

/// Adds `-rate[h] (i - j) (keys[j] + queries[i])`: an ALiBi whose slope depends on the tokens.
#[derive(Debug, Clone)]
pub struct TokenPrice {
    /// Rates of the heads, `[H]`.
    pub rate: Tensor<1>,
    /// Prices of the keys, `[B, H, S, 1]`; 0 where absent.
    pub keys: Option<Tensor<4>>,
    /// Prices of the queries, `[B, H, T, 1]`; 0 where absent.
    pub queries: Option<Tensor<4>>,
}
