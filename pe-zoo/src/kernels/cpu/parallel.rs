//! Parallel execution of work in pieces, with the widest SIMD instructions of the machine.

use rayon::prelude::*;

use crate::math::simd;

/// Number of elements of a piece of work: 128 KiB of f32, so that a loop finds in the cache what the
/// previous loop wrote, and small tensors have work for several threads.
const PIECE: usize = 1 << 15;

/// Number of elements of a piece whose rows are added up: the sums of pieces are added on one thread.
const SUMMED_PIECE: usize = 1 << 17;

/// Runs `work` on all pieces in parallel, each by the next free thread; `work` must be `#[inline(always)]` for its loops to be
/// vectorised.
pub(crate) fn in_pieces<T: Send>(
    pieces: impl IndexedParallelIterator<Item = T>,
    work: impl Fn(T) + Sync,
) {
    pieces.with_max_len(1).for_each(|piece| {
        simd::dispatch(
            #[inline(always)]
            || work(piece),
        );
    });
}

/// Adds up the sums of all pieces, `width` numbers each, in their order.
pub(crate) fn total(pieces: &[f32], width: usize) -> Vec<f32> {
    let mut total = vec![0.0; width];
    for piece in pieces.chunks(width) {
        for (total, value) in total.iter_mut().zip(piece) {
            *total += value;
        }
    }
    total
}

/// Number of rows of `width` elements in a piece.
pub(crate) fn rows_of_piece(width: usize) -> usize {
    (PIECE / width.max(1)).max(1)
}

/// Number of rows of `width` elements in a piece whose rows are added up. It does not depend on the
/// number of threads, and so neither do the sums.
pub(crate) fn rows_of_sum(width: usize) -> usize {
    (SUMMED_PIECE / width.max(1)).max(1)
}
