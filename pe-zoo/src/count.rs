//! Thread-local counters of multiply-accumulates, against which cost formulas are tested.

use std::cell::Cell;

use burn::tensor::Tensor;

use crate::kernels;

thread_local! {
    static MACS: Cell<u64> = const { Cell::new(0) };
}

/// Runs `work` and counts the multiply-accumulates of its [`CountedMatmul`] products and of
/// [`ops::linear`](crate::ops::linear) on this thread.
pub fn macs_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = MACS.get();
    let value = work();
    (value, MACS.get() - before)
}

/// Adds multiply-accumulates of an operation other than [`CountedMatmul`] to the counter.
pub(crate) fn count(macs: usize) {
    MACS.set(MACS.get() + macs as u64);
}

/// Matrix product that counts its multiply-accumulates, for encodings and the reference engine.
pub trait CountedMatmul {
    /// Multiplies `[.., M, K] x [.., K, N] -> [.., M, N]`; leading axes of length 1 are repeated.
    #[must_use]
    fn counted_matmul(self, other: Self) -> Self;
}

impl<const D: usize> CountedMatmul for Tensor<D> {
    fn counted_matmul(self, other: Self) -> Self {
        let shape = other.dims();
        let columns = shape.last().copied().unwrap_or(1);
        let inner = self.dims().last().copied().unwrap_or(1);
        let product = kernels::product(self, other);
        let rows = product.dims().iter().product::<usize>() / columns.max(1);
        count(rows * columns * inner);
        product
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn repeated_axes_count_as_often_as_they_are_multiplied() {
        let device = Device::flex();
        let a = Tensor::<3>::ones([5, 2, 3], &device);
        let b = Tensor::<3>::ones([1, 3, 4], &device);
        let (product, macs) = macs_of(|| a.clone().counted_matmul(b.clone()));
        assert_eq!((product.dims(), macs), ([5, 2, 4], 5 * 2 * 3 * 4));
        assert_eq!(macs_of(|| a.matmul(b)).1, 0);
    }
}
