//! A perceptron of the distance as a fraction of the row's position, both on a logarithmic scale.

use burn::tensor::Tensor;

/// `bias[h] = (w2 act(w1 u + b1) + b2)[h]` of `u = psi(i - j) / (psi(max(i, |threshold|)) + eps)` with
/// `psi(x) = ln(|c x| + 1)`, shared by all sequences of the batch.
///
/// `act` is piecewise linear, and so is the bias as a function of `u`.
#[derive(Debug, Clone)]
pub struct PositionMlp {
    /// Scale of distances and positions, `[1]`.
    pub c: Tensor<1>,
    /// Rows at earlier positions than this are normalised as if they were here, `[1]`.
    pub threshold: Tensor<1>,
    /// Added to the normaliser.
    pub eps: f64,
    /// Weights of the hidden layer, `[N]`.
    pub w1: Tensor<1>,
    /// Biases of the hidden layer, `[N]`.
    pub b1: Tensor<1>,
    /// Weights of the output, `[H, N]`.
    pub w2: Tensor<2>,
    /// Biases of the output, `[H]`.
    pub b2: Tensor<1>,
    /// Slope of the activation below 0: 0 is ReLU, anything else LeakyReLU.
    pub negative_slope: f64,
}

impl PositionMlp {
    /// `psi`. `|c x|` and not `c |x|`: `c` may cross 0, and the logarithm must not.
    pub(crate) fn psi<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        (x * self.c.clone().reshape([1; D])).abs().log1p()
    }

    /// Divisor of `psi` of a distance in the rows at these positions.
    pub(crate) fn normalisers<const D: usize>(&self, positions: Tensor<D>) -> Tensor<D> {
        let threshold = self.threshold.clone().abs().reshape([1; D]).expand(positions.dims());
        self.psi(positions.max_pair(threshold)) + self.eps
    }
}
