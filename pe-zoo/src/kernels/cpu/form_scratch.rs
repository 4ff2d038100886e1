//! Buffers of one thread for the forms, reused from block to block.

use crate::math::lanes::Lanes;

/// Buffers of one thread.
#[derive(Debug, Default)]
pub(super) struct FormScratch<const R: usize> {
    pub(super) maps: MapScratch<R>,
    pub(super) mixer: MixerScratch<R>,
    /// Where the plane starts that the mixer adds to the head at hand.
    pub(super) added_at: Option<usize>,
    pub(super) steps: StepScratch<R>,
    pub(super) unrolled: Vec<f32>,
    pub(super) sums: Vec<f32>,
}

/// Buffers for prices of steps, `[columns][lanes]`.
#[derive(Debug, Default)]
pub(super) struct StepScratch<const R: usize> {
    /// Products of the steps' queries and keys, then prices.
    pub(super) prices: Vec<Lanes<R>>,
    /// Slopes of the prices as functions of the products, then the products' gradients.
    pub(super) rises: Vec<Lanes<R>>,
}

/// Buffers for Householder-like maps.
#[derive(Debug, Default)]
pub(super) struct MapScratch<const R: usize> {
    /// Products of the carried queries with directions, `[columns][lanes]`.
    pub(super) along: Vec<Lanes<R>>,
    pub(super) along_grads: Vec<Lanes<R>>,
    /// Queries as each chunk sees them, newest chunk first, `[chunks][R, D]`; or the last one alone.
    pub(super) queries: Vec<f32>,
    pub(super) query_grads: Vec<f32>,
    pub(super) next_grads: Vec<f32>,
}

/// Buffers for a perceptron across heads.
#[derive(Debug, Default)]
pub(super) struct MixerScratch<const R: usize> {
    /// Content logits of each head, then biases of each head.
    pub(super) planes: Vec<Lanes<R>>,
    pub(super) plane_grads: Vec<Lanes<R>>,
    /// Terms that each head adds to its logits; after the backward pass of a head, the gradients of its logits.
    pub(super) added: Vec<Lanes<R>>,
    /// Hidden units of a tile.
    pub(super) hidden: Vec<f32>,
    pub(super) hidden_grads: Vec<f32>,
    pub(super) unrolled: Vec<f32>,
    pub(super) sums: Vec<f32>,
}
