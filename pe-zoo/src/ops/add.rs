//! Sum of two tensors of one shape, such as a residual connection, on all threads.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers, whole};
use crate::kernels::cpu::view::{Start, in_new_memory};

/// Sum of two tensors of one shape.
#[derive(Debug, Clone)]
pub(super) struct AddOp;

impl Operation<2> for AddOp {
    type Kept = ();

    fn forward(&self, inputs: [FlexTensor; 2]) -> (FlexTensor, ()) {
        let [x, y] = inputs.map(dense);
        (forward(x, y), ())
    }

    fn backward(
        &self,
        (): (),
        grad: FlexTensor,
        [of_x, of_y]: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        [of_x.then(|| grad.clone()), of_y.then_some(grad)]
    }
}

/// Computes `x + y`, in place where the memory of one of them is not shared.
fn forward(x: FlexTensor, y: FlexTensor) -> FlexTensor {
    let piece = rows_of_piece(1);
    let (into, other) = if y.is_unique() { (y, x) } else { (x, y) };
    if into.is_unique() {
        let mut sum = whole(into);
        in_pieces(
            sum.storage_mut::<f32>().par_chunks_mut(piece).zip(numbers(&other).par_chunks(piece)),
            #[inline(always)]
            |(sum, other)| {
                for (sum, other) in sum.iter_mut().zip(other) {
                    *sum += other;
                }
            },
        );
        return sum;
    }
    let (first, second) = (numbers(&into), numbers(&other));
    let sum = in_new_memory(
        first.len(),
        piece,
        Start::Zeros,
        first.par_chunks(piece).zip(second.par_chunks(piece)),
        #[inline(always)]
        |sum, (first, second)| {
            for ((sum, first), second) in sum.iter_mut().zip(first).zip(second) {
                *sum = first + second;
            }
        },
    );
    contiguous(sum, into.layout().shape().clone())
}
