//! Tensors of one attention, by slot.

use std::ops::{Index, IndexMut};

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};

/// Shape of the part of an operand that belongs to one head of one sequence, as a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadSlice {
    /// `[X, Y]` from an operand `[B, H, X, Y]`.
    Plane,
    /// `[S, 1]` from an operand `[B, H, S]`.
    Column,
    /// `[1, N]` from an operand `[H, N]`.
    HeadRow,
    /// `[1, 1]` from an operand `[H]`.
    HeadScalar,
    /// `[X, Y]`, shared by all sequences and heads.
    Whole,
}

/// Declares the enum [`Slot`] from one line per operand: its documentation, its name and its [`HeadSlice`].
macro_rules! slots {
    ($($(#[$doc:meta])* $slot:ident: $slice:ident,)*) => {
        /// Operand of an attention kernel.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Slot {
            $($(#[$doc])* $slot,)*
        }

        impl Slot {
            /// All operands, in the order of [`Operands`].
            pub(crate) const ALL: [Self; SLOTS] = [$(Self::$slot,)*];

            /// Shape of the operand's part that belongs to one head.
            pub(crate) const fn head_slice(self) -> HeadSlice {
                match self {
                    $(Self::$slot => HeadSlice::$slice,)*
                }
            }
        }

        /// Number of operands.
        pub(crate) const SLOTS: usize = [$(stringify!($slot),)*].len();
    };
}

slots! {
    /// Queries, `[B, H, T, D]`.
    Query: Plane,
    /// Keys, `[B, H, S, D]`.
    Key: Plane,
    /// Values that the weights average, `[B, H, S, E]`.
    Values: Plane,
    /// Slopes of the distance, `[H]`.
    Slope: HeadScalar,
    /// Logits in the denominators of the softmax, `[H]`.
    Sink: HeadScalar,
    /// Biases by distance, `[H, N]`; the last entry holds for all greater distances.
    Distance: HeadRow,
    /// Vectors by distance that queries are multiplied with, `[D, N]`; the last entry holds for all
    /// greater distances. For the GPU, the products with the queries, `[B, H, T, N]`.
    QueryDistance: Whole,
    /// Vectors of the rows that [`RowDistance`](Self::RowDistance) is multiplied with, `[B, H, T, E]`.
    RowVectors: Plane,
    /// Vectors by distance that those of the rows are multiplied with, `[E, N]`; the last entry holds for all greater distances.
    RowDistance: Whole,
    /// Running sums whose differences are added to the logits, `[B, H, S]`.
    Decay: Column,
    /// Rounding errors of the running sums, `[B, H, S]`, kept separately to preserve their digits.
    DecayResidual: Column,
    /// Keys of the gates, `[B, H, S, D]`.
    ContextualGateKeys: Plane,
    /// Table of the contextual positions, `[D, N]`, or a perceptron's second layer, `[D, N + 1]`.
    /// For the GPU, the products with the queries; with [`Bends`](Self::Bends), those of the slopes of
    /// the pieces and of their values at 0, `[B, H, T, 2 N]`.
    ContextualVectors: Whole,
    /// Weights and biases of a perceptron's hidden layer, `[2, N]`.
    ContextualHidden: Whole,
    /// Slopes of the contextual positions, `[H]`.
    ContextualSlopes: HeadScalar,
    /// Parameters of the pair terms, `[H, P]`; concatenated if there are several terms.
    TermParams: HeadRow,
    /// Token state of the pair terms, `[B, H, S, K]`; concatenated if there are several terms.
    TermState: Plane,
    /// Dense biases of all pairs, `[B, H, T, S]`.
    Dense: Plane,
    /// Boundaries between the pieces of a piecewise linear function, of [`PositionMlpLines`](Self::PositionMlpLines) or
    /// [`ContextualVectors`](Self::ContextualVectors), ascending, `[1, N - 1]`, for the GPU; the CPU has them in its
    /// specification.
    Bends: Whole,
    /// Slopes of the pieces of a piecewise linear bias, then their values at 0, `[H, 2 N]`.
    PositionMlpLines: HeadRow,
    /// Numerators of the input of a piecewise linear bias by distance, ascending, `[1, N]`.
    PositionMlpDistances: Whole,
    /// Reciprocal denominators of the input of a piecewise linear bias by row, `[1, T]`.
    PositionMlpRows: Whole,
    /// Bias per unit of distance that each key sets, `[B, H, S]`.
    TokenPriceKeys: Column,
    /// Bias per unit of distance that each query sets, `[B, H, T]`.
    TokenPriceQueries: Column,
    /// Queries from which step prices are computed, `[B, H, T, E]`.
    StepPricesQueries: Plane,
    /// Keys from which step prices are computed, `[B, H, S, E]`.
    StepPricesKeys: Plane,
    /// Slopes by which the sums of step prices are multiplied, `[H]`.
    StepPricesSlopes: HeadScalar,
    /// Directions of Householder-like maps, `[B, H, S, D]`.
    ReflectedDirections: Plane,
    /// Matrices by which each chunk of `K` maps changes keys, then queries, `[B, H, S, K + D]`. For the GPU, those of queries,
    /// `[B, H, S, D]`; queries are those before the chunk of their row, and keys those behind their chunk.
    ReflectedChunks: Plane,
    /// Products of the rows with the keys of their chunk, `[B, H, T, K]`, for the GPU.
    ReflectedProducts: Plane,
    /// Queries of pairs at long distances, `[B, H, T, D]`.
    FarQuery: Plane,
    /// Keys of pairs at long distances, `[B, H, S, D]`.
    FarKey: Plane,
    /// Running sums of the decays of channels, `[B, H, S, D]`.
    ChannelDecay: Plane,
    /// Hidden weights of a perceptron across heads, `[N, taps planes]`.
    HeadMlpInner: Whole,
    /// Hidden biases of the perceptron across heads, `[1, N]`.
    HeadMlpInnerBias: Whole,
    /// Output weights of the perceptron across heads, `[H, taps N]`.
    HeadMlpOuter: Whole,
    /// Output biases of the perceptron across heads, `[1, H]`.
    HeadMlpOuterBias: Whole,
    /// Base bias by distance of a perceptron across heads, `[H, N]`; the last entry holds for all
    /// greater distances.
    HeadMlpBaseTable: HeadRow,
    /// [`PositionMlpLines`](Self::PositionMlpLines) of a perceptron's base bias.
    HeadMlpBaseLines: HeadRow,
    /// [`PositionMlpDistances`](Self::PositionMlpDistances) of a perceptron's base bias.
    HeadMlpBaseDistances: Whole,
    /// [`PositionMlpRows`](Self::PositionMlpRows) of a perceptron's base bias.
    HeadMlpBaseRows: Whole,
}

/// Slots that hold the operands of a piecewise linear bias.
#[derive(Debug, Clone, Copy)]
#[cfg(feature = "flex")]
pub(crate) struct PiecewiseSlots {
    /// Slopes of the pieces, then their values at 0.
    pub(crate) lines: Slot,
    /// Numerators of the input by distance.
    pub(crate) distances: Slot,
    /// Reciprocal denominators of the input by row.
    pub(crate) rows: Slot,
}

#[cfg(feature = "flex")]
impl PiecewiseSlots {
    /// Slots of a bias that is added to the logits.
    pub(crate) const LOGIT_BIAS: Self = Self {
        lines: Slot::PositionMlpLines,
        distances: Slot::PositionMlpDistances,
        rows: Slot::PositionMlpRows,
    };
    /// Slots of the base bias of a perceptron across heads.
    pub(crate) const HEAD_MLP_BASE: Self = Self {
        lines: Slot::HeadMlpBaseLines,
        distances: Slot::HeadMlpBaseDistances,
        rows: Slot::HeadMlpBaseRows,
    };
}

/// Tensors of all operands, one for each [`Slot`]; a tensor without elements represents an absent
/// operand.
#[derive(Debug, Clone)]
pub(crate) struct Operands<B: Backend>(pub(crate) [FloatTensor<B>; SLOTS]);

impl<B: Backend> Index<Slot> for Operands<B> {
    type Output = FloatTensor<B>;

    fn index(&self, slot: Slot) -> &Self::Output {
        &self.0[slot as usize]
    }
}

impl<B: Backend> IndexMut<Slot> for Operands<B> {
    fn index_mut(&mut self, slot: Slot) -> &mut Self::Output {
        &mut self.0[slot as usize]
    }
}

/// Whether a tensor has elements.
pub(crate) fn present<T: TensorMetadata>(tensor: &T) -> bool {
    tensor.shape().num_elements() > 0
}

/// Sizes of one attention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) head_dim: usize,
    pub(crate) value_dim: usize,
}

impl<B: Backend> Operands<B> {
    pub(crate) fn sizes(&self) -> Sizes {
        let (q, values) = (self[Slot::Query].shape(), self[Slot::Values].shape());
        Sizes {
            batch: q[0],
            heads: q[1],
            rows: q[2],
            columns: values[2],
            head_dim: q[3],
            value_dim: values[3],
        }
    }
}
