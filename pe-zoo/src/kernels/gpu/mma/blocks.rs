//! Blocks that a kernel walks over: two of each factor, that of the current step and the next one, which is read into
//! registers while the current one is computed.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{OWNED, STEP, UNITS};
use super::tile::{self, LeftFactors, Piece, Results, left_factor};

/// Rows of a tensor in shared memory, one block or two, and this unit's pieces of the next block.
#[derive(CubeType)]
pub(super) struct Blocks {
    pub(super) tile: Shared<[Piece]>,
    pub(super) next: Array<Piece>,
}

#[cube]
impl Blocks {
    pub(super) fn new(
        #[comptime] stages: usize,
        #[comptime] rows: usize,
        #[comptime] width: usize,
    ) -> Blocks {
        Blocks {
            tile: Shared::new_slice(comptime![stages * rows * width / 8]),
            next: Array::new(comptime![rows * width / 8 / UNITS]),
        }
    }

    /// Reads the block whose first row is `row` of all rows of all planes.
    pub(super) fn fetch(
        &mut self,
        from: &Box<[Piece]>,
        row: usize,
        #[comptime] rows: usize,
        #[comptime] width: usize,
    ) {
        tile::fetch(from, row * comptime![width / 8], &mut self.next, rows, width);
    }

    /// Writes the block that [`fetch`](Self::fetch) has read to shared memory, for the given stage.
    pub(super) fn store(
        &mut self,
        stage: usize,
        #[comptime] rows: usize,
        #[comptime] width: usize,
    ) {
        let begin = stage * comptime![rows * width / 8];
        tile::store(&self.next, &mut self.tile, begin, rows, width);
    }
}

/// Rows that a plane owns, as left factors.
#[derive(CubeType)]
pub(super) struct OwnedRows {
    blocks: Blocks,
    factors: LeftFactors,
}

#[cube]
impl OwnedRows {
    pub(super) fn new(#[comptime] width: usize) -> OwnedRows {
        OwnedRows { blocks: Blocks::new(1usize, OWNED, width), factors: LeftFactors::new() }
    }

    /// Copies the rows of a cube from `row` of all rows of all planes on to shared memory. A barrier must follow, and
    /// then [`begin`](Self::begin).
    pub(super) fn load(&mut self, from: &Box<[Piece]>, row: usize, #[comptime] width: usize) {
        self.blocks.fetch(from, row, OWNED, width);
        self.blocks.store(0usize, OWNED, width);
    }

    /// Reads the factors of the 16 rows from `first_row` on into registers, if they stay there.
    pub(super) fn begin(
        &mut self,
        first_row: usize,
        #[comptime] resident: bool,
        #[comptime] width: usize,
    ) {
        if comptime![resident] {
            #[unroll]
            for step in 0..comptime![width / STEP] {
                self.factors.push(left_factor(&self.blocks.tile, first_row, step, width));
            }
        }
    }

    /// Adds the products of the 16 rows from `first_row` on with the rows of a stage of blocks.
    #[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
    pub(super) fn add_dots(
        &self,
        first_row: usize,
        right: &Shared<[Piece]>,
        stage: usize,
        results: &mut Results,
        #[comptime] resident: bool,
        #[comptime] columns: usize,
        #[comptime] width: usize,
    ) {
        let begin = stage * comptime![columns * width / 8];
        #[unroll]
        for step in 0..comptime![width / STEP] {
            if comptime![resident] {
                let left = self.factors.index(step);
                tile::add_dot(left, right, begin, results, step, columns, width);
            } else {
                let left = left_factor(&self.blocks.tile, first_row, step, width);
                tile::add_dot(&left, right, begin, results, step, columns, width);
            }
        }
    }
}
