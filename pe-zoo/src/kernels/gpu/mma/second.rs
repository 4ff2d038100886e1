//! Operands of the second products, which follow queries and keys in packed rows.

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Backend, Cube};
use burn::tensor::Slice;
use burn_cubecl::tensor::CubeTensor;

use crate::kernels::gpu::arguments::last_axis;
use crate::kernels::operands::{Operands, Slot, present};

/// Slots of the factors of the second products.
#[derive(Debug, Clone, Copy)]
pub(super) struct SecondSlots {
    pub(super) queries: Slot,
    pub(super) keys: Slot,
}

impl SecondSlots {
    /// Returns the slots of the operands that are there.
    pub(super) fn of<B: Backend>(operands: &Operands<B>) -> Option<Self> {
        [
            Self { queries: Slot::StepPricesQueries, keys: Slot::StepPricesKeys },
            Self { queries: Slot::FarQuery, keys: Slot::FarKey },
            Self { queries: Slot::Query, keys: Slot::ContextualGateKeys },
        ]
        .into_iter()
        .find(|slots| present(&operands[slots.keys]))
    }
}

/// Channels of the second products; 0 if there are none.
pub(super) fn second_dim<B: Backend>(operands: &Operands<B>) -> usize {
    SecondSlots::of(operands).map_or(0, |slots| last_axis(&operands[slots.keys]))
}

/// Joins rows with those of a second product, if there is one.
pub(super) fn joined(first: &CubeTensor, second: Option<&CubeTensor>) -> CubeTensor {
    match second {
        Some(second) => Cube::float_cat(vec![first.clone(), second.clone()], 3),
        None => first.clone(),
    }
}

/// Gradients of rows that were joined.
pub(super) struct SplitGradient {
    pub(super) first: CubeTensor,
    pub(super) second: CubeTensor,
}

impl SplitGradient {
    /// Splits the gradient of joined rows after `dim` channels.
    pub(super) fn new(gradient: &CubeTensor, dim: usize) -> Self {
        let channels = |from: usize, to: usize| {
            let axes = [Slice::from(..), Slice::from(..), Slice::from(..), Slice::from(from..to)];
            Cube::float_slice(gradient.clone(), &axes)
        };
        Self { first: channels(0, dim), second: channels(dim, last_axis(gradient)) }
    }
}
