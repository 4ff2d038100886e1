//! Launch of products without rounding.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::DType;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::exact::{ExactFactorLaunch, ExactForm, SIDE, exact_kernel};
use super::kernel::ProductSizesLaunch;
use super::{has_products, slices};
use crate::kernels::gpu::elementwise::sums::sum_of_rows;
use crate::kernels::gpu::mma::config::UNITS;
use crate::kernels::gpu::mma::tensors::empty;

/// Most blocks of rows of a launch.
const MOST_BLOCKS: usize = u16::MAX as usize;

/// Matrices of f32 in memory.
struct ExactMatrices {
    tensor: CubeTensor,
    row_stride: usize,
    matrix_stride: usize,
    form: ExactForm,
}

impl ExactMatrices {
    /// Matrices of the last two axes, which are copied if they have no rows in memory. With `inner_is_last` sums
    /// are over the last axis, otherwise over the one before.
    fn new(tensor: CubeTensor, inner_is_last: bool) -> Self {
        match Self::in_place(&tensor, inner_is_last) {
            Some(matrices) => matrices,
            None => {
                let copied = into_contiguous(tensor);
                Self::in_place(&copied, inner_is_last).expect("rows of a contiguous tensor")
            }
        }
    }

    fn in_place(tensor: &CubeTensor, inner_is_last: bool) -> Option<Self> {
        let (shape, strides) = (tensor.meta.shape(), tensor.meta.strides());
        let axes = shape.num_dims();
        let (lines, last) = (axes - 2, axes - 1);
        let (row_axis, number_axis) = match (strides[last], strides[lines]) {
            (1, _) => (lines, last),
            (_, 1) => (last, lines),
            _ => return None,
        };
        // One stride leads from each matrix to the next.
        let matrix_stride = if lines == 0 { 0 } else { strides[lines - 1] };
        let mut step = matrix_stride;
        for axis in (0..lines).rev() {
            if shape[axis] != 1 && strides[axis] != step {
                return None;
            }
            step *= shape[axis];
        }
        let row_stride = strides[row_axis];
        let fours = [row_stride, matrix_stride, shape[number_axis]].iter().all(|n| n % 4 == 0);
        let form = ExactForm { inner_is_contiguous: (number_axis == last) == inner_is_last, fours };
        Some(Self { tensor: tensor.clone(), row_stride, matrix_stride, form })
    }

    fn arg(&self) -> ExactFactorLaunch {
        let (shape, strides) = (self.tensor.meta.shape(), self.tensor.meta.strides());
        let axes = shape.iter().zip(strides.iter());
        let reach = axes.map(|(len, stride)| len.saturating_sub(1) * stride).sum::<usize>() + 1;
        // SAFETY: the handle is that of the tensor; the kernel reads only what the strides reach.
        let numbers = unsafe { BufferArg::from_raw_parts(self.tensor.handle.clone(), reach) };
        ExactFactorLaunch::new(numbers, self.row_stride, self.matrix_stride)
    }
}

/// Multiplies `[.., M, K] x [.., K, N] -> [.., M, N]` of f32, with equal leading axes and at least one number each, if the
/// device has the tensor instructions.
pub(in crate::kernels::gpu) fn exact_product(
    left: &CubeTensor,
    right: &CubeTensor,
) -> Option<CubeTensor> {
    let mut shape = left.meta.shape().clone();
    let last = shape.num_dims() - 1;
    let (rows, inner) = (shape[last - 1], shape[last]);
    if !has_products(&left.client) || rows.div_ceil(SIDE) > MOST_BLOCKS {
        return None;
    }
    let columns = right.meta.shape()[last];
    shape[last] = columns;
    let matrices = shape.num_elements() / (rows * columns);
    let left = ExactMatrices::new(left.clone(), true);
    let right = ExactMatrices::new(right.clone(), false);
    let blocks = [columns.div_ceil(SIDE), rows.div_ceil(SIDE)];
    let slices = slices(inner, blocks[0] * blocks[1] * matrices);
    let out = empty(&left.tensor, &[slices, shape.num_elements()], DType::F32);
    // SAFETY: cubes cover the results, and the kernel tests its indices.
    unsafe {
        exact_kernel::launch_unchecked(
            &left.tensor.client,
            CubeCount::Static((slices * matrices * blocks[0]) as u32, blocks[1] as u32, 1),
            CubeDim::new_1d(UNITS as u32),
            left.arg(),
            right.arg(),
            out.clone().into_buffer_arg(),
            ProductSizesLaunch::new(rows, columns, inner),
            matrices,
            inner / slices,
            left.form,
            right.form,
        );
    }
    let sum = if slices == 1 { out } else { sum_of_rows(out, slices, shape.num_elements()) };
    Some(Cube::float_reshape(sum, shape))
}
