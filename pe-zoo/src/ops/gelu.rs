//! Exact GELU in SIMD; one exponential serves both the function and its derivative.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers, whole};
use crate::kernels::cpu::view::{Start, in_new_memory};
use crate::math::lanes;

/// Exact GELU.
#[derive(Debug, Clone)]
pub(super) struct Gelu;

impl Operation<1> for Gelu {
    /// Input.
    type Kept = FlexTensor;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, FlexTensor) {
        let x = dense(x);
        (forward(&x), x)
    }

    fn backward(&self, x: FlexTensor, grad: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        [Some(backward(&x, grad))]
    }
}

pub(super) fn forward(x: &FlexTensor) -> FlexTensor {
    let input = numbers(x);
    let piece = rows_of_piece(1);
    let output = in_new_memory(input.len(), piece, Start::Zeros, input.par_chunks(piece), gelu_of);
    contiguous(output, x.layout().shape().clone())
}

/// Computes `grad` times the derivative at `x`, in place where the memory of `grad` is not shared.
fn backward(x: &FlexTensor, grad: FlexTensor) -> FlexTensor {
    let mut grad = whole(grad);
    let piece = rows_of_piece(1);
    in_pieces(
        grad.storage_mut::<f32>().par_chunks_mut(piece).zip(numbers(x).par_chunks(piece)),
        #[inline(always)]
        |(grad, input)| {
            for (grad, x) in grad.iter_mut().zip(input) {
                let (below, density) = lanes::normal(*x);
                *grad *= below + x * density;
            }
        },
    );
    grad
}

/// Computes GELU of each element.
#[inline(always)]
pub(super) fn gelu_of(output: &mut [f32], x: &[f32]) {
    for (output, x) in output.iter_mut().zip(x) {
        *output = x * lanes::normal(*x).0;
    }
}

/// Multiplies `grad` by the derivative of GELU at `x`, and replaces `x` by its GELU.
#[inline(always)]
pub(super) fn gelu_backward(grad: &mut [f32], x: &mut [f32]) {
    for (grad, x) in grad.iter_mut().zip(x) {
        let (below, density) = lanes::normal(*x);
        *grad *= below + *x * density;
        *x *= below;
    }
}
