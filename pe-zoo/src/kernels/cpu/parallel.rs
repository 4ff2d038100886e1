//! Parallel execution of work in pieces, with the widest SIMD instructions of the machine.

use rayon::prelude::*;

use crate::math::simd;

/// Number of elements of a piece of work: half a megabyte of f32, so that a loop finds in the cache
/// what the previous loop wrote. Pieces, and so results, do not depend on the number of threads.
const PIECE: usize = 1 << 17;

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

/// Number of rows of `width` elements in a piece.
pub(crate) fn rows_of_piece(width: usize) -> usize {
    (PIECE / width.max(1)).max(1)
}
