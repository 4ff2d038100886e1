//! Tensors of heads, `[B, H, T, D]`, in memory. Projections have the order `[B, T, H, D]`, and so have results, so that nothing is
//! copied between them.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Shape};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

/// Tensor of the shape `[B, H, T, D]` in memory `[B, T, H, D]`.
pub(super) fn by_token(like: &CubeTensor, [batch, heads, tokens, dim]: [usize; 4]) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    let shape = Shape::from([batch, tokens, heads, dim]);
    Cube::float_swap_dims(empty_device_contiguous_dtype(client, device, shape, DType::F32), 1, 2)
}

/// Number of heads whose rows are side by side in a [`dense`] tensor: all of them in memory `[B, T, H, D]`, 1 in that of the
/// shape.
pub(super) fn beside(tensor: &CubeTensor) -> usize {
    if tensor.is_contiguous() { 1 } else { tensor.meta.shape()[1] }
}

/// The tensor in one of these two orders, without gaps.
pub(super) fn dense(tensor: CubeTensor) -> CubeTensor {
    let is_by_token = Cube::float_swap_dims(tensor.clone(), 1, 2).is_contiguous();
    if is_by_token { tensor } else { into_contiguous(tensor) }
}

/// Whether each row, `[D]`, lies in one piece, at a multiple of so many numbers.
pub(super) fn rows_of(tensor: &CubeTensor, numbers: usize) -> bool {
    let strides = tensor.meta.strides();
    strides[3] == 1 && strides[..3].iter().all(|stride| stride.is_multiple_of(numbers))
}
