//! Where a pair of columns is.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// Where two adjacent columns of a row are.
#[derive(CubeType, Clone, Copy)]
pub(super) struct PairPlace {
    pub(super) plane: usize,
    /// Row in the cube.
    pub(super) row: usize,
    /// Index of the row among the columns.
    pub(super) own: usize,
    /// Index of the first of the two columns.
    pub(super) column: usize,
}

/// Place of this lane's columns `8 n + 2 (lane % 4)` and the next in one of its two rows. `own` is the index of the cube's
/// first row, `column` that of the block's first column.
#[cube]
pub(super) fn pair_place(
    plane: usize,
    of_plane: usize,
    own: usize,
    column: usize,
    #[comptime] n: usize,
    #[comptime] eight: usize,
) -> PairPlace {
    let lane = UNIT_POS_PLANE as usize;
    let row = of_plane + lane / 4 + comptime![eight * 8];
    PairPlace { plane, row, own: own + row, column: column + lane % 4 * 2 + comptime![n * 8] }
}
