//! Conversions between Flex tensors and slices.

use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Shape};

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
