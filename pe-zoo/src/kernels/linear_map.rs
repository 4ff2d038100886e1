//! A linear map and its bias.

use burn::tensor::Tensor;

/// Weight `[I, O]` and bias `[O]` of a linear map.
#[derive(Debug, Clone)]
pub struct LinearMap {
    /// Weight of the map, `[I, O]`.
    pub weight: Tensor<2>,
    /// Bias of the outputs, `[O]`.
    pub bias: Option<Tensor<1>>,
}
