//! Operands as Flex tensors, and views of the part of one head.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;

use super::problem::{ContextualHead, ContextualMlpOperands, ContextualOperand, Head};
use super::tensors::{forward_strides, matrix};
use super::view::Matrix;
use crate::kernels::operands::{HeadSlice, Operands, Slot, present};
use crate::kernels::spec::Spec;

impl Operands<Flex> {
    /// Copies operands with negative strides, which projections never have.
    pub(super) fn forward_strides(self) -> Self {
        Self(self.0.map(forward_strides))
    }

    /// Returns the operands of one head of one sequence.
    pub(super) fn head<'a>(&'a self, spec: &'a Spec, batch: usize, head: usize) -> Head<'a> {
        let operands = Slot::ALL.map(|slot| {
            let tensor = &self[slot];
            if present(tensor) {
                head_slice(tensor, slot.head_slice(), batch, head)
            } else {
                Matrix::EMPTY
            }
        });
        let required = |slot: Slot| operands[slot as usize];
        let optional = |slot: Slot| present(&self[slot]).then(|| required(slot));
        let contextual = spec.contextual.map(|spec| ContextualHead {
            spec,
            gate_keys: optional(Slot::ContextualGateKeys),
            function: match (optional(Slot::ContextualSlopes), spec.activation) {
                (Some(slope), _) => ContextualOperand::Slope(slope.at(0, 0)),
                (None, None) => ContextualOperand::Table(required(Slot::ContextualVectors)),
                (None, Some(activation)) => ContextualOperand::Mlp(ContextualMlpOperands {
                    out: required(Slot::ContextualVectors),
                    hidden: required(Slot::ContextualHidden),
                    activation,
                }),
            },
        });
        Head { spec, operands, contextual }
    }
}

/// Returns the slice of an operand that belongs to one head of one sequence.
fn head_slice(tensor: &FlexTensor, slice: HeadSlice, batch: usize, head: usize) -> Matrix<'_> {
    let stride = |axis: usize| tensor.layout().strides()[axis].unsigned_abs();
    match slice {
        HeadSlice::Plane | HeadSlice::Column => plane(tensor, batch, head),
        HeadSlice::HeadRow => matrix(tensor, 0, 0, 1).rows(head, 1),
        HeadSlice::HeadScalar => matrix(tensor, head * stride(0), usize::MAX, usize::MAX),
        HeadSlice::Whole => matrix(tensor, 0, 0, 1),
    }
}

/// Views `[batch, head, rows, columns]` at one head of one sequence; without the last axis, as a
/// column.
pub(super) fn plane(tensor: &FlexTensor, batch: usize, head: usize) -> Matrix<'_> {
    let strides = tensor.layout().strides();
    let offset = batch * strides[0].unsigned_abs() + head * strides[1].unsigned_abs();
    matrix(tensor, offset, 2, 3)
}
