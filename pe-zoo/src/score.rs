//! Modifiers of attention logits: descriptions that an engine carries out.
//!
//! A description needs no tensor of size `T x S`. `i` is the row's position, `j` the column's, `B`
//! batch, `H` heads, `T` rows, `S` columns, `D` head dimension; the content logit is
//! `q_i . k_j / sqrt(D)`.
//!
//! [`ScoreMod`] lists the forms with kernels of their own. A form that it lacks is a
//! [`PairTerm`]: the value of one pair of tokens as a function, which runs inside the same kernels.

#[cfg(feature = "flex")]
mod block;
mod dual;
mod graph;
mod head_mlp;
mod number;
mod pair;
mod position_mlp;
mod reflections;
mod step_prices;
mod term;
mod token_price;

#[cfg(feature = "flex")]
pub(crate) use block::{TermBlock, TermGrads};
pub use dual::{Derivative, Dual};
pub use head_mlp::HeadMlp;
pub use number::{Number, Real};
pub use pair::{Pair, PairTerm};
pub use position_mlp::PositionMlp;
pub use reflections::Reflections;
pub use step_prices::StepPrices;
pub use term::Term;
#[cfg(feature = "flex")]
pub(crate) use term::TermKernel;
pub use token_price::TokenPrice;

use burn::tensor::Tensor;

/// The bias at distances past the end of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The bias is 0.
    Zero,
    /// The bias of the last entry of the table.
    Last,
}

/// A modification of the attention logits.
#[derive(Debug, Clone)]
pub enum ScoreMod {
    /// Leaves the logits unchanged.
    None,
    /// Adds `-slope[h] * (i - j)`; `[H]`.
    Slope(Tensor<1>),
    /// Adds `table[h, i - j]`.
    Distance {
        /// Biases by head and distance, `[H, N]`.
        table: Tensor<2>,
        /// The bias at distances of `N` and more.
        beyond: Beyond,
    },
    /// Adds `q_i . table[:, i - j] / sqrt(D)`, the query being the one after `transform_qk`.
    QueryDistance {
        /// Vectors by distance, `[D, N]`, shared by the heads.
        table: Tensor<2>,
        /// The bias at distances of `N` and more.
        beyond: Beyond,
    },
    /// Adds `cumulative[i] - cumulative[j]`.
    Decay {
        /// Running sum up to and with each column's token, `[B, H, S]`.
        cumulative: Tensor<3>,
    },
    /// Adds a function of the contextual position `p_ij = sum of gates over j..=i`.
    Contextual(Contextual),
    /// Replaces the softmax: each column, nearest first, takes a share of what is left.
    StickBreaking(StickBreakingRule),
    /// Replaces the products `q_i . k_j` in the logits, before any division; `[B, H, T, S]`, finite
    /// where the row may not see the column. Gates still read queries and keys. A sum has at most
    /// one.
    Products(Tensor<4>),
    /// As [`Products`](Self::Products), but of queries with keys that every token in between has
    /// reflected; no `T x S` tensor on the CPU.
    Reflected(Reflections),
    /// Adds a perceptron of each pair's distance as a fraction of the row's position.
    PositionMlp(PositionMlp),
    /// Adds a perceptron of all heads' content logits and biases at each pair.
    HeadMlp(HeadMlp),
    /// Adds the distance at a price per token.
    TokenPrice(TokenPrice),
    /// Adds a price for every step between key and query.
    StepPrices(StepPrices),
    /// Puts the whole weight on the largest logit, the first of equals. Gradients are those of the
    /// weights that it replaces (straight through).
    Hard,
    /// Replaces the content logit by a function of the pair. In a sum, terms apply one after the other,
    /// each to the result of the one before; everything else is added to the result of the last. Gates
    /// read the content logit before any term.
    Term(Term),
    /// Adds this tensor, `[1 or B, 1 or H, T, S]`.
    Dense(Tensor<4>),
    /// Applies all modifications of the list.
    Sum(Vec<ScoreMod>),
}

impl ScoreMod {
    /// Whether the whole weight goes to the largest logit.
    pub fn is_hard(&self) -> bool {
        match self {
            Self::Hard => true,
            Self::Sum(parts) => parts.iter().any(Self::is_hard),
            _ => false,
        }
    }

    /// Whether something else stands in for the products of queries and keys.
    pub(crate) fn replaces_products(&self) -> bool {
        match self {
            Self::Products(_) | Self::Reflected(_) => true,
            Self::Sum(parts) => parts.iter().any(Self::replaces_products),
            _ => false,
        }
    }
}

/// Settings of stick-breaking: with `z_ij` the logit, column `j` of row `i` takes the share
/// `sigma(z_ij)` of what the columns between it and the row have left.
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
    /// The own token is the first to take a share.
    Included,
}

/// Use of the part of the stick that no column takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remainder {
    /// The remainder is dropped: weights sum to less than 1.
    #[default]
    Dropped,
    /// The own token gets the remainder: weights sum to 1.
    OwnToken,
}

/// Positions that gates count along the row, as in CoPE.
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
    /// The content logits `q_i . k_j`, divided as [`LogitScaling`] says.
    QueryKey,
    /// Products of queries with values.
    QueryValue,
    /// Products of queries with separate keys, `[B, H, S, D]`.
    Keys(Tensor<4>),
}

/// Bias as a function of the contextual position `p`.
#[derive(Debug, Clone)]
pub enum ContextualFunction {
    /// `q_i . e[p]`, linear between integer positions; `e` is `[D, N]` with `N > max_position`.
    Table(Tensor<2>),
    /// Linear bias `slope[h] * p`; `[H]`.
    Slope(Tensor<1>),
    /// `q_i . e(p)` with `e` a perceptron of one hidden layer.
    Mlp(Perceptron),
}

/// `e(p) = w2 act(w1 p + b1) + b2`, from a position to a vector of `D` channels.
///
/// An engine needs no vector per pair of tokens: `q_i . e(p) = (w2^T q_i) . act(w1 p + b1) + q_i . b2`.
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

/// Published placements of the division in CoPE's logits; `z` is the bias at the contextual
/// position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogitScaling {
    /// `q.k / sqrt(D) + z`, gates from `q.k / sqrt(D)`: the paper's Listing 1.
    Listing,
    /// `(q.k + z) / sqrt(D)`, gates from `q.k / sqrt(D)`: the authors' code by default.
    Code,
    /// `q.k + z`, gates from `q.k`: the paper's equations 3 to 5, without any division.
    Equation,
}
