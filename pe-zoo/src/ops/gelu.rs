//! Exact GELU in SIMD; one exponential serves both the function and its derivative.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;
use rayon::prelude::*;

use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers, whole};
use crate::kernels::cpu::view::{Start, in_new_memory};
use crate::math::lanes;

pub(super) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as GeluBackend>::fused_gelu(x.into_dispatch()))
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait GeluBackend: Backend {
    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl GeluBackend for Flex {
    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        forward(&dense(x))
    }
}

#[derive(Debug)]
struct Gelu;

impl Backward<Flex, 1> for Gelu {
    type State = FlexTensor;

    fn backward(self, ops: Ops<FlexTensor, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let x = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| backward(&x, grad));
    }
}

impl<C: CheckpointStrategy> GeluBackend for Autodiff<Flex, C> {
    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let x = dense(x);
        let output = forward(&x);
        match Gelu.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(x, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
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
