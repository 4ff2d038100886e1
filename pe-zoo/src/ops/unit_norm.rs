//! Rows of length 1, in one pass that keeps the result alone.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::row_product::dot;
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, last_axis, numbers, whole};
use crate::kernels::cpu::view::{Start, in_new_memory};

/// Division of each row by its length.
#[derive(Debug, Clone)]
pub(super) struct UnitNorm {
    /// Constant added to the squares of the lengths.
    pub(super) epsilon: f32,
}

impl Operation<1> for UnitNorm {
    /// Results, and the reciprocal of the length of each row.
    type Kept = (FlexTensor, Vec<f32>);

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, Self::Kept) {
        let (output, inverses) = forward(&dense(x), self.epsilon);
        (output.clone(), (output, inverses))
    }

    fn backward(
        &self,
        (unit, inverses): Self::Kept,
        grad: FlexTensor,
        _needed: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        [Some(backward(&unit, &inverses, grad))]
    }
}

fn forward(x: &FlexTensor, epsilon: f32) -> (FlexTensor, Vec<f32>) {
    let (input, width) = (numbers(x), last_axis(x));
    let rows = rows_of_piece(width);
    let mut inverses = vec![0.0; input.len() / width];
    let output = in_new_memory(
        input.len(),
        rows * width,
        Start::Zeros,
        input.par_chunks(rows * width).zip(inverses.par_chunks_mut(rows)),
        #[inline(always)]
        |output, (input, inverses)| {
            let of_rows = output.chunks_exact_mut(width).zip(input.chunks_exact(width));
            for ((output, x), inverse) in of_rows.zip(inverses) {
                *inverse = 1.0 / (dot(x, x) + epsilon).sqrt();
                for (output, x) in output.iter_mut().zip(x) {
                    *output = x * *inverse;
                }
            }
        },
    );
    (contiguous(output, x.layout().shape().clone()), inverses)
}

/// Computes `(grad - unit (grad . unit)) / length`, in place where the memory of `grad` is not shared.
fn backward(unit: &FlexTensor, inverses: &[f32], grad: FlexTensor) -> FlexTensor {
    let (width, mut grad) = (last_axis(unit), whole(grad));
    let rows = rows_of_piece(width);
    let rows_of_unit = numbers(unit).par_chunks(rows * width).zip(inverses.par_chunks(rows));
    in_pieces(
        grad.storage_mut::<f32>().par_chunks_mut(rows * width).zip(rows_of_unit),
        #[inline(always)]
        |(grad, (unit, inverses))| {
            let of_rows = grad.chunks_exact_mut(width).zip(unit.chunks_exact(width));
            for ((grad, unit), inverse) in of_rows.zip(inverses) {
                let along = dot(grad, unit);
                for (grad, unit) in grad.iter_mut().zip(unit) {
                    *grad = (*grad - unit * along) * inverse;
                }
            }
        },
    );
    grad
}
