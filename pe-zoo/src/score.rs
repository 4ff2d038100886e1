//! Modifiers of attention logits: descriptions that an engine evaluates.
//!
//! A description other than [`ScoreMod::Dense`] and [`ScoreMod::Products`] needs no tensor of size
//! `T x S`. `i` is the row's position, `j` the column's, `B` batch, `H` heads, `T` rows, `S` columns,
//! `D` head dimension; the content logit is `q_i . k_j / sqrt(D)`.
//!
//! [`ScoreMod`] lists the modifiers with kernels of their own. Any other can be written as a
//! [`PairTerm`], a function of one pair of tokens that runs inside the same kernels on the CPU, and on NVIDIA GPUs in bf16.
//! Elsewhere it is computed with tensors; on GPUs, for 256 rows at a time.

#[cfg(feature = "flex")]
mod block;
mod dual;
#[cfg(feature = "cube")]
mod expression;
mod for_cores;
mod graph;
mod modifiers;
mod number;
mod pair;
#[cfg(any(feature = "flex", feature = "cube"))]
mod tensors;
mod term;

#[cfg(feature = "flex")]
pub(crate) use block::{TermBlock, TermGrads};
pub use dual::{Derivative, Dual};
#[cfg(feature = "cube")]
pub(crate) use expression::{Expression, PairInput, StepOperation, TracedTerm};
#[cfg(feature = "cube")]
pub(crate) use for_cores::NeedsOfCores;
pub use modifiers::{
    FarPairs, FarProducts, HeadMlp, PositionMlp, Reflected, StepPrices, TokenPrice,
};
pub use number::{Number, Real};
pub use pair::{Pair, PairTerm};
#[cfg(any(feature = "flex", feature = "cube"))]
pub(crate) use tensors::{TensorMap, TokenAxes};
pub use term::Term;
#[cfg(any(feature = "flex", feature = "cube"))]
pub(crate) use term::TermKernel;
#[cfg(feature = "flex")]
pub(crate) use term::TermSizes;

use burn::tensor::Tensor;

/// Bias at distances beyond the end of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The bias is 0.
    Zero,
    /// The bias of the last entry of the table.
    Last,
}

/// Modification of the attention logits, as a description that an engine evaluates.
#[derive(Debug, Clone)]
pub enum ScoreMod {
    /// Leaves the logits unchanged.
    None,
    /// Adds `-slope[h] * (i - j)`, with slopes `[H]`.
    Slope(Tensor<1>),
    /// Adds `table[h, i - j]`.
    Distance {
        /// Biases by head and distance, `[H, N]`.
        table: Tensor<2>,
        /// Bias at distances of `N` and more.
        beyond: Beyond,
    },
    /// Adds `q_i . table[:, i - j] / sqrt(D)`, with queries as returned by `transform_qk`.
    QueryDistance {
        /// Vectors by distance, `[D, N]`, shared by the heads.
        table: Tensor<2>,
        /// Bias at distances of `N` and more.
        beyond: Beyond,
    },
    /// Adds `vectors_i . table[:, i - j]`.
    RowDistance {
        /// Vectors of the rows, `[B, H, T, E]`.
        vectors: Tensor<4>,
        /// Vectors by distance, `[E, N]`, shared by the heads.
        table: Tensor<2>,
        /// Bias at distances of `N` and more.
        beyond: Beyond,
    },
    /// Adds `cumulative[i] - cumulative[j]`.
    Decay {
        /// Running sum up to and including each column's token, `[B, H, S]`.
        cumulative: Tensor<3>,
    },
    /// Adds a function of the contextual position `p_ij = sum of gates over j..=i`.
    Contextual(Contextual),
    /// Replaces the softmax by stick-breaking: each column, nearest first, takes a share of the
    /// remainder.
    StickBreaking(StickBreakingRule),
    /// Replaces the products `q_i . k_j` in the logits, before any division; `[B, H, T, S]`, finite
    /// where the row may not see the column. Gates still use queries and keys. A sum has at most
    /// one such part.
    Products(Tensor<4>),
    /// Replaces the products by those of queries with keys that every token in between has
    /// reflected; in kernels on the CPU.
    Reflected(Reflected),
    /// Replaces the products of pairs at long distances by those of other queries and keys; in kernels on the CPU.
    FarProducts(FarProducts),
    /// Replaces the products by sums over channels that each decay, `q_ic k_jc exp(cumulative[i, c] - cumulative[j, c])`; in
    /// kernels on the CPU, and on NVIDIA GPUs in bf16.
    ChannelDecay {
        /// Running sums of numbers of at most 0, up to and including each column's token, `[B, H, S, D]`.
        cumulative: Tensor<4>,
    },
    /// Adds a perceptron of the distance divided by the row's position, both on a logarithmic
    /// scale.
    PositionMlp(PositionMlp),
    /// Adds a perceptron whose inputs at each pair are the content logits and biases of all heads.
    HeadMlp(HeadMlp),
    /// Adds the distance multiplied by slopes (prices) that depend on key and query.
    TokenPrice(TokenPrice),
    /// Adds the sum of content-dependent slopes (prices) of all tokens between key and query.
    StepPrices(StepPrices),
    /// Adds `exp(sink[h])` to the denominator of the softmax, with sinks `[H]`. A sum has at most one such part.
    Sinks(Tensor<1>),
    /// Puts the whole weight on the largest logit, the first among equals. Gradients are those of
    /// the replaced weights (straight through).
    Hard,
    /// Replaces the content logit by a function of the pair. In a sum, terms apply one after the
    /// other, each to the result of the previous one; other parts are added to the result of the
    /// last. Gates use the content logit before any term.
    Term(Term),
    /// Adds this tensor, `[1 or B, 1 or H, T, S]`.
    Dense(Tensor<4>),
    /// Applies all modifications of the list.
    Sum(Vec<ScoreMod>),
}

