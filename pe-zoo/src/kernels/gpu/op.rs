//! Fused attention on GPUs as an operation that Burn can differentiate.

use std::f32::consts::LOG2_E;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, backend_extension};

use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::arguments::contiguous;
use super::mma::{self, MmaConfig};
use super::results::Forward;
use super::sinks::SoftmaxRows;
use super::{collect, launch};
use crate::kernels::input_tensors::InputTensors;
use crate::kernels::operands::{Operands, SLOTS, Slot, present};
use crate::kernels::spec::{Spec, WeightRule};

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
    let sinks = &operands[Slot::Sink];
    let has_sinks = present(sinks) && spec.weights == WeightRule::Softmax;
    let sinks = has_sinks.then(|| into_contiguous(sinks.clone()));
    let kernels = if let Some(config) = mma::config(&operands[Slot::Query].client, &operands, &spec)
    {
        KernelState::Mma { forward: mma::forward(&operands, &spec, config), config }
    } else {
        let on_cores = !spec.terms.is_empty()
            || [
                Slot::Bends,
                Slot::StepPricesKeys,
                Slot::FarKey,
                Slot::ChannelDecay,
                Slot::ReflectedProducts,
            ]
            .iter()
            .any(|slot| present(&operands[*slot]));
        assert!(!on_cores, "only the kernels on tensor cores compute this modifier");
        let operands = contiguous(operands);
        let forward = launch::forward(&operands, &spec);
        KernelState::Tiles { operands, spec, forward }
    };
    if let Some(sinks) = &sinks {
        kernels.rows().add(sinks);
    }
    (kernels.rows().output.clone(), AttentionState { kernels, sinks })
}

impl CubeAttention for Cube {
    fn cube_attention(operands: InputTensors<Self>, spec: Spec) -> FloatTensor<Self> {
        forward(Operands(operands.array()), spec).0
    }
}

/// Results of the forward pass that the gradient needs.
#[derive(Debug, Clone)]
struct AttentionState {
    kernels: KernelState,
    /// Sinks, `[H]`, if there are any.
    sinks: Option<CubeTensor>,
}

/// Operands and results of the forward pass, by the kernels that computed it.
#[derive(Debug, Clone)]
enum KernelState {
    Mma { forward: mma::MmaForward, config: MmaConfig },
    Tiles { operands: Operands<Cube>, spec: Spec, forward: Forward },
}

impl KernelState {
    fn rows(&self) -> SoftmaxRows<'_> {
        match self {
            Self::Mma { forward, .. } => {
                SoftmaxRows { output: &forward.output, log: forward.log(), nat: LOG2_E }
            }
            Self::Tiles { forward: Forward { output, log }, .. } => {
                SoftmaxRows { output, log, nat: 1.0 }
            }
        }
    }
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
        let AttentionState { kernels, sinks } = ops.state;
        let of_sinks = sinks.map(|sinks| kernels.rows().gradient(&sinks, &grad));
        let mut gradients = match kernels {
            KernelState::Mma { forward, config } => {
                let is_tracked = |slot: Slot| ops.parents[slot as usize].is_some();
                let by_distance = is_tracked(Slot::Distance) || is_tracked(Slot::PositionMlpLines);
                mma::gradients(&forward, &grad, of_sinks.as_ref(), by_distance, config)
            }
            KernelState::Tiles { operands, spec, forward } => {
                collect::gradients(&operands, &spec, forward, grad, launch::backward)
            }
        };
        gradients[Slot::Sink as usize] = of_sinks;
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
