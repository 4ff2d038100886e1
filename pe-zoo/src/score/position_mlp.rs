//! Perceptron of the distance divided by the row's position, both on a logarithmic scale.

use burn::tensor::Tensor;

/// Adds `bias[h] = (w2 act(w1 u + b1) + b2)[h]` with `u = psi(i - j) / (psi(max(i, |threshold|)) +
/// eps)` and `psi(x) = ln(|c x| + 1)`, shared by all sequences of the batch.
///
/// `act` is piecewise linear, and so is the bias as a function of `u`.
#[derive(Debug, Clone)]
pub struct PositionMlp {
    /// Scale of distances and positions, `[1]`.
    pub c: Tensor<1>,
    /// Lower bound of the row's position in the denominator, `[1]`.
    pub threshold: Tensor<1>,
    /// Constant added to the denominator.
    pub eps: f64,
    /// Weights of the hidden layer, `[N]`.
    pub w1: Tensor<1>,
    /// Biases of the hidden layer, `[N]`.
    pub b1: Tensor<1>,
    /// Weights of the output, `[H, N]`.
    pub w2: Tensor<2>,
    /// Biases of the output, `[H]`.
    pub b2: Tensor<1>,
    /// Slope of the activation for negative inputs: 0 for ReLU, otherwise LeakyReLU.
    pub negative_slope: f64,
}

impl PositionMlp {
    /// Computes `psi`. It uses `|c x|` and not `c |x|`, because `c` may change sign and the
    /// argument of the logarithm must stay positive.
    pub(crate) fn psi<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        (x * self.c.clone().reshape([1; D])).abs().log1p()
    }

    /// Computes the denominators of `u` for rows at these positions.
    pub(crate) fn normalisers<const D: usize>(&self, positions: Tensor<D>) -> Tensor<D> {
        let threshold = self.threshold.clone().abs().reshape([1; D]).expand(positions.dims());
        self.psi(positions.max_pair(threshold)) + self.eps
    }
}
