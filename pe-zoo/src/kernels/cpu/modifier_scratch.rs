//! Buffers of one thread for modifiers with operands of their own, reused from block to block.

use crate::math::lanes::Lanes;

/// Buffers of one thread for modifiers with operands of their own.
#[derive(Debug, Default)]
pub(super) struct ModifierScratch<const R: usize> {
    pub(super) reflected: ReflectedScratch<R>,
    pub(super) far: FarScratch<R>,
    pub(super) channel_decay: ChannelDecayScratch,
    pub(super) head_mlp: HeadMlpScratch<R>,
    /// Offset in [`HeadMlpScratch::added`] of the terms for the current head; `None` without a
    /// perceptron across heads.
    pub(super) head_mlp_plane: Option<usize>,
    pub(super) step_prices: StepPricesScratch<R>,
    pub(super) unrolled: Vec<f32>,
    pub(super) sums: Vec<f32>,
}

/// Buffers for products of far pairs, or for their gradients, `[columns][lanes]`.
#[derive(Debug, Default)]
pub(super) struct FarScratch<const R: usize> {
    /// Of the columns that are far from at least one row.
    pub(super) far: Vec<Lanes<R>>,
    /// Of the columns that are near to at least one row.
    pub(super) near: Vec<Lanes<R>>,
}

/// Buffers for channels that decay: decayed vectors, their factors and their gradients, `[rows or columns, D]`.
#[derive(Debug, Default)]
pub(super) struct ChannelDecayScratch {
    pub(super) queries: Vec<f32>,
    pub(super) query_factors: Vec<f32>,
    pub(super) query_grads: Vec<f32>,
    pub(super) keys: Vec<f32>,
    pub(super) key_factors: Vec<f32>,
    pub(super) key_grads: Vec<f32>,
}

/// Buffers for step prices, `[columns][lanes]`.
#[derive(Debug, Default)]
pub(super) struct StepPricesScratch<const R: usize> {
    /// Products of the steps' queries and keys, later the prices.
    pub(super) prices: Vec<Lanes<R>>,
    /// Derivatives of the prices by the products, later the gradients of the products.
    pub(super) rises: Vec<Lanes<R>>,
}

/// Buffers for Householder-like maps.
#[derive(Debug, Default)]
pub(super) struct ReflectedScratch<const R: usize> {
    /// Products of the transformed queries with the directions, `[columns][lanes]`.
    pub(super) along: Vec<Lanes<R>>,
    pub(super) along_grads: Vec<Lanes<R>>,
    /// Queries as transformed for each chunk, newest chunk first, `[chunks][R, D]`; only the last
    /// one if gradients are not needed.
    pub(super) queries: Vec<f32>,
    pub(super) query_grads: Vec<f32>,
    pub(super) next_grads: Vec<f32>,
}

/// Buffers for a perceptron across heads.
#[derive(Debug, Default)]
pub(super) struct HeadMlpScratch<const R: usize> {
    /// Content logits of each head, followed by the base biases of each head.
    pub(super) planes: Vec<Lanes<R>>,
    pub(super) plane_grads: Vec<Lanes<R>>,
    /// Terms added to the logits of each head; after the backward pass of a head, the gradients of
    /// its logits.
    pub(super) added: Vec<Lanes<R>>,
    /// Values of the hidden units in one tile.
    pub(super) hidden: Vec<f32>,
    pub(super) hidden_grads: Vec<f32>,
    pub(super) unrolled: Vec<f32>,
    pub(super) sums: Vec<f32>,
}

/// Pieces of a perceptron of ReLU units for one block.
#[derive(Debug, Default)]
pub(super) struct ContextualMlpScratch<const R: usize> {
    /// Units with a bend, ordered by it.
    pub(super) order: Vec<usize>,
    /// Their bends, and infinity as the end of the last piece.
    pub(super) bends: Vec<f32>,
    /// Slopes of the pieces.
    pub(super) slopes: Vec<Lanes<R>>,
    /// Values of the pieces at position 0.
    pub(super) bases: Vec<Lanes<R>>,
}
