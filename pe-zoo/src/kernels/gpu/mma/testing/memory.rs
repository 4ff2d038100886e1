//! Buffers of the simulated kernels.

use crate::kernels::gpu::mma::config::UNITS;

/// Units of a cube.
pub(super) const BLOCK: [usize; 2] = [UNITS, 1];

/// Memory order of a tensor `[B, H, rows, dim]`.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// As the shape.
    ByHead,
    /// `[B, rows, H, dim]`.
    ByToken,
}

/// Strides in eight numbers.
pub(super) fn strides(order: Order, heads: usize, rows: usize, dim: usize) -> [usize; 3] {
    match order {
        Order::ByHead => [heads * rows * dim / 8, rows * dim / 8, dim / 8],
        Order::ByToken => [rows * heads * dim / 8, dim / 8, heads * dim / 8],
    }
}

/// Converts between the two orders; `shape` is that of `from`.
pub(super) fn swapped(from: &[f32], shape: [usize; 4]) -> Vec<f32> {
    let [batch, outer, inner, dim] = shape;
    let mut to = vec![0.0; from.len()];
    for (line, numbers) in from.chunks(dim).enumerate() {
        let (b, i, j) = (line / (outer * inner), line / inner % outer, line % inner);
        to[((b * inner + j) * outer + i) * dim..][..dim].copy_from_slice(numbers);
    }
    debug_assert_eq!(from.len(), batch * outer * inner * dim);
    to
}

/// A buffer whose numbers nobody has written.
pub(super) fn unwritten(len: usize) -> Vec<f32> {
    vec![f32::NAN; len]
}
