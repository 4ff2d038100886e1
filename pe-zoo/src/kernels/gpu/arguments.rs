//! Conversion of the operands to arguments of the GPU kernels.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Shape};
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::heads;
use super::inputs::{InputsLaunch, LaunchSizesLaunch, PlaneRowsLaunch};
use crate::kernels::operands::{Operands, Sizes, Slot, present};
use crate::kernels::spec::Spec;

/// Substitute for infinity, which not every shading language can express.
const ENDLESS: f32 = 1e30;

pub(super) fn last_axis<T: TensorMetadata>(tensor: &T) -> usize {
    let shape = tensor.shape();
    if present(tensor) { shape[shape.num_dims() - 1] } else { 0 }
}

/// Copies operands without the order that the kernels read: queries, keys and values
/// [`dense`](heads::dense), others in row-major order.
pub(super) fn contiguous(mut operands: Operands<Cube>) -> Operands<Cube> {
    for slot in Slot::ALL {
        let tensor = operands[slot].clone();
        if present(&tensor) {
            let of_heads = HEADS.contains(&slot);
            operands[slot] = if of_heads { heads::dense(tensor) } else { into_contiguous(tensor) };
        }
    }
    operands
}

/// Slots of heads.
const HEADS: [Slot; 4] = [Slot::Query, Slot::Key, Slot::Values, Slot::ContextualGateKeys];

/// Slots of the operands that the kernels read, in the order of [`Inputs`](super::inputs::Inputs).
const READ: [Slot; 13] = [
    Slot::Query,
    Slot::Key,
    Slot::Values,
    Slot::Slope,
    Slot::Distance,
    Slot::QueryDistance,
    Slot::Decay,
    Slot::DecayResidual,
    Slot::ContextualGateKeys,
    Slot::ContextualVectors,
    Slot::ContextualHidden,
    Slot::ContextualSlopes,
    Slot::Dense,
];

/// Returns the buffer of an operand. For an absent operand it is a dummy that no kernel reads.
fn buffer(operands: &Operands<Cube>, slot: Slot) -> CubeTensor {
    let slot = if present(&operands[slot]) { slot } else { Slot::Query };
    operands[slot].clone()
}

/// Returns the positions of the columns relative to the first one, `[S]`. For contiguous positions it is a dummy that no
/// kernel reads.
fn positions(operands: &Operands<Cube>, spec: &Spec) -> CubeTensor {
    let query = &operands[Slot::Query];
    if spec.contiguous {
        return query.clone();
    }
    let positions =
        (0..spec.columns.len()).map(|at| spec.relative_position(at)).collect::<Vec<_>>();
    let handle = query.client.create_from_slice(f32::as_bytes(&positions));
    CubeTensor::new_contiguous(
        query.client.clone(),
        query.device.clone(),
        Shape::from([positions.len()]),
        handle,
        DType::F32,
    )
}

/// Returns the buffers that the kernels read, in the order of [`Inputs`](super::inputs::Inputs).
#[cfg(all(test, feature = "cores-sim"))]
pub(super) fn buffers(operands: &Operands<Cube>, spec: &Spec) -> Vec<CubeTensor> {
    let read = READ.into_iter().map(|slot| buffer(operands, slot));
    read.chain([positions(operands, spec)]).collect()
}

/// Numbers of [`PlaneRows`](super::inputs::PlaneRows) of the operands, in the order of [`Inputs`](super::inputs::Inputs).
#[cfg(all(test, feature = "cores-sim"))]
pub(super) fn beside(operands: &Operands<Cube>) -> [usize; 4] {
    HEADS.map(|slot| heads::beside(&buffer(operands, slot)))
}

/// Argument of a [`dense`](heads::dense) tensor.
pub(super) fn plane_rows(tensor: CubeTensor) -> PlaneRowsLaunch {
    let beside = heads::beside(&tensor);
    PlaneRowsLaunch::new(tensor.into_buffer_arg(), beside)
}

pub(super) fn inputs(operands: &Operands<Cube>, spec: &Spec) -> InputsLaunch {
    let [q, k, values, gates] = HEADS.map(|slot| plane_rows(buffer(operands, slot)));
    let [_, _, _, slopes, distance, query, decay, residual, _, table, hidden, rates, dense] =
        READ.map(|slot| buffer(operands, slot).into_buffer_arg());
    let positions = positions(operands, spec).into_buffer_arg();
    InputsLaunch::new(
        q, k, values, slopes, distance, query, decay, residual, gates, table, hidden, rates, dense,
        positions,
    )
}

/// Returns the values of [`LaunchSizes`](super::inputs::LaunchSizes) in its order: sizes, then
/// factors.
pub(super) fn numbers(operands: &Operands<Cube>, spec: &Spec) -> ([usize; 6], [f32; 3]) {
    let Sizes { heads, rows, columns, .. } = operands.sizes();
    let (distance, query) =
        (last_axis(&operands[Slot::Distance]), last_axis(&operands[Slot::QueryDistance]));
    let contextual = spec.contextual;
    let gate_scale = contextual.map_or(1.0, |contextual| contextual.gate_scale);
    let max = contextual.map_or(0.0, |contextual| contextual.max_position.min(ENDLESS));
    (
        [heads, rows, columns, spec.first_row, distance, query],
        [spec.content_scale.unwrap_or(1.0), gate_scale, max],
    )
}

pub(super) fn place(operands: &Operands<Cube>, spec: &Spec) -> LaunchSizesLaunch {
    let ([heads, rows, columns, first_row, distance, query], [content_scale, gate_scale, max]) =
        numbers(operands, spec);
    LaunchSizesLaunch::new(
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
