//! Buffers of one thread, reused from block to block.

use super::form_scratch::FormScratch;
use super::term_inputs;
use super::view::{Matrix, MatrixMut, Shape};
use crate::math::lanes::Lanes;

/// Key-major buffers, `[columns][lanes]` each.
#[derive(Debug, Default)]
pub(super) struct Scratch<const R: usize> {
    /// Logits, later weights.
    pub(super) logits: Vec<Lanes<R>>,
    /// Copies of logits that are needed after they became weights.
    pub(super) kept: Vec<Lanes<R>>,
    /// Gradients of weights, later of logits.
    pub(super) grads: Vec<Lanes<R>>,
    /// Logits of gates that do not come from the content, later the gates.
    pub(super) gates: Vec<Lanes<R>>,
    /// Gradients of the logits of gates that do not come from the content.
    pub(super) gate_grads: Vec<Lanes<R>>,
    /// Sums of gates before clamping.
    pub(super) counts: Vec<Lanes<R>>,
    /// Derivatives of the contextual bias by the contextual position.
    pub(super) rises: Vec<Lanes<R>>,
    /// Products of the queries with the contextual table, with one extra row.
    pub(super) products: Vec<Lanes<R>>,
    pub(super) product_grads: Vec<Lanes<R>>,
    /// Gradients of a perceptron's hidden layer: all weights, followed by all biases.
    pub(super) hidden_grads: Vec<Lanes<R>>,
    /// Products of the queries with the distance table.
    pub(super) distance_products: Vec<Lanes<R>>,
    pub(super) distance_product_grads: Vec<Lanes<R>>,
    /// Inputs of the pair terms of the current block.
    pub(super) term_inputs: term_inputs::TermInputs,
    /// Input of each pair term: the content logits before it.
    pub(super) contents: Vec<Vec<Lanes<R>>>,
    /// Distance table, or its gradient, copied to one entry per distance.
    pub(super) unrolled: Vec<f32>,
    pub(super) forms: FormScratch<R>,
}

/// Grows the buffer to `count` rows; existing contents are kept.
pub(super) fn grow<const R: usize>(buffer: &mut Vec<Lanes<R>>, count: usize) {
    if buffer.len() < count {
        buffer.resize(count, [0.0; R]);
    }
}

/// Borrows the first `count` rows mutably, as `[count, lanes]`.
pub(super) fn lanes_mut<const R: usize>(
    buffer: &mut [Lanes<R>],
    count: usize,
    lanes: usize,
) -> MatrixMut<'_> {
    let shape = Shape { rows: count, columns: lanes, row_stride: R, column_stride: 1 };
    MatrixMut::new(buffer[..count].as_flattened_mut(), shape)
}

/// Borrows the first `count` rows, as `[count, lanes]`.
pub(super) fn lanes<const R: usize>(buffer: &[Lanes<R>], count: usize, lanes: usize) -> Matrix<'_> {
    let shape = Shape { rows: count, columns: lanes, row_stride: R, column_stride: 1 };
    Matrix::new(buffer[..count].as_flattened(), shape)
}
