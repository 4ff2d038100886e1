//! Fused attention on GPUs as an operation that Burn can differentiate.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, backend_extension};

use super::arguments::contiguous;
use super::results::Forward;
use super::{collect, launch};
use crate::kernels::input_tensors::InputTensors;
use crate::kernels::operands::{Operands, SLOTS};
use crate::kernels::spec::Spec;

/// Backend with the GPU kernels.
#[backend_extension(Cube, Autodiff)]
pub(super) trait CubeAttention: Backend {
    /// Computes attention without a `T x S` tensor, of the operands in the order of their slots; the result is `[B, H, T, E]`.
    fn cube_attention(
        #[extension_type] operands: InputTensors<Self>,
        spec: Spec,
    ) -> FloatTensor<Self>;
}

impl CubeAttention for Cube {
    fn cube_attention(operands: InputTensors<Self>, spec: Spec) -> FloatTensor<Self> {
        launch::forward(&contiguous(Operands(operands.array())), &spec).output
    }
}

#[derive(Debug)]
struct Attention;

#[derive(Debug, Clone)]
struct AttentionState {
    operands: Operands<Cube>,
    spec: Spec,
    kept: Forward,
}

impl Backward<Cube, SLOTS> for Attention {
    type State = AttentionState;

    fn backward(
        self,
        ops: Ops<Self::State, SLOTS>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let AttentionState { operands, spec, kept } = ops.state;
        let grad = grads.consume::<Cube>(&ops.node);
        let found = collect::gradients(&operands, &spec, kept, grad, launch::backward);
        for (parent, grad) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<Cube>(parent.id, grad);
            }
        }
    }
}

impl<C: CheckpointStrategy> CubeAttention for Autodiff<Cube, C> {
    fn cube_attention(operands: InputTensors<Self>, spec: Spec) -> FloatTensor<Self> {
        let tensors = operands.array::<SLOTS>();
        let nodes = tensors.each_ref().map(FloatTensor::<Self>::node);
        let operands =
            contiguous(Operands::<Cube>(tensors.map(FloatTensor::<Self>::into_primitive)));
        match Attention.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let kept = launch::forward(&operands, &spec);
                let output = kept.output.clone();
                prep.finish(AttentionState { operands, spec, kept }, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(launch::forward(&operands, &spec).output),
        }
    }
}
