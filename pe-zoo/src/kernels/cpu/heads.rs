//! Operands as Flex tensors, and views of the part of one head.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;

use super::problem::{ContextualHead, ContextualOperand, Head, PerceptronOperands};
use super::view::{Matrix, Shape};
use crate::kernels::operands::{HeadSlice, Operands, Slot, present};
use crate::kernels::spec::Spec;

impl Operands<Flex> {
    /// Copies operands with negative strides, which projections never have.
    pub(super) fn forward_strides(self) -> Self {
        Self(self.0.map(|tensor| {
            let forward = tensor.layout().strides().iter().all(|stride| *stride >= 0);
            if forward { tensor } else { tensor.to_contiguous() }
        }))
    }

    /// Returns the operands of one head of one sequence.
    pub(super) fn head<'a>(&'a self, spec: &'a Spec, batch: usize, head: usize) -> Head<'a> {
        let parts = Slot::ALL.map(|slot| {
            let tensor = &self[slot];
            if present(tensor) { part(tensor, slot.part(), batch, head) } else { Matrix::EMPTY }
        });
        let get = |slot: Slot| parts[slot as usize];
        let given = |slot: Slot| present(&self[slot]).then(|| get(slot));
        let contextual = spec.contextual.map(|spec| ContextualHead {
            spec,
            gate_keys: given(Slot::GateKeys),
            function: match (given(Slot::ContextualSlopes), spec.activation) {
                (Some(slope), _) => ContextualOperand::Slope(slope.at(0, 0)),
                (None, None) => ContextualOperand::Table(get(Slot::Table)),
                (None, Some(activation)) => ContextualOperand::Perceptron(PerceptronOperands {
                    out: get(Slot::Table),
                    hidden: get(Slot::Hidden),
                    activation,
                }),
            },
        });
        Head { spec, parts, contextual }
    }
}

/// Returns the part of an operand that belongs to one head of one sequence.
fn part(tensor: &FlexTensor, part: HeadSlice, batch: usize, head: usize) -> Matrix<'_> {
    let stride = |axis: usize| tensor.layout().strides()[axis].unsigned_abs();
    match part {
        HeadSlice::Plane | HeadSlice::Column => plane(tensor, batch, head),
        HeadSlice::HeadRow => strided(tensor, 0, 0, 1).rows(head, 1),
        HeadSlice::HeadScalar => strided(tensor, head * stride(0), usize::MAX, usize::MAX),
        HeadSlice::Whole => strided(tensor, 0, 0, 1),
    }
}

/// Views `[batch, head, rows, columns]` at one head of one sequence; without the last axis, as a
/// column.
pub(super) fn plane(tensor: &FlexTensor, batch: usize, head: usize) -> Matrix<'_> {
    let strides = tensor.layout().strides();
    let offset = batch * strides[0].unsigned_abs() + head * strides[1].unsigned_abs();
    strided(tensor, offset, 2, 3)
}

/// Views two axes from an offset on as a matrix; an axis that the tensor lacks has length 1.
fn strided(tensor: &FlexTensor, offset: usize, rows: usize, columns: usize) -> Matrix<'_> {
    let layout = tensor.layout();
    let shape = layout.shape();
    let dims = shape.num_dims();
    let stride = |axis: usize| if axis < dims { layout.strides()[axis].unsigned_abs() } else { 0 };
    let size = |axis: usize| if axis < dims { shape[axis] } else { 1 };
    let data = &tensor.storage::<f32>()[layout.start_offset() + offset..];
    let shape = Shape {
        rows: size(rows),
        columns: size(columns),
        row_stride: stride(rows),
        column_stride: stride(columns),
    };
    Matrix::new(data, shape)
}
