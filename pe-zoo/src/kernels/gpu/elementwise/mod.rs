//! Operations of models on GPUs, one pass over their tensors each, with explicit gradients. Every sum has one order, so that two
//! runs give the same bits.
//!
//! | Module | Operation |
//! | --- | --- |
//! | `gelu`, `relu`, `gated` | activations |
//! | `norm` | layer and root mean square normalisation |
//! | `cross_entropy` | negative log-likelihood of a label |
//! | `rotate` | rotation of channel pairs |
//! | `rows` | selection of rows, such as the embedding of tokens |
//! | `adamw` | one step of the optimizer |
//! | `running_sum` | sums of all numbers of a row up to each |
//! | `sums` | sums over the units of a cube, and over rows |

mod adamw;
mod cross_entropy;
pub(super) mod gated;
pub(super) mod gelu;
mod norm;
pub(super) mod relu;
mod rotate;
mod rows;
mod running_sum;
pub(super) mod sums;

use burn::backend::{DispatchDevice, DispatchTensor, DispatchTensorKind, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::cubecl::calculate_cube_count_elemwise;
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

pub(crate) use adamw::{AdamWFactors, AdamWQueue, AdamWTensors};
pub(crate) use cross_entropy::cross_entropy;
pub(crate) use gated::gated;
pub(crate) use gelu::gelu;
pub(crate) use norm::norm;
pub(crate) use rotate::rotate;
pub(crate) use rows::select_rows;
pub(crate) use running_sum::{has_running_sums, lost_of_running_sums, running_sums};

/// Whether the operations support a tensor: f32 on a GPU, with less than 2^32 numbers, as the kernels count in 32 bits.
pub(crate) fn supports<const D: usize>(x: &Tensor<D>) -> bool {
    let elements = x.shape().num_elements();
    x.dtype() == DType::F32
        && (1..u32::MAX as usize).contains(&elements)
        && matches!(x.device().inner().as_dispatch(), DispatchDevice::Cube(_))
}

/// Integers of a GPU behind a tensor of any device.
fn integers(tensor: DispatchTensor) -> CubeTensor {
    let mut kind = tensor.kind;
    while let DispatchTensorKind::Autodiff(inner) = kind {
        kind = *inner;
    }
    match kind {
        DispatchTensorKind::Cube(tensor) => tensor.int(),
        other => unreachable!("integers of {:?} with numbers on a GPU", other.device()),
    }
}

fn empty(like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    empty_of(like, shape, DType::F32)
}

fn empty_of(like: &CubeTensor, shape: impl Into<Shape>, dtype: DType) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    empty_device_contiguous_dtype(client, device, shape.into(), dtype)
}

fn last_axis(tensor: &CubeTensor) -> usize {
    let shape = tensor.meta.shape();
    shape[shape.num_dims() - 1]
}

/// Units of a cube that computes elements.
const UNITS: u32 = 256;

/// Numbers that a unit reads and writes at once, 16 bytes, of tensors whose rows have this width.
fn together(width: usize, dtype: DType) -> VectorSize {
    let most = 16 / dtype.size();
    if width.is_multiple_of(most) { most } else { 1 }
}

/// Cubes for so many units, each of which computes an element.
pub(super) fn cubes_of_units(client: &Client, units: usize) -> (CubeCount, CubeDim) {
    let dim = CubeDim::new_1d(UNITS);
    (calculate_cube_count_elemwise(client, units, dim), dim)
}

/// So many cubes and perhaps more, with `units` units each. A device limits their number along each axis.
fn cubes(client: &Client, cubes: usize, units: usize) -> (CubeCount, CubeDim) {
    let count = calculate_cube_count_elemwise(client, cubes, CubeDim::new_1d(1));
    (count, CubeDim::new_1d(units as u32))
}

/// Units of a cube that computes a row of this width, four numbers each.
fn units_of_row(width: usize) -> usize {
    width.div_ceil(4).next_power_of_two().clamp(32, UNITS as usize)
}
