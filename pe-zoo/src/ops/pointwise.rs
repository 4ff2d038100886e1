//! Functions of single elements in SIMD; one exponential serves both the function and its derivative.

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

pub(super) fn pointwise<const D: usize>(function: Pointwise, x: Tensor<D>) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as PointwiseBackend>::fused_pointwise(
        x.into_dispatch(),
        function,
    ))
}

/// Function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pointwise {
    /// Exact GELU.
    Gelu,
    /// `ln(1 + exp(x))`.
    Softplus,
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait PointwiseBackend: Backend {
    fn fused_pointwise(x: FloatTensor<Self>, function: Pointwise) -> FloatTensor<Self>;
}

impl PointwiseBackend for Flex {
    fn fused_pointwise(x: FloatTensor<Self>, function: Pointwise) -> FloatTensor<Self> {
        forward(function, &dense(x))
    }
}

#[derive(Debug)]
struct PointwiseOp;

impl Backward<Flex, 1> for PointwiseOp {
    type State = (Pointwise, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (function, x) = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| backward(function, &x, grad));
    }
}

impl<C: CheckpointStrategy> PointwiseBackend for Autodiff<Flex, C> {
    fn fused_pointwise(x: FloatTensor<Self>, function: Pointwise) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let x = dense(x);
        let output = forward(function, &x);
        match PointwiseOp.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((function, x), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

pub(super) fn forward(function: Pointwise, x: &FlexTensor) -> FlexTensor {
    let output = match function {
        Pointwise::Gelu => mapped(x, gelu_value),
        Pointwise::Softplus => mapped(
            x,
            #[inline(always)]
            |x| -lanes::log_sigmoid(-x),
        ),
    };
    contiguous(output, x.layout().shape().clone())
}

#[inline(always)]
fn mapped(x: &FlexTensor, map: impl Fn(f32) -> f32 + Sync) -> Vec<f32> {
    let input = numbers(x);
    let piece = rows_of_piece(1);
    in_new_memory(
        input.len(),
        piece,
        Start::Zeros,
        input.par_chunks(piece),
        #[inline(always)]
        |output, input| {
            for (output, x) in output.iter_mut().zip(input) {
                *output = map(*x);
            }
        },
    )
}

/// Computes `grad` times the derivative at `x`, in place where the memory of `grad` is not shared.
pub(super) fn backward(function: Pointwise, x: &FlexTensor, grad: FlexTensor) -> FlexTensor {
    match function {
        Pointwise::Gelu => scaled(x, grad, gelu_slope),
        Pointwise::Softplus => scaled(
            x,
            grad,
            #[inline(always)]
            |x| lanes::log_sigmoid_and_slope(-x).1,
        ),
    }
}

#[inline(always)]
fn gelu_value(x: f32) -> f32 {
    x * lanes::normal(x).0
}

#[inline(always)]
fn gelu_slope(x: f32) -> f32 {
    let (below, density) = lanes::normal(x);
    below + x * density
}

/// Computes GELU of each element.
#[inline(always)]
pub(super) fn gelu(output: &mut [f32], x: &[f32]) {
    for (output, x) in output.iter_mut().zip(x) {
        *output = gelu_value(*x);
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

#[inline(always)]
fn scaled(x: &FlexTensor, grad: FlexTensor, slope: impl Fn(f32) -> f32 + Sync) -> FlexTensor {
    let mut grad = whole(grad);
    let piece = rows_of_piece(1);
    in_pieces(
        grad.storage_mut::<f32>().par_chunks_mut(piece).zip(numbers(x).par_chunks(piece)),
        #[inline(always)]
        |(grad, input)| {
            for (grad, x) in grad.iter_mut().zip(input) {
                *grad *= slope(*x);
            }
        },
    );
    grad
}
