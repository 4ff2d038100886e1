//! The tensors of one attention as Flex holds them, and how they are cut into heads.

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType, Flex, TensorMetadata};

use super::problem::{ContextualHead, ContextualOperand, Head, Perceptron};
use super::spec::Spec;
use crate::cpu::view::{Matrix, Shape};

/// Number of operands.
pub(super) const OPERANDS: usize = 13;

/// The operands; one that is absent has no element.
#[derive(Debug, Clone, ExtensionType)]
pub(super) struct Operands<B: Backend> {
    /// Queries, `[B, H, T, D]`.
    pub q: FloatTensor<B>,
    /// Keys, `[B, H, S, D]`.
    pub k: FloatTensor<B>,
    /// What is mixed, `[B, H, S, E]`.
    pub values: FloatTensor<B>,
    /// `[H]`.
    pub slopes: FloatTensor<B>,
    /// `[H, N]`, whose last entry goes on for ever.
    pub distance: FloatTensor<B>,
    /// `[D, N]`, whose last entry goes on for ever.
    pub query_distance: FloatTensor<B>,
    /// Running sums, `[B, H, S]`.
    pub decay: FloatTensor<B>,
    /// More running sums, `[B, H, S]`, kept apart so that small ones keep their digits.
    pub finer_decay: FloatTensor<B>,
    /// Keys of the gates, `[B, H, S, D]`.
    pub gate_keys: FloatTensor<B>,
    /// Table of the contextual positions, `[D, N]`, or a perceptron's second layer, `[D, N + 1]`.
    pub table: FloatTensor<B>,
    /// Weights and biases of a perceptron's hidden layer, `[2, N]`.
    pub hidden: FloatTensor<B>,
    /// Slopes of the contextual positions, `[H]`.
    pub contextual_slopes: FloatTensor<B>,
    /// `[B, H, T, S]`.
    pub dense: FloatTensor<B>,
}

impl<B: Backend> Operands<B> {
    /// In the order of the fields.
    pub(super) fn into_array(self) -> [FloatTensor<B>; OPERANDS] {
        [
            self.q,
            self.k,
            self.values,
            self.slopes,
            self.distance,
            self.query_distance,
            self.decay,
            self.finer_decay,
            self.gate_keys,
            self.table,
            self.hidden,
            self.contextual_slopes,
            self.dense,
        ]
    }

    /// From the order of the fields.
    pub(super) fn from_array(array: [FloatTensor<B>; OPERANDS]) -> Self {
        let [
            q,
            k,
            values,
            slopes,
            distance,
            query_distance,
            decay,
            finer_decay,
            gate_keys,
            table,
            hidden,
            contextual_slopes,
            dense,
        ] = array;
        Self {
            q,
            k,
            values,
            slopes,
            distance,
            query_distance,
            decay,
            finer_decay,
            gate_keys,
            table,
            hidden,
            contextual_slopes,
            dense,
        }
    }
}

/// Whether an operand is there.
pub(super) fn present(tensor: &FlexTensor) -> bool {
    tensor.layout().num_elements() > 0
}

/// Sizes of one attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) head_dim: usize,
    pub(super) value_dim: usize,
}

impl Operands<Flex> {
    pub(super) fn sizes(&self) -> Sizes {
        let (q, values) = (self.q.shape(), self.values.shape());
        Sizes {
            batch: q[0],
            heads: q[1],
            rows: q[2],
            columns: values[2],
            head_dim: q[3],
            value_dim: values[3],
        }
    }

    /// Copies operands whose strides run backwards, which no projection makes.
    pub(super) fn forward_strides(self) -> Self {
        Self::from_array(self.into_array().map(|tensor| {
            let forward = tensor.layout().strides().iter().all(|stride| *stride >= 0);
            if forward { tensor } else { tensor.to_contiguous() }
        }))
    }

    /// The operands of one (batch, head).
    pub(super) fn head<'a>(&'a self, spec: &'a Spec, batch: usize, head: usize) -> Head<'a> {
        let slope = |tensor: &FlexTensor| present(tensor).then(|| vector(tensor).at(0, head));
        let plane = |tensor: &'a FlexTensor| plane(tensor, batch, head);
        Head {
            spec,
            q: plane(&self.q),
            k: plane(&self.k),
            values: plane(&self.values),
            slope: slope(&self.slopes),
            distance: present(&self.distance).then(|| matrix(&self.distance).rows(head, 1)),
            query_distance: present(&self.query_distance).then(|| matrix(&self.query_distance)),
            decay: present(&self.decay).then(|| column(&self.decay, batch, head)),
            finer_decay: present(&self.finer_decay).then(|| column(&self.finer_decay, batch, head)),
            contextual: spec.contextual.map(|spec| ContextualHead {
                spec,
                gate_keys: present(&self.gate_keys).then(|| plane(&self.gate_keys)),
                function: match (slope(&self.contextual_slopes), spec.activation) {
                    (Some(slope), _) => ContextualOperand::Slope(slope),
                    (None, None) => ContextualOperand::Table(matrix(&self.table)),
                    (None, Some(activation)) => ContextualOperand::Perceptron(Perceptron {
                        out: matrix(&self.table),
                        hidden: matrix(&self.hidden),
                        activation,
                    }),
                },
            }),
            dense: present(&self.dense).then(|| plane(&self.dense)),
        }
    }
}

fn strided(tensor: &FlexTensor, offset: usize, rows: usize, columns: usize) -> Matrix<'_> {
    let layout = tensor.layout();
    let shape = layout.shape();
    let dims = shape.num_dims();
    let stride = |axis: usize| layout.strides()[axis].unsigned_abs();
    let size = |axis: usize| if axis < dims { shape[axis] } else { 1 };
    let (row_stride, column_stride) = (
        if rows < dims { stride(rows) } else { 0 },
        if columns < dims { stride(columns) } else { 0 },
    );
    let data = &tensor.storage::<f32>()[layout.start_offset() + offset..];
    let shape = Shape { rows: size(rows), columns: size(columns), row_stride, column_stride };
    Matrix::new(data, shape)
}

/// `[.., batch, head, rows, columns]` at one (batch, head).
pub(super) fn plane(tensor: &FlexTensor, batch: usize, head: usize) -> Matrix<'_> {
    let strides = tensor.layout().strides();
    let offset = batch * strides[0].unsigned_abs() + head * strides[1].unsigned_abs();
    strided(tensor, offset, 2, 3)
}

/// `[batch, head, rows]` at one (batch, head), as a column.
fn column(tensor: &FlexTensor, batch: usize, head: usize) -> Matrix<'_> {
    let strides = tensor.layout().strides();
    let offset = batch * strides[0].unsigned_abs() + head * strides[1].unsigned_abs();
    strided(tensor, offset, 2, 3)
}

/// `[rows, columns]`.
fn matrix(tensor: &FlexTensor) -> Matrix<'_> {
    strided(tensor, 0, 0, 1)
}

/// `[n]` as one row.
fn vector(tensor: &FlexTensor) -> Matrix<'_> {
    strided(tensor, 0, 1, 0)
}
