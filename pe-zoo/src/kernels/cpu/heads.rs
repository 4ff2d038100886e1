//! The operands as Flex holds them, and how they are cut into heads.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;

use super::form_views::{Base, Curve, FormHead, Maps, Mixer, Price, Steps};
use super::problem::{ContextualHead, ContextualOperand, Head, Perceptron};
use super::view::{Matrix, Shape};
use crate::kernels::forms::Forms;
use crate::kernels::operands::Operands;
use crate::kernels::spec::{FormSpec, Spec};

/// Whether an operand is there.
pub(super) fn present(tensor: &FlexTensor) -> bool {
    tensor.layout().num_elements() > 0
}

impl Operands<Flex> {
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
            decay_residual: present(&self.decay_residual)
                .then(|| column(&self.decay_residual, batch, head)),
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
            forms: forms(&self.forms, &spec.forms, batch, head),
        }
    }
}

/// The forms of one (batch, head).
fn forms<'a>(
    forms: &'a Forms<Flex>,
    spec: &'a FormSpec,
    batch: usize,
    head: usize,
) -> FormHead<'a> {
    let has = present;
    let of_plane = |tensor| plane(tensor, batch, head);
    let curve = |lines, distances, rows, bends| Curve {
        bends,
        lines: matrix(lines).rows(head, 1),
        distances: vector(distances),
        rows: vector(rows),
    };
    let base = spec.mixer.as_ref().and_then(|mixer| {
        let Forms { base_table, base_lines, base_distances, base_rows, .. } = forms;
        match (has(base_table), has(base_lines)) {
            (true, _) => Some(Base::Table(matrix(base_table).rows(head, 1))),
            (false, true) => {
                let curve = curve(base_lines, base_distances, base_rows, &*mixer.bends);
                Some(Base::Curve(curve))
            }
            (false, false) => None,
        }
    });
    FormHead {
        curve: has(&forms.curve_lines).then(|| {
            curve(&forms.curve_lines, &forms.curve_distances, &forms.curve_rows, &*spec.bends)
        }),
        price: (has(&forms.price_keys) || has(&forms.price_queries)).then(|| Price {
            keys: has(&forms.price_keys).then(|| column(&forms.price_keys, batch, head)),
            queries: has(&forms.price_queries).then(|| column(&forms.price_queries, batch, head)),
        }),
        steps: has(&forms.step_keys).then(|| Steps {
            queries: of_plane(&forms.step_queries),
            keys: of_plane(&forms.step_keys),
            slope: vector(&forms.step_slopes).at(0, head),
        }),
        maps: has(&forms.chunk_maps).then(|| Maps {
            directions: of_plane(&forms.directions),
            chunks: of_plane(&forms.chunk_maps),
        }),
        mixer: spec.mixer.as_ref().map(|spec| Mixer {
            spec,
            inner: matrix(&forms.mixer_inner),
            inner_bias: vector(&forms.mixer_inner_bias),
            outer: matrix(&forms.mixer_outer),
            outer_bias: vector(&forms.mixer_outer_bias),
            base,
        }),
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
