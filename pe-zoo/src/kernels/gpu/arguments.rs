//! What the kernels are launched with, out of the operands.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Shape};
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::inputs::{InputsLaunch, PlaceLaunch};
use crate::kernels::operands::{OPERANDS, Operands, Sizes};
use crate::kernels::spec::Spec;

/// In the place of infinity, which not every shading language can write down.
const ENDLESS: f32 = 1e30;
/// Whether an operand is there.
pub(super) fn present<T: TensorMetadata>(tensor: &T) -> bool {
    tensor.shape().num_elements() > 0
}

pub(super) fn last_axis<T: TensorMetadata>(tensor: &T) -> usize {
    let shape = tensor.shape();
    if present(tensor) { shape[shape.num_dims() - 1] } else { 0 }
}

/// All operands in the order of their axes.
pub(super) fn contiguous(operands: Operands<Cube>) -> Operands<Cube> {
    Operands::from_array(
        operands.into_array().map(
            |tensor| {
                if present(&tensor) { into_contiguous(tensor) } else { tensor }
            },
        ),
    )
}

/// What the kernels read, in the order of [`Inputs`](super::inputs::Inputs).
pub(super) fn buffers(operands: &Operands<Cube>, spec: &Spec) -> [CubeTensor; OPERANDS + 1] {
    let client = &operands.q.client;
    // What the kernel does not read still needs a buffer.
    let buffer =
        |tensor: &CubeTensor| if present(tensor) { tensor.clone() } else { operands.q.clone() };
    let positions = if spec.contiguous {
        operands.q.clone()
    } else {
        let positions = spec.columns.iter().map(|at| *at as f32).collect::<Vec<_>>();
        let handle = client.create_from_slice(f32::as_bytes(&positions));
        CubeTensor::new_contiguous(
            client.clone(),
            operands.q.device.clone(),
            Shape::from([positions.len()]),
            handle,
            DType::F32,
        )
    };
    [
        buffer(&operands.q),
        buffer(&operands.k),
        buffer(&operands.values),
        buffer(&operands.slopes),
        buffer(&operands.distance),
        buffer(&operands.query_distance),
        buffer(&operands.decay),
        buffer(&operands.decay_residual),
        buffer(&operands.gate_keys),
        buffer(&operands.table),
        buffer(&operands.hidden),
        buffer(&operands.contextual_slopes),
        buffer(&operands.dense),
        positions,
    ]
}

pub(super) fn inputs(operands: &Operands<Cube>, spec: &Spec) -> InputsLaunch {
    let [
        q,
        k,
        v,
        slopes,
        distance,
        query_distance,
        decay,
        decay_residual,
        gates,
        table,
        hidden,
        contextual_slopes,
        dense,
        positions,
    ] = buffers(operands, spec).map(CubeTensor::into_buffer_arg);
    InputsLaunch::new(
        q,
        k,
        v,
        slopes,
        distance,
        query_distance,
        decay,
        decay_residual,
        gates,
        table,
        hidden,
        contextual_slopes,
        dense,
        positions,
    )
}

/// Numbers of [`Place`](super::inputs::Place), in its order: sizes, then factors.
pub(super) fn numbers(operands: &Operands<Cube>, spec: &Spec) -> ([usize; 6], [f32; 3]) {
    let Sizes { heads, rows, columns, .. } = operands.sizes();
    let (distance, query) = (last_axis(&operands.distance), last_axis(&operands.query_distance));
    let contextual = spec.contextual;
    let gate_scale = contextual.map_or(1.0, |contextual| contextual.gate_scale);
    let max = contextual.map_or(0.0, |contextual| contextual.max_position.min(ENDLESS));
    (
        [heads, rows, columns, spec.first_row, distance, query],
        [spec.content_scale.unwrap_or(1.0), gate_scale, max],
    )
}

pub(super) fn place(operands: &Operands<Cube>, spec: &Spec) -> PlaceLaunch {
    let ([heads, rows, columns, first_row, distance, query], [content_scale, gate_scale, max]) =
        numbers(operands, spec);
    PlaceLaunch::new(
        heads,
        rows,
        columns,
        first_row,
        distance,
        query,
        content_scale,
        gate_scale,
        max,
    )
}
