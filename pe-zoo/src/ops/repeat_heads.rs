//! Repetition of the heads that groups share, in one pass.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use super::head_rows::{HeadRows, dims, each_row, in_order};

pub(super) fn repeat_heads(x: Tensor<4>, times: usize) -> Tensor<4> {
    let x = x.into_dispatch();
    Tensor::from_dispatch(<Dispatch as RepeatBackend>::fused_repeat_heads(x, times))
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait RepeatBackend: Backend {
    fn fused_repeat_heads(x: FloatTensor<Self>, times: usize) -> FloatTensor<Self>;
}

impl RepeatBackend for Flex {
    fn fused_repeat_heads(x: FloatTensor<Self>, times: usize) -> FloatTensor<Self> {
        forward(x, times)
    }
}

#[derive(Debug)]
struct RepeatHeads;

impl Backward<Flex, 1> for RepeatHeads {
    type State = usize;

    fn backward(self, ops: Ops<usize, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let times = ops.state;
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| backward(grad, times));
    }
}

impl<C: CheckpointStrategy> RepeatBackend for Autodiff<Flex, C> {
    fn fused_repeat_heads(x: FloatTensor<Self>, times: usize) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let output = forward(x, times);
        match RepeatHeads.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(times, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

fn forward(x: FlexTensor, times: usize) -> FlexTensor {
    let x = in_order(x);
    let [batch, heads, tokens, width] = dims(&x);
    let x = HeadRows::new(&x);
    each_row(
        [batch, heads * times, tokens, width],
        #[inline(always)]
        |at, h, output| output.copy_from_slice(x.row(at, h / times)),
    )
}

/// Adds up the gradients of each group.
fn backward(grad: FlexTensor, times: usize) -> FlexTensor {
    let grad = in_order(grad);
    let [batch, heads, tokens, width] = dims(&grad);
    let grad = HeadRows::new(&grad);
    each_row(
        [batch, heads / times, tokens, width],
        #[inline(always)]
        |at, h, output| {
            for n in h * times..(h + 1) * times {
                for (output, grad) in output.iter_mut().zip(grad.row(at, n)) {
                    *output += grad;
                }
            }
        },
    )
}
