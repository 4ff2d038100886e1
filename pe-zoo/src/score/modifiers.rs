//! Operands of the modifiers that have several.

use burn::tensor::Tensor;

use super::ScoreMod;

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

/// Replaces the products `q_i . k_j` by `q_i . H_i H_{i-1} ... H_{j+1} k_j` with `H_t = I - beta_t
/// w_t w_t^T`.
#[derive(Debug, Clone)]
pub struct Reflected {
    /// Directions `w` of length at most 1, `[B, H, S, D]`.
    pub directions: Tensor<4>,
    /// Strengths `beta` from 0 to 2, `[B, H, S, 1]`.
    pub strengths: Tensor<4>,
}

impl Reflected {
    /// Number of columns that engines process together. Larger chunks mean fewer steps, smaller
    /// ones less work within each.
    pub(crate) const CHUNK: usize = 32;
}

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

/// Replaces the products `q_i . k_j` of far pairs by those of other queries and keys, as in methods that shorten distances beyond a
/// window.
#[derive(Debug, Clone)]
pub struct FarProducts {
    /// Queries of far pairs, `[B, H, T, D]`.
    pub queries: Tensor<4>,
    /// Keys of far pairs, `[B, H, S, D]`.
    pub keys: Tensor<4>,
    /// Pairs that are far.
    pub pairs: FarPairs,
}

/// Pairs of tokens that are far from each other; lengths are in steps of the positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FarPairs {
    /// Pairs at this distance and more.
    Distance {
        /// Smallest distance.
        from: usize,
    },
    /// Pairs of different chunks of the sequence, without those of a row near the beginning of its chunk and a column of the chunk
    /// before.
    Chunks {
        /// Length of a chunk.
        chunk: usize,
        /// Largest distance of such a row from the beginning of its chunk.
        last: usize,
    },
}

impl FarPairs {
    /// The lengths in the order of the fields; those that it does not have are 0.
    #[cfg(feature = "cube")]
    pub(crate) const fn lengths(self) -> [usize; 2] {
        match self {
            Self::Distance { from } => [from, 0],
            Self::Chunks { chunk, last } => [chunk, last],
        }
    }

    /// Returns the first position that is not far from a row; it never descends as rows ascend.
    pub(crate) fn first_near(self, row: usize) -> usize {
        match self {
            Self::Distance { from } => (row + 1).saturating_sub(from),
            Self::Chunks { chunk, last } => {
                let within = row % chunk;
                let begin = row - within;
                if within <= last { begin.saturating_sub(chunk) } else { begin }
            }
        }
    }
}
