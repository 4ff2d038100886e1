//! The tensors of one attention.

use std::ops::{Index, IndexMut};

use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Backend, BackendTensor, Dispatch, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind,
    ExtensionType, TensorMetadata,
};

/// Part of an operand that belongs to one head of one sequence, as a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadSlice {
    /// `[B, H, X, Y]` at a sequence and a head: `[X, Y]`.
    Plane,
    /// `[B, H, S]` at a sequence and a head: `[S, 1]`.
    Column,
    /// `[H, N]` at a head: `[1, N]`.
    HeadRow,
    /// `[H]` at a head: `[1, 1]`.
    HeadScalar,
    /// `[X, Y]`, shared by all sequences and heads.
    Whole,
}

/// Declares [`Slot`]: one line with shape and part for each operand.
macro_rules! slots {
    ($($(#[$doc:meta])* $slot:ident: $part:ident,)*) => {
        /// An operand of attention.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Slot {
            $($(#[$doc])* $slot,)*
        }

        impl Slot {
            /// All operands, in the order of [`Operands`].
            pub(crate) const ALL: [Self; SLOTS] = [$(Self::$slot,)*];

            /// The part of the operand that belongs to one head.
            pub(crate) const fn part(self) -> HeadSlice {
                match self {
                    $(Self::$slot => HeadSlice::$part,)*
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
    /// Values that the weights mix, `[B, H, S, E]`.
    Values: Plane,
    /// Slopes of the distance, `[H]`.
    Slopes: HeadScalar,
    /// Biases by distance, `[H, N]`; the last entry serves all longer distances.
    Distance: HeadRow,
    /// Vectors by distance that queries are multiplied with, `[D, N]`; the last entry serves all
    /// longer distances. For the GPU, the products with the queries, `[B, H, T, N]`.
    QueryDistance: Whole,
    /// Running sums, `[B, H, S]`.
    Decay: Column,
    /// More running sums, `[B, H, S]`, kept apart so that small ones keep their digits.
    DecayResidual: Column,
    /// Keys of the gates, `[B, H, S, D]`.
    GateKeys: Plane,
    /// Table of the contextual positions, `[D, N]`, or a perceptron's second layer, `[D, N + 1]`.
    /// For the GPU, the products with the queries.
    Table: Whole,
    /// Weights and biases of a perceptron's hidden layer, `[2, N]`.
    Hidden: Whole,
    /// Slopes of the contextual positions, `[H]`.
    ContextualSlopes: HeadScalar,
    /// Parameters of the pair terms, `[H, P]`; of several terms, one after the other.
    TermParams: HeadRow,
    /// Token state of the pair terms, `[B, H, S, K]`; of several terms, one after the other.
    TermState: Plane,
    /// Biases of single pairs, `[B, H, T, S]`.
    Dense: Plane,
    /// Slopes of the pieces of a curve, then their values at 0, `[H, 2 N]`.
    CurveLines: HeadRow,
    /// Scaled distances at which the curve is read, ascending, `[1, N]`.
    CurveDistances: Whole,
    /// Factors of the scaled distances in each row, `[1, T]`.
    CurveRows: Whole,
    /// Bias per unit of distance that each key sets, `[B, H, S]`.
    KeyPrices: Column,
    /// Bias per unit of distance that each query sets, `[B, H, T]`.
    QueryPrices: Column,
    /// Queries of the prices of steps, `[B, H, T, E]`.
    StepQueries: Plane,
    /// Keys of the prices of steps, `[B, H, S, E]`.
    StepKeys: Plane,
    /// Factors of the sums of prices, `[H]`.
    StepSlopes: HeadScalar,
    /// Directions of Householder-like maps, `[B, H, S, D]`.
    Directions: Plane,
    /// Matrices by which each chunk of `K` maps changes keys, then queries, `[B, H, S, K + D]`.
    ChunkMaps: Plane,
    /// Hidden weights of a perceptron across heads, `[N, taps planes]`.
    MixerInner: Whole,
    /// Hidden biases of the perceptron across heads, `[1, N]`.
    MixerInnerBias: Whole,
    /// Output weights of the perceptron across heads, `[H, taps N]`.
    MixerOuter: Whole,
    /// Output biases of the perceptron across heads, `[1, H]`.
    MixerOuterBias: Whole,
    /// Biases by distance that the perceptron sees, `[H, N]`; the last entry serves all longer
    /// distances.
    BaseTable: HeadRow,
    /// [`CurveLines`](Self::CurveLines) of a curve that the perceptron sees.
    BaseLines: HeadRow,
    /// [`CurveDistances`](Self::CurveDistances) of a curve that the perceptron sees.
    BaseDistances: Whole,
    /// [`CurveRows`](Self::CurveRows) of a curve that the perceptron sees.
    BaseRows: Whole,
}

/// One tensor for each [`Slot`]; a tensor without elements stands for an absent operand.
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

/// Written out because the derive macro takes fields, not arrays.
impl<B: Backend> ExtensionType<B> for Operands<B> {
    type Target = Operands<Dispatch>;

    fn map_to_dispatch<F>(self, map_kind: F, autodiff: DispatchAutodiffContext) -> Self::Target
    where
        F: Fn(BackendTensor<B>) -> DispatchTensorKind,
    {
        Operands(self.0.map(|tensor| DispatchTensor {
            kind: map_kind(BackendTensor::Float(tensor)),
            autodiff,
        }))
    }

    fn map_from_dispatch<F>(target: Self::Target, unwrap_kind: F) -> Self
    where
        F: Fn(DispatchTensor) -> BackendTensor<B>,
    {
        Self(target.0.map(|tensor| unwrap_kind(tensor).float()))
    }

    fn routing_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn routing_float_tensor(target: &Self::Target) -> Option<&DispatchTensor> {
        target.0.first()
    }

    fn autodiff_context(target: &Self::Target) -> DispatchAutodiffContext {
        target.0.iter().fold(DispatchAutodiffContext::Disabled, |context, tensor| {
            context.merge(tensor.autodiff)
        })
    }
}
