//! Buffers of one thread: a few rows of lanes per column, reused from block to block.

use super::form_scratch::FormScratch;
use super::term_inputs;
use super::view::{Matrix, MatrixMut, Shape};
use crate::math::lanes::Lanes;

/// Key-major buffers, `[columns][lanes]` each.
#[derive(Debug, Default)]
pub(super) struct Scratch<const R: usize> {
    /// Logits, then weights.
    pub(super) logits: Vec<Lanes<R>>,
    /// Logits that are needed once more after they became weights.
    pub(super) kept: Vec<Lanes<R>>,
    /// Gradients of weights, then of logits.
    pub(super) grads: Vec<Lanes<R>>,
    /// Logits of gates that are not the content, then gates.
    pub(super) gates: Vec<Lanes<R>>,
    /// Gradients of the logits of gates that are not the content.
    pub(super) gate_grads: Vec<Lanes<R>>,
    /// Sums of gates, not yet clamped.
    pub(super) counts: Vec<Lanes<R>>,
    /// Derivatives of the contextual bias by the contextual position.
    pub(super) rises: Vec<Lanes<R>>,
    /// Products of the queries with the contextual table, and one more row.
    pub(super) products: Vec<Lanes<R>>,
    pub(super) product_grads: Vec<Lanes<R>>,
    /// Gradients of a perceptron's hidden layer: of all weights, then of all biases.
    pub(super) hidden_grads: Vec<Lanes<R>>,
    /// Products of the queries with the distance table.
    pub(super) distance_products: Vec<Lanes<R>>,
    pub(super) distance_product_grads: Vec<Lanes<R>>,
    /// Inputs of the pair terms.
    pub(super) term_inputs: term_inputs::TermInputs,
    /// Content logits that each pair term received.
    pub(super) contents: Vec<Vec<Lanes<R>>>,
    /// A distance table, or its gradient, written out per distance.
    pub(super) unrolled: Vec<f32>,
    pub(super) forms: FormScratch<R>,
}

/// Makes room for `count` rows; what was there stays.
pub(super) fn grow<const R: usize>(buffer: &mut Vec<Lanes<R>>, count: usize) {
    if buffer.len() < count {
        buffer.resize(count, [0.0; R]);
    }
}

/// The first `count` rows, `[count, lanes]`, to write.
pub(super) fn lanes_mut<const R: usize>(
    buffer: &mut [Lanes<R>],
    count: usize,
    lanes: usize,
) -> MatrixMut<'_> {
    let shape = Shape { rows: count, columns: lanes, row_stride: R, column_stride: 1 };
    MatrixMut::new(buffer[..count].as_flattened_mut(), shape)
}

/// The first `count` rows, `[count, lanes]`, to read.
pub(super) fn lanes<const R: usize>(buffer: &[Lanes<R>], count: usize, lanes: usize) -> Matrix<'_> {
    let shape = Shape { rows: count, columns: lanes, row_stride: R, column_stride: 1 };
    Matrix::new(buffer[..count].as_flattened(), shape)
}
