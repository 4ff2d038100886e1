//! Work in parallel pieces, each with the widest instructions of this machine.

use rayon::prelude::*;

use crate::math::simd;

/// Elements of a piece of work: half a megabyte, so that a loop finds in the cache what the loop
/// before it wrote. Pieces do not depend on the number of threads, and neither do results.
const PIECE: usize = 1 << 17;

/// Runs `work` on all pieces in parallel; `work` must be `#[inline(always)]` to become SIMD.
pub(crate) fn in_pieces<T: Send>(
    pieces: impl IndexedParallelIterator<Item = T>,
    work: impl Fn(T) + Sync,
) {
    pieces.for_each(|piece| {
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
