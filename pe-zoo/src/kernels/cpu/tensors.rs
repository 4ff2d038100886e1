//! Conversions between Flex tensors and slices.

use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Shape};

use super::view::{self, Matrix};

/// Returns the tensor with contiguous elements in row-major order; copies if necessary.
pub(crate) fn dense(tensor: FlexTensor) -> FlexTensor {
    match tensor.layout().contiguous_offsets() {
        Some(_) => tensor,
        None => tensor.to_contiguous(),
    }
}

/// Returns the tensor with a storage of exactly its elements in row-major order; copies if
/// necessary.
pub(crate) fn whole(tensor: FlexTensor) -> FlexTensor {
    let layout = tensor.layout();
    let exact = layout.contiguous_offsets() == Some((0, layout.num_elements()))
        && tensor.storage::<f32>().len() == layout.num_elements();
    if exact { tensor } else { tensor.to_contiguous() }
}

/// Borrows the elements of a tensor that [`dense`] returned.
pub(crate) fn numbers(tensor: &FlexTensor) -> &[f32] {
    let layout = tensor.layout();
    let start = layout.start_offset();
    &tensor.storage::<f32>()[start..start + layout.num_elements()]
}

/// Creates a tensor from elements in row-major order.
pub(crate) fn contiguous(data: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(data), Layout::contiguous(shape), DType::F32)
}

/// Number of elements along the last axis.
pub(crate) fn last_axis(tensor: &FlexTensor) -> usize {
    tensor.layout().shape().last().copied().unwrap_or(1)
}

/// Returns the shape of `like` with another last axis.
pub(crate) fn with_last_axis(like: &FlexTensor, width: usize) -> Shape {
    let shape = like.layout().shape();
    let leading = (0..shape.num_dims() - 1).map(|axis| shape[axis]);
    Shape::from(leading.chain([width]).collect::<Vec<_>>())
}

/// Shape of a tensor of four axes.
pub(crate) fn dims(tensor: &FlexTensor) -> [usize; 4] {
    let shape = tensor.layout().shape();
    [shape[0], shape[1], shape[2], shape[3]]
}

/// Returns the tensor without negative strides; copies if necessary.
pub(crate) fn forward_strides(tensor: FlexTensor) -> FlexTensor {
    let forward = tensor.layout().strides().iter().all(|stride| *stride >= 0);
    if forward { tensor } else { tensor.to_contiguous() }
}

/// Returns the tensor of four axes with adjacent elements along the last axis and no negative strides; copies if necessary.
pub(crate) fn in_order(tensor: FlexTensor) -> FlexTensor {
    if tensor.layout().strides()[3] == 1 { forward_strides(tensor) } else { tensor.to_contiguous() }
}

/// Creates a tensor `[B, H, T, D]` from numbers in the order `[B, T, H, D]`, like the output of a projection.
pub(crate) fn in_token_order(numbers: Vec<f32>, dims: [usize; 4]) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(numbers), token_layout(dims), DType::F32)
}

/// Layout of `[B, H, T, D]` in the order `[B, T, H, D]`.
pub(crate) fn token_layout([batch, heads, tokens, width]: [usize; 4]) -> Layout {
    let strides = [tokens * heads * width, width, heads * width, 1].map(|stride| stride as isize);
    Layout::new(Shape::from([batch, heads, tokens, width]), strides.to_vec(), 0)
}

/// Views two axes of a tensor as a matrix, from an offset; an axis that the tensor does not have has length 1.
pub(crate) fn matrix(
    tensor: &FlexTensor,
    offset: usize,
    rows: usize,
    columns: usize,
) -> Matrix<'_> {
    let layout = tensor.layout();
    let shape = layout.shape();
    let dims = shape.num_dims();
    let stride = |axis: usize| if axis < dims { layout.strides()[axis].unsigned_abs() } else { 0 };
    let size = |axis: usize| if axis < dims { shape[axis] } else { 1 };
    let data = &tensor.storage::<f32>()[layout.start_offset() + offset..];
    let shape = view::Shape {
        rows: size(rows),
        columns: size(columns),
        row_stride: stride(rows),
        column_stride: stride(columns),
    };
    Matrix::new(data, shape)
}