impl ScoreMod {
    /// Whether the whole weight is put on the largest logit.
    pub fn is_hard(&self) -> bool {
        self.any(|part| matches!(part, Self::Hard))
    }

    /// Appends the parts of the modifier that are not sums.
    pub(crate) fn flatten_into<'a>(&'a self, parts: &mut Vec<&'a Self>) {
        match self {
            Self::Sum(summands) => summands.iter().for_each(|part| part.flatten_into(parts)),
            part => parts.push(part),
        }
    }

    /// Whether the modifier, or a part of it, has a property.
    pub(crate) fn any(&self, has: impl Fn(&Self) -> bool + Copy) -> bool {
        match self {
            Self::Sum(parts) => parts.iter().any(|part| part.any(has)),
            part => has(part),
        }
    }
}

/// Rule of stick-breaking: with `z_ij` the logit, column `j` of row `i` takes the share
/// `sigma(z_ij)` of the remainder that the columns between it and the row leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StickBreakingRule {
    /// Whether the row's own token takes part.
    pub current: Current,
    /// Use of the part of the stick that no column takes.
    pub remainder: Remainder,
}

/// Whether a row's own token takes part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Current {
    /// Columns are strictly earlier; the first row sees none.
    #[default]
    Excluded,
    /// The row's own token is the first to take a share.
    Included,
}

/// Use of the part of the stick that no column takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remainder {
    /// The remainder is dropped, so that weights sum to less than 1.
    #[default]
    Dropped,
    /// The row's own token gets the remainder, so that weights sum to 1.
    OwnToken,
}

/// Contextual positions, which are sums of gates along the row, as in CoPE.
#[derive(Debug, Clone)]
pub struct Contextual {
    /// Source of the gate logits.
    pub gates: GateSource,
    /// Contextual positions are clamped to `0..=max_position`.
    pub max_position: f64,
    /// Bias as a function of the contextual position.
    pub function: ContextualFunction,
    /// Placement of the division by `sqrt(D)`.
    pub convention: LogitScaling,
}

/// Source of the gate logits of contextual positions.
#[derive(Debug, Clone)]
pub enum GateSource {
    /// Content logits `q_i . k_j`, divided as [`LogitScaling`] specifies.
    QueryKey,
    /// Products of queries with values.
    QueryValue,
    /// Products of queries with separate keys, `[B, H, S, D]`.
    Keys(Tensor<4>),
}

/// Bias as a function of the contextual position `p`.
#[derive(Debug, Clone)]
pub enum ContextualFunction {
    /// `q_i . e[p]`, interpolated linearly between integer positions; `e` is `[D, N]` with `N >
    /// max_position`.
    Table(Tensor<2>),
    /// Linear bias `slope[h] * p`; `[H]`.
    Slope(Tensor<1>),
    /// `q_i . e(p)` with `e` a perceptron of one hidden layer.
    Mlp(Perceptron),
}

/// Perceptron from a position to a vector of `D` channels, `e(p) = w2 act(w1 p + b1) + b2`.
///
/// An engine needs no vector per pair of tokens: `q_i . e(p) = (w2^T q_i) . act(w1 p + b1) + q_i .
/// b2`.
#[derive(Debug, Clone)]
pub struct Perceptron {
    /// Hidden weights, `[N]` for `N` hidden units.
    pub w1: Tensor<1>,
    /// Biases of the hidden units, `[N]`.
    pub b1: Tensor<1>,
    /// Output weights, `[D, N]`.
    pub w2: Tensor<2>,
    /// Biases of the outputs, `[D]`.
    pub b2: Tensor<1>,
    /// Activation of the hidden units.
    pub activation: HiddenActivation,
}

/// Activation of a perceptron's hidden layer.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum HiddenActivation {
    /// Rectified linear unit, `max(x, 0)`.
    #[default]
    Relu,
    /// Gaussian error linear unit `x Phi(x)`, without approximation.
    Gelu,
}

/// Published placements of the division by `sqrt(D)` in CoPE's logits; `z` is the bias at the
/// contextual position.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum LogitScaling {
    /// `q.k / sqrt(D) + z`, gates from `q.k / sqrt(D)`: the paper's Listing 1.
    #[default]
    Listing,
    /// `(q.k + z) / sqrt(D)`, gates from `q.k / sqrt(D)`: the authors' code by default.
    Code,
    /// `q.k + z`, gates from `q.k`: the paper's equations 3 to 5, without any division.
    Equation,
}
