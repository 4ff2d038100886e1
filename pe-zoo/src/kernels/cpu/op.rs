//! Fused attention on the CPU as an operation that Burn can differentiate.

use burn::backend::flex::FlexTensor;
use burn::backend::{Dispatch, Flex};
use burn::tensor::Tensor;

use super::engine::{self, Kept};
use super::gradients::{self, BackwardPass};
use super::one_row;
use super::operation::{Operation, apply};
use crate::kernels::operands::{Operands, SLOTS};
use crate::kernels::spec::Spec;

/// Computes fused attention, `[B, H, T, E]`.
pub(crate) fn attend(operands: Operands<Dispatch>, spec: Spec) -> Tensor<4> {
    apply(FusedAttention { spec }, operands.0)
}

/// Attention without a `T x S` tensor; the result is `[B, H, T, E]`.
#[derive(Debug, Clone)]
struct FusedAttention {
    spec: Spec,
}

#[derive(Debug, Clone)]
struct FusedAttentionState {
    operands: Operands<Flex>,
    kept: Kept,
    output: FlexTensor,
}

impl Operation<SLOTS> for FusedAttention {
    type Kept = FusedAttentionState;

    fn forward(&self, inputs: [FlexTensor; SLOTS]) -> (FlexTensor, FusedAttentionState) {
        let operands = Operands(inputs).forward_strides();
        let (output, kept) = engine::forward(&operands, &self.spec);
        (output.clone(), FusedAttentionState { operands, kept, output })
    }

    fn output(&self, inputs: [FlexTensor; SLOTS]) -> FlexTensor {
        let operands = Operands(inputs).forward_strides();
        match one_row::scale_of(&operands, &self.spec) {
            Some(scale) => one_row::forward(&operands, scale),
            None => engine::forward(&operands, &self.spec).0,
        }
    }

    fn backward(
        &self,
        FusedAttentionState { operands, kept, output }: FusedAttentionState,
        grad: FlexTensor,
        _needed: [bool; SLOTS],
    ) -> [Option<FlexTensor>; SLOTS] {
        gradients::backward(BackwardPass {
            operands: &operands,
            spec: &self.spec,
            kept: &kept,
            output: &output,
            grad: &grad,
        })
    }
}
