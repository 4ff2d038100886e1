//! Buffers of one task, reused from block to block and from task to task.

use std::sync::{Mutex, PoisonError};

use super::modifier_scratch::{ContextualMlpScratch, ModifierScratch};
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
    /// Pieces of a perceptron of ReLU units.
    pub(super) contextual_mlp: ContextualMlpScratch<R>,
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
    pub(super) modifiers: ModifierScratch<R>,
}

/// Buffers that tasks of a pass have used and no task uses at the moment. As many are created as tasks run at once.
#[derive(Debug, Default)]
pub(super) struct SpareScratch<const R: usize>(Mutex<Vec<Scratch<R>>>);

impl<const R: usize> SpareScratch<R> {
    /// Runs a task with buffers of its own.
    pub(super) fn lend<T>(&self, task: impl FnOnce(&mut Scratch<R>) -> T) -> T {
        let spare = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spare_buffers = spare().pop();
        let mut scratch = spare_buffers.unwrap_or_default();
        let result = task(&mut scratch);
        spare().push(scratch);
        result
    }
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
