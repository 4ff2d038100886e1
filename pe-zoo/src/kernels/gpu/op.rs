//! Fused attention on GPUs as an operation that Burn can differentiate.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, backend_extension};

use super::arguments::contiguous;
use super::mma::{self, MmaConfig};
use super::results::Forward;
use super::{collect, launch};
use crate::kernels::input_tensors::InputTensors;
use crate::kernels::operands::{Operands, SLOTS, Slot};
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

/// Computes the output, and what its gradient needs.
fn forward(operands: Operands<Cube>, spec: Spec) -> (FloatTensor<Cube>, AttentionState) {
    if let Some(config) = mma::config(&operands[Slot::Query].client, &operands, &spec) {
        let forward = mma::forward(&operands, &spec, config);
        return (forward.output.clone(), AttentionState::Mma { forward, config });
    }
    assert!(spec.terms.is_empty(), "only the kernels on `mma.sync` compute a pair term");
    let operands = contiguous(operands);
    let forward = launch::forward(&operands, &spec);
    (forward.output.clone(), AttentionState::Tiles { operands, spec, forward })
}

impl CubeAttention for Cube {
    fn cube_attention(operands: InputTensors<Self>, spec: Spec) -> FloatTensor<Self> {
        forward(Operands(operands.array()), spec).0
    }
}

/// Operands and results of the forward pass for its gradient, by the kernels that computed it.
#[derive(Debug, Clone)]
enum AttentionState {
    Mma { forward: mma::MmaForward, config: MmaConfig },
    Tiles { operands: Operands<Cube>, spec: Spec, forward: Forward },
}

#[derive(Debug)]
struct Attention;

impl Backward<Cube, SLOTS> for Attention {
    type State = AttentionState;

    fn backward(
        self,
        ops: Ops<Self::State, SLOTS>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let grad = grads.consume::<Cube>(&ops.node);
        let gradients = match ops.state {
            AttentionState::Mma { forward, config } => mma::gradients(&forward, &grad, config),
            AttentionState::Tiles { operands, spec, forward } => {
                collect::gradients(&operands, &spec, forward, grad, launch::backward)
            }
        };
        for (parent, grad) in ops.parents.into_iter().zip(gradients) {
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
        let operands = Operands::<Cube>(tensors.map(FloatTensor::<Self>::into_primitive));
        match Attention.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (output, kept) = forward(operands, spec);
                prep.finish(kept, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(forward(operands, spec).0),
        }
    }
}
