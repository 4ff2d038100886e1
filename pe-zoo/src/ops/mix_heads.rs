//! Sums of a state's heads with weights of each token, in one pass.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;
use rayon::prelude::*;

use super::head_rows::{HeadRows, dims, each_row, in_order};
use super::row_product::dot;
use crate::kernels::cpu::parallel::rows_of_piece;
use crate::kernels::cpu::tensors::{contiguous, dense, numbers};
use crate::kernels::cpu::view::{Start, in_new_memory};

pub(super) fn mix_heads(z: Tensor<4>, weights: Tensor<3>) -> Tensor<4> {
    let (z, weights) = (z.into_dispatch(), weights.into_dispatch());
    Tensor::from_dispatch(<Dispatch as MixHeadsBackend>::fused_mix_heads(z, weights))
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait MixHeadsBackend: Backend {
    fn fused_mix_heads(z: FloatTensor<Self>, weights: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl MixHeadsBackend for Flex {
    fn fused_mix_heads(z: FloatTensor<Self>, weights: FloatTensor<Self>) -> FloatTensor<Self> {
        mixed(&in_order(z), &dense(weights), false)
    }
}

#[derive(Debug)]
struct MixHeads;

impl Backward<Flex, 2> for MixHeads {
    type State = [FlexTensor; 2];

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = in_order(grads.consume::<Flex>(&ops.node));
        let [z, weights] = ops.state;
        let [to_z, to_weights] = ops.parents;
        if let Some(node) = to_weights {
            grads.register::<Flex>(node.id, weight_grads(&grad, &z, &weights));
        }
        if let Some(node) = to_z {
            grads.register::<Flex>(node.id, mixed(&grad, &weights, true));
        }
    }
}

impl<C: CheckpointStrategy> MixHeadsBackend for Autodiff<Flex, C> {
    fn fused_mix_heads(z: FloatTensor<Self>, weights: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [z.node(), weights.node()];
        let (z, weights) = (in_order(z.into_primitive()), dense(weights.into_primitive()));
        let output = mixed(&z, &weights, false);
        match MixHeads.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish([z, weights], output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// Computes `z + W z` or `z + W^T z` over the heads of each token.
fn mixed(z: &FlexTensor, weights: &FlexTensor, transposed: bool) -> FlexTensor {
    let [batch, heads, tokens, width] = dims(z);
    let (z, weights) = (HeadRows::new(z), numbers(weights));
    each_row(
        [batch, heads, tokens, width],
        #[inline(always)]
        |at, h, output| {
            let of_token = &weights[(at[0] * tokens + at[1]) * heads * heads..];
            output.copy_from_slice(z.row(at, h));
            for g in 0..heads {
                let weight = of_token[if transposed { g * heads + h } else { h * heads + g }];
                for (output, z) in output.iter_mut().zip(z.row(at, g)) {
                    *output += weight * z;
                }
            }
        },
    )
}

/// Computes the gradient of the weights: products of the gradients of heads with the states of heads.
fn weight_grads(grad: &FlexTensor, z: &FlexTensor, weights: &FlexTensor) -> FlexTensor {
    let [batch, heads, tokens, width] = dims(z);
    let (grad, z, pairs) = (HeadRows::new(grad), HeadRows::new(z), heads * heads);
    let rows = rows_of_piece(width);
    let len = batch * tokens * pairs;
    let output = in_new_memory(
        len,
        (rows * pairs).max(1),
        Start::Zeros,
        (0..len.div_ceil((rows * pairs).max(1))).into_par_iter(),
        #[inline(always)]
        |output, piece| {
            for (n, output) in output.chunks_exact_mut(pairs).enumerate() {
                let row = piece * rows + n;
                let at = [row / tokens, row % tokens];
                for (pair, output) in output.iter_mut().enumerate() {
                    *output = dot(grad.row(at, pair / heads), z.row(at, pair % heads));
                }
            }
        },
    );
    contiguous(output, weights.layout().shape().clone())
}
