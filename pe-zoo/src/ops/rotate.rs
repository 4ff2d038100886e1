//! Rotation of channel pairs, in one pass over strided queries or keys.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::{Bytes, DType, Shape, Tensor};
use rayon::prelude::*;

use super::Pairs;
use crate::kernels::cpu::parallel::in_pieces;
use crate::kernels::cpu::tensors::{dense, numbers};

pub(super) fn rotate(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>, pairs: Pairs) -> Tensor<4> {
    let (cos, sin) = (cos.into_dispatch(), sin.into_dispatch());
    let x = x.into_dispatch();
    Tensor::from_dispatch(<Dispatch as RotateBackend>::fused_rotate(x, cos, sin, pairs))
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait RotateBackend: Backend {
    fn fused_rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        pairs: Pairs,
    ) -> FloatTensor<Self>;
}

impl RotateBackend for Flex {
    fn fused_rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        pairs: Pairs,
    ) -> FloatTensor<Self> {
        turn(x, &Turn { cos: dense(cos), sin: dense(sin), pairs, backwards: false })
    }
}

#[derive(Debug)]
struct Rotate;

impl Backward<Flex, 1> for Rotate {
    type State = Turn;

    fn backward(self, ops: Ops<Turn, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let back = Turn { backwards: true, ..ops.state };
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| turn(grad, &back));
    }
}

impl<C: CheckpointStrategy> RotateBackend for Autodiff<Flex, C> {
    fn fused_rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        pairs: Pairs,
    ) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let (cos, sin) = (dense(cos.into_primitive()), dense(sin.into_primitive()));
        let by = Turn { cos, sin, pairs, backwards: false };
        let output = turn(x, &by);
        match Rotate.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(by, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// Cosines and sines of the angles, `[T, D / 2]` each.
#[derive(Debug, Clone)]
struct Turn {
    cos: FlexTensor,
    sin: FlexTensor,
    pairs: Pairs,
    backwards: bool,
}

/// Rotates channel pairs. The result is laid out as `[B, T, H, D]` whatever the layout of `x`, like
/// the output of a projection.
fn turn(x: FlexTensor, by: &Turn) -> FlexTensor {
    let in_order = x.layout().strides()[3] == 1 && x.layout().strides().iter().all(|s| *s >= 0);
    let x = if in_order { x } else { x.to_contiguous() };
    let shape = x.layout().shape().clone();
    let [batch, heads, tokens, head_dim] = [shape[0], shape[1], shape[2], shape[3]];
    let strides = x.layout().strides().iter().map(|s| s.unsigned_abs()).collect::<Vec<_>>();
    let input = &x.storage::<f32>()[x.layout().start_offset()..];
    let (cos, sin) = (numbers(&by.cos), numbers(&by.sin));
    let half = head_dim / 2;
    let sign = if by.backwards { -1.0 } else { 1.0 };
    let mut output = vec![0.0; batch * heads * tokens * head_dim];
    in_pieces(
        output.par_chunks_mut(heads * head_dim).enumerate().with_min_len(64),
        #[inline(always)]
        |(row, output)| {
            let (b, t) = (row / tokens, row % tokens);
            let (cos, sin) = (&cos[t * half..][..half], &sin[t * half..][..half]);
            for (h, output) in output.chunks_exact_mut(head_dim).enumerate() {
                let start = b * strides[0] + h * strides[1] + t * strides[2];
                let input = &input[start..][..head_dim];
                match by.pairs {
                    Pairs::HalfSplit => {
                        let (a, b) = input.split_at(half);
                        let (first, second) = output.split_at_mut(half);
                        for m in 0..half {
                            let turn = sign * sin[m];
                            first[m] = a[m] * cos[m] - b[m] * turn;
                            second[m] = a[m] * turn + b[m] * cos[m];
                        }
                    }
                    Pairs::Interleaved => {
                        for m in 0..half {
                            let (a, b) = (input[2 * m], input[2 * m + 1]);
                            let turn = sign * sin[m];
                            output[2 * m] = a * cos[m] - b * turn;
                            output[2 * m + 1] = a * turn + b * cos[m];
                        }
                    }
                }
            }
        },
    );
    let strides = [tokens * heads * head_dim, head_dim, heads * head_dim, 1].map(|s| s as isize);
    let layout = Layout::new(Shape::from([batch, heads, tokens, head_dim]), strides.to_vec(), 0);
    FlexTensor::new(Bytes::from_elems(output), layout, DType::F32)
}
