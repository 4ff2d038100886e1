//! Sum of two tensors of one shape, such as a residual connection, on all threads.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, binary};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;
use rayon::prelude::*;

use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers, whole};
use crate::kernels::cpu::view::{Start, in_new_memory};

pub(super) fn add<const D: usize>(x: Tensor<D>, y: Tensor<D>) -> Tensor<D> {
    let (x, y) = (x.into_dispatch(), y.into_dispatch());
    Tensor::from_dispatch(<Dispatch as AddBackend>::fused_add(x, y))
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait AddBackend: Backend {
    fn fused_add(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl AddBackend for Flex {
    fn fused_add(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        forward(dense(x), dense(y))
    }
}

#[derive(Debug)]
struct AddOp;

impl Backward<Flex, 2> for AddOp {
    type State = ();

    fn backward(self, ops: Ops<(), 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        binary::<Flex, _, _>(ops.parents, ops.node, grads, |grad| grad, |grad| grad);
    }
}

impl<C: CheckpointStrategy> AddBackend for Autodiff<Flex, C> {
    fn fused_add(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), y.node()];
        let output = forward(dense(x.into_primitive()), dense(y.into_primitive()));
        match AddOp.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
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
