//! Perceptron across heads, as a modifier of the logits.

use burn::tensor::Tensor;

use super::ScoreMod;

/// Adds `b + g([s; b])`, where `s = q k^T scale` are the content logits and `b` the base biases of
/// all heads at a pair, and `g(y) = w2 act(w1 y + c1) + c2` with LeakyReLU.
///
/// With 3 taps each layer of `g` also sees the neighbouring keys; keys that the row does not see
/// count as 0.
#[derive(Debug, Clone)]
pub struct HeadMlp {
    /// Base bias, an input of `g` that is also added: [`ScoreMod::Slope`], [`ScoreMod::Distance`]
    /// or [`ScoreMod::PositionMlp`]. Without one, `g` sees only the `H` content logits.
    pub base: Option<Box<ScoreMod>>,
    /// Number of keys that each layer sees: 1 or 3.
    pub taps: usize,
    /// Weights of the hidden layer, `[N, taps planes]`, columns ordered by tap; planes are the heads'
    /// content logits, then the heads' base biases.
    pub w1: Tensor<2>,
    /// Biases of the hidden layer, `[N]`.
    pub c1: Tensor<1>,
    /// Weights of the output, `[H, taps N]`, columns ordered by tap.
    pub w2: Tensor<2>,
    /// Biases of the output, `[H]`.
    pub c2: Tensor<1>,
    /// Slope of the activation for negative inputs.
    pub negative_slope: f64,
    /// Factor of the products of queries and keys.
    pub scale: f64,
}
