//! Fused attention on the CPU as an operation that Burn can differentiate.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use super::engine::{self, Kept};
use super::gradients::{self, BackwardPass};
use super::one_row;
use crate::kernels::operands::{Operands, SLOTS};
use crate::kernels::spec::Spec;

/// Computes fused attention, `[B, H, T, E]`.
pub(crate) fn attend(operands: Operands<Dispatch>, spec: Spec) -> Tensor<4> {
    Tensor::from_dispatch(<Dispatch as FusedBackend>::fused_attention(operands, spec))
}

/// Backend with the fused engine.
#[backend_extension(Flex, Autodiff)]
trait FusedBackend: Backend {
    /// Computes attention without a `T x S` tensor; the result is `[B, H, T, E]`.
    fn fused_attention(#[extension_type] operands: Operands<Self>, spec: Spec)
    -> FloatTensor<Self>;
}

impl FusedBackend for Flex {
    fn fused_attention(operands: Operands<Self>, spec: Spec) -> FloatTensor<Self> {
        let operands = operands.forward_strides();
        match one_row::scale_of(&operands, &spec) {
            Some(scale) => one_row::forward(&operands, scale),
            None => engine::forward(&operands, &spec).0,
        }
    }
}

#[derive(Debug)]
struct FusedAttention;

#[derive(Debug, Clone)]
struct FusedAttentionState {
    operands: Operands<Flex>,
    spec: Spec,
    kept: Kept,
    output: FlexTensor,
}

impl Backward<Flex, SLOTS> for FusedAttention {
    type State = FusedAttentionState;

    fn backward(
        self,
        ops: Ops<Self::State, SLOTS>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let FusedAttentionState { operands, spec, kept, output } = ops.state;
        let grad = grads.consume::<Flex>(&ops.node);
        let found = gradients::backward(BackwardPass {
            operands: &operands,
            spec: &spec,
            kept: &kept,
            output: &output,
            grad: &grad,
        });
        for (parent, grad) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<Flex>(parent.id, grad);
            }
        }
    }
}

impl<C: CheckpointStrategy> FusedBackend for Autodiff<Flex, C> {
    fn fused_attention(operands: Operands<Self>, spec: Spec) -> FloatTensor<Self> {
        let tensors = operands.0;
        let nodes = tensors.each_ref().map(FloatTensor::<Self>::node);
        let operands =
            Operands::<Flex>(tensors.map(FloatTensor::<Self>::into_primitive)).forward_strides();
        match FusedAttention.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (output, kept) = engine::forward(&operands, &spec);
                let state = FusedAttentionState { operands, spec, kept, output: output.clone() };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(engine::forward(&operands, &spec).0),
        }
    }
}
