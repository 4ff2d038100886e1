//! A linear map and its bias.

use burn::tensor::Tensor;

/// Weight `[I, O]` and bias `[O]` of a linear map.
#[derive(Debug, Clone)]
pub struct LinearMap {
    /// Weight, `[I, O]`.
    pub weight: Tensor<2>,
    /// Bias, `[O]`.
    pub bias: Option<Tensor<1>>,
}
