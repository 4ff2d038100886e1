//! Rows of length 1, in one pass that keeps the result alone.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;
use rayon::prelude::*;

use super::row_product::dot;
use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers, whole};
use crate::kernels::cpu::view::{Start, in_new_memory};

pub(super) fn unit_norm<const D: usize>(x: Tensor<D>, epsilon: f64) -> Tensor<D> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(<Dispatch as UnitNormBackend>::fused_unit_norm(x, epsilon as f32))
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait UnitNormBackend: Backend {
    fn fused_unit_norm(x: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self>;
}

impl UnitNormBackend for Flex {
    fn fused_unit_norm(x: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        forward(&dense(x), epsilon).0
    }
}

#[derive(Debug)]
struct UnitNorm;

impl Backward<Flex, 1> for UnitNorm {
    /// Results, and the reciprocal of the length of each row.
    type State = (FlexTensor, Vec<f32>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (unit, inverses) = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| backward(&unit, &inverses, grad));
    }
}

impl<C: CheckpointStrategy> UnitNormBackend for Autodiff<Flex, C> {
    fn fused_unit_norm(x: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let (output, inverses) = forward(&dense(x), epsilon);
        match UnitNorm.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((output.clone(), inverses), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

fn width_of(tensor: &FlexTensor) -> usize {
    tensor.layout().shape().last().copied().unwrap_or(1)
}

fn forward(x: &FlexTensor, epsilon: f32) -> (FlexTensor, Vec<f32>) {
    let (input, width) = (numbers(x), width_of(x));
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
    let (width, mut grad) = (width_of(unit), whole(grad));
    let rows = rows_of_piece(width);
    let given = numbers(unit).par_chunks(rows * width).zip(inverses.par_chunks(rows));
    in_pieces(
        grad.storage_mut::<f32>().par_chunks_mut(rows * width).zip(given),
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
