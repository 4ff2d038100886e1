//! Where a cube begins, how far it walks, and where it writes.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{ACROSS, AlongRow, MmaConfig, PADDED, ROWS};
use super::inputs::MmaSizes;
use super::tile::{Results, SumPair};

/// Where a cube is in its walk.
#[derive(CubeType, Clone, Copy)]
pub(super) struct CubeWalk {
    pub(super) plane: usize,
    /// First row, or key, that the cube owns.
    pub(super) first: usize,
    /// The same among all padded rows, or keys, of all planes.
    pub(super) packed: usize,
    /// Index of the cube's first row, or key, among the columns.
    pub(super) own: usize,
    /// First row of this unit's plane in the cube.
    pub(super) of_plane: usize,
    /// First of what the cube walks over, of all padded columns, or rows, of all planes.
    pub(super) begin: usize,
}

#[cube]
impl CubeWalk {
    /// Walk of a cube that owns rows. The last rows see the most columns and take longest, so they start first.
    pub(super) fn over_columns(place: &MmaSizes, #[comptime] config: MmaConfig) -> CubeWalk {
        let owned = comptime![config.owned()];
        let plane = CUBE_POS_Y as usize;
        let first = ((place.rows - 1) / owned - CUBE_POS_X as usize) * owned;
        CubeWalk {
            plane,
            first,
            packed: plane * padded_rows(place) + first,
            own: place.first_row + first,
            of_plane: first_of_plane(config),
            begin: plane * padded_columns(place),
        }
    }

    /// Walk of a cube that owns keys.
    pub(super) fn over_rows(place: &MmaSizes, #[comptime] config: MmaConfig) -> CubeWalk {
        let owned = comptime![config.owned()];
        let plane = CUBE_POS_Y as usize;
        let first = CUBE_POS_X as usize * owned;
        CubeWalk {
            plane,
            first,
            packed: plane * padded_columns(place) + first,
            own: first,
            of_plane: first_of_plane(config),
            begin: plane * padded_rows(place),
        }
    }

    /// Number of blocks of columns that a row of the cube sees.
    pub(super) fn seen_blocks(
        &self,
        place: &MmaSizes,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) -> usize {
        min(self.own + comptime![config.owned() - 1], place.columns - 1) / columns + 1
    }

    /// Largest number of blocks of columns on the left that all rows of the cube see, and whose columns are at the last
    /// distance of a table.
    pub(super) fn most_far(
        &self,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) -> usize {
        if comptime![config.all_near()] {
            0usize.runtime()
        } else if comptime![config.along == AlongRow::QueryDistance] {
            (max(self.own + 2, config.entries) - config.entries) / columns
        } else {
            (self.own + 1) / columns
        }
    }

    /// First block of rows of which one sees the cube's first key.
    pub(super) fn first_rows(&self, place: &MmaSizes, #[comptime] rows: usize) -> usize {
        (max(self.own, place.first_row) - place.first_row) / rows
    }
}

/// First row of this unit's plane in its cube.
#[cube]
pub(super) fn first_of_plane(#[comptime] config: MmaConfig) -> usize {
    UNIT_POS as usize / 32 * comptime![ROWS * config.row_groups]
}

/// Number of rows of a plane in packed tensors.
#[cube]
pub(super) fn padded_rows(place: &MmaSizes) -> usize {
    place.rows.div_ceil(PADDED) * PADDED
}

/// Number of columns of a plane in packed tensors.
#[cube]
pub(super) fn padded_columns(place: &MmaSizes) -> usize {
    place.columns.div_ceil(PADDED) * PADDED
}

/// Whether the row `8 eight` after `row` is less than `len`. It takes no register for each of a unit's rows while the cube
/// walks, as the comparison of their indices would.
#[cube]
pub(super) fn exists(row: usize, len: usize, #[comptime] eight: usize) -> bool {
    i32::cast_from(len) - i32::cast_from(row) > comptime![eight as i32 * 8]
}

/// Writes results times a factor to the rows of `out`, `[B, T, H, width]`, that this plane owns, of which each unit has
/// `unit_rows`; rows from `len` on are left out.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the results, and where they belong")]
pub(super) fn write_rows(
    results: &Results,
    out: &mut Box<[SumPair]>,
    heads: usize,
    len: usize,
    walk: &CubeWalk,
    factors: &Array<f32>,
    #[comptime] unit_rows: usize,
    #[comptime] width: usize,
) {
    let lane = UNIT_POS_PLANE as usize;
    let row = walk.first + walk.of_plane + lane / 4;
    let first_line = (walk.plane / heads * len + row) * heads + walk.plane % heads;
    #[unroll]
    for eight in 0..unit_rows {
        if exists(row, len, eight) {
            let line = first_line + eight * 8 * heads;
            let factor = SumPair::new(factors[eight]);
            #[unroll]
            for n in 0..comptime![width / ACROSS] {
                out[line * comptime![width / 2] + n * 4 + lane % 4] =
                    results.index(n)[eight] * factor;
            }
        }
    }
}
