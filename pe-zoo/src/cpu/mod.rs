//! What the kernels for the CPU share: SIMD arithmetic, matrices, and work in parallel.

pub(crate) mod lanes;
pub(crate) mod view;

use burn::backend::flex::{FlexTensor, Layout};
use burn::tensor::{Bytes, DType, Shape};
use rayon::prelude::*;

/// Elements of a piece of work: half a megabyte, so that what one loop wrote the next still finds in
/// the cache. Pieces do not depend on the number of threads, and neither do results.
const PIECE: usize = 1 << 17;

/// Runs a closure with the widest instructions that this machine has.
pub(crate) struct Run<F>(pub(crate) F);

impl<F: FnOnce()> pulp::WithSimd for Run<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        (self.0)();
    }
}

/// Runs `work` on piece after piece, in parallel; `work` must be inlined to become SIMD.
pub(crate) fn in_pieces<T: Send>(
    pieces: impl IndexedParallelIterator<Item = T>,
    work: impl Fn(T) + Sync,
) {
    pieces.for_each(|piece| pulp::Arch::new().dispatch(Run(|| work(piece))));
}

/// Rows of `width` that make a piece.
pub(crate) fn rows_of_piece(width: usize) -> usize {
    (PIECE / width.max(1)).max(1)
}

/// The numbers of a tensor, one row after the other; copies if they lie otherwise.
pub(crate) fn dense(tensor: FlexTensor) -> FlexTensor {
    match tensor.layout().contiguous_offsets() {
        Some(_) => tensor,
        None => tensor.to_contiguous(),
    }
}

/// A tensor whose storage is exactly its numbers, in order; copies if it holds more, or other orders.
pub(crate) fn whole(tensor: FlexTensor) -> FlexTensor {
    let layout = tensor.layout();
    let exact = layout.contiguous_offsets() == Some((0, layout.num_elements()))
        && tensor.storage::<f32>().len() == layout.num_elements();
    if exact { tensor } else { tensor.to_contiguous() }
}

/// The numbers of a tensor that [`dense`] returned.
pub(crate) fn numbers(tensor: &FlexTensor) -> &[f32] {
    let layout = tensor.layout();
    let start = layout.start_offset();
    &tensor.storage::<f32>()[start..start + layout.num_elements()]
}

/// A tensor of numbers that lie one row after the other.
pub(crate) fn contiguous(data: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(data), Layout::contiguous(shape), DType::F32)
}
