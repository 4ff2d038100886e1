//! Autodiff settings of weights.

use burn::tensor::{GradientCheckpointingStrategy, Tensor};

/// Autodiff settings of a weight. A replacement needs the same settings to be combined with other tensors.
pub(crate) struct AutodiffRole {
    in_graph: bool,
    learns: bool,
    checkpointing: Option<GradientCheckpointingStrategy>,
}

impl AutodiffRole {
    pub(crate) fn of<const D: usize>(weights: &Tensor<D>) -> Self {
        Self {
            in_graph: weights.is_autodiff(),
            learns: weights.is_require_grad(),
            checkpointing: weights.gradient_checkpointing_strategy(),
        }
    }

    /// Returns the weights outside the autodiff graph.
    pub(super) fn outside<const D: usize>(&self, weights: Tensor<D>) -> Tensor<D> {
        if self.in_graph { weights.inner() } else { weights }
    }

    /// Applies the settings to weights from outside the autodiff graph.
    pub(crate) fn take<const D: usize>(&self, weights: Tensor<D>) -> Tensor<D> {
        if !self.in_graph {
            return weights;
        }
        let weights = Tensor::from_inner(weights);
        let weights = match self.checkpointing {
            Some(strategy) => weights.with_gradient_checkpointing_strategy(strategy),
            None => weights,
        };
        weights.set_require_grad(self.learns)
    }
}
