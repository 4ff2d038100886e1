//! Tensors and grids of launches.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, FloatDType, Shape};
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

use super::config::UNITS;
use super::pack::StridedLaunch;
use crate::kernels::gpu::heads::rows_of;

pub(super) fn empty(like: &CubeTensor, shape: &[usize], dtype: DType) -> CubeTensor {
    let shape = Shape::from(shape.to_vec());
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

/// Tensor whose rows are whole and aligned, in row-major order if they are not.
pub(super) fn whole_rows(tensor: &CubeTensor) -> CubeTensor {
    if rows_of(tensor, 8) { tensor.clone() } else { into_contiguous(tensor.clone()) }
}

pub(super) fn strided(tensor: &CubeTensor) -> StridedLaunch {
    let (shape, strides) = (tensor.meta.shape(), tensor.meta.strides());
    let eights = [0, 1, 2].map(|axis| strides[axis] / 8);
    let (heads, rows) = (shape[1], shape[2]);
    let numbers = tensor.clone().into_buffer_arg();
    StridedLaunch::new(numbers, heads, rows, eights[0], eights[1], eights[2])
}

/// Number of cubes and units of a kernel.
pub(super) struct LaunchGrid {
    pub(super) count: CubeCount,
    pub(super) dim: CubeDim,
}

pub(super) fn grid(blocks: usize, planes: usize) -> LaunchGrid {
    LaunchGrid {
        count: CubeCount::Static(blocks as u32, planes as u32, 1),
        dim: CubeDim::new_1d(UNITS as u32),
    }
}

/// Adds the gradients that tokens have as rows to those that they have as columns; tokens are the third axis.
pub(super) fn of_tokens(rows: CubeTensor, columns: CubeTensor, first_row: usize) -> CubeTensor {
    if first_row == 0 {
        return Cube::float_add(columns, rows);
    }
    let mut before = columns.meta.shape().clone();
    before[2] = first_row;
    let before = Cube::float_zeros(before, &columns.device, FloatDType::F32);
    Cube::float_add(columns, Cube::float_cat(vec![before, rows], 2))
}
