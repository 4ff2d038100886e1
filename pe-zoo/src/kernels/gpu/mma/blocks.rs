//! Blocks that a kernel walks over: two of each factor, that of the current step and the next one, which is read while the
//! current one is computed.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{Channels, STEP, UNITS, WIDTH};
use super::copies::Transfer;
use super::tile::{self, LeftFactors, Piece, Results, add_mix_step, left_factors, mix_factors};
use super::warpgroup::{self, ALIGNMENT};

/// Rows of a tensor in shared memory, one block or two. The next block, with copies, is copied to its stage while
/// the current one is computed; otherwise this unit's pieces of it lie in registers for a while.
#[derive(CubeType)]
pub(super) struct Blocks {
    pub(super) tile: Shared<[Piece]>,
    pub(super) next: Array<Piece>,
    #[cube(comptime)]
    rows: usize,
    #[cube(comptime)]
    width: usize,
    #[cube(comptime)]
    transfer: Transfer,
}

#[cube]
impl Blocks {
    pub(super) fn new(
        #[comptime] stages: usize,
        #[comptime] rows: usize,
        #[comptime] width: usize,
        #[comptime] transfer: Transfer,
    ) -> Blocks {
        let copies = comptime![transfer.copies];
        Blocks {
            tile: Shared::new_aligned_slice(comptime![stages * rows * width / 8], ALIGNMENT),
            next: Array::new(comptime![if copies { 1 } else { rows * width / 8 / UNITS }]),
            rows,
            width,
            transfer,
        }
    }

    /// Begins to read the block whose first row is `row` of all rows of all planes, for the given stage, which nobody reads
    /// any more.
    pub(super) fn fetch(&mut self, from: &Box<[Piece]>, row: usize, stage: usize) {
        let (rows, width) = comptime![(self.rows, self.width)];
        let first = row * comptime![width / 8];
        if comptime![self.transfer.warpgroups] {
            let begin = stage * comptime![rows * width / 8];
            warpgroup::copy(from, first, &mut self.tile, begin, rows, width);
        } else if comptime![self.transfer.copies] {
            let begin = stage * comptime![rows * width / 8];
            tile::copy(from, first, &mut self.tile, begin, rows, width);
        } else {
            tile::fetch(from, first, &mut self.next, rows, width);
        }
    }

    /// Writes the block that [`fetch`](Self::fetch) has read to shared memory, for the same stage. After it, a call of
    /// [`sync_copies`](super::copies::sync_copies) must precede the first use.
    pub(super) fn store(&mut self, stage: usize) {
        let (rows, width) = comptime![(self.rows, self.width)];
        if comptime![!self.transfer.copies] {
            let begin = stage * comptime![rows * width / 8];
            tile::store(&self.next, &mut self.tile, begin, rows, width);
        }
    }
}

/// Rows that a plane owns, as left factors.
#[derive(CubeType)]
pub(super) struct OwnedRows {
    pub(super) blocks: Blocks,
    pub(super) factors: LeftFactors,
    #[cube(comptime)]
    transfer: Transfer,
}

#[cube]
impl OwnedRows {
    pub(super) fn new(
        #[comptime] owned: usize,
        #[comptime] width: usize,
        #[comptime] transfer: Transfer,
    ) -> OwnedRows {
        // Planes read their own rows one by one.
        let of_planes = comptime![Transfer { warpgroups: false, ..transfer }];
        let blocks = Blocks::new(1usize, owned, width, of_planes);
        OwnedRows { blocks, factors: LeftFactors::new(), transfer }
    }

    /// Copies the rows of a cube from `row` of all rows of all planes on to shared memory. [`sync_copies`](super::copies::sync_copies)
    /// must follow, and then [`begin`](Self::begin).
    pub(super) fn load(&mut self, from: &Box<[Piece]>, row: usize) {
        self.blocks.fetch(from, row, 0usize);
        self.blocks.store(0usize);
    }

    /// Reads the factors of this plane's rows, from `first_row` on, into registers, if they stay there.
    pub(super) fn begin(
        &mut self,
        first_row: usize,
        #[comptime] resident: bool,
        #[comptime] groups: usize,
        #[comptime] width: usize,
    ) {
        if comptime![resident] {
            #[unroll]
            for step in 0..comptime![width / STEP] {
                left_factors(&self.blocks.tile, first_row, &mut self.factors, step, groups, width);
            }
        }
    }

    /// Adds the products of this plane's rows, from `first_row` on, with the rows of a stage of blocks, over some channels; groups of
    /// planes take all.
    #[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
    pub(super) fn add_dots(
        &self,
        first_row: usize,
        right: &Shared<[Piece]>,
        stage: usize,
        results: &mut Results,
        #[comptime] resident: bool,
        #[comptime] columns: usize,
        #[comptime] groups: usize,
        #[comptime] channels: Channels,
    ) {
        let width = comptime![channels.width];
        let begin = stage * comptime![columns * width / 8];
        let steps = comptime![channels.steps()];
        if comptime![self.transfer.warpgroups] {
            let right = &right[begin..];
            if comptime![resident] {
                warpgroup::add(
                    &self.factors,
                    right,
                    results,
                    0usize,
                    steps,
                    columns,
                    groups,
                    false,
                );
            } else {
                // All factors of wide rows would take too many registers.
                let together = comptime![WIDTH / STEP];
                #[unroll]
                for part in 0..comptime![steps / together] {
                    let first = comptime![part * together];
                    let mut left = LeftFactors::new();
                    #[unroll]
                    for one in 0..together {
                        let step = comptime![first + one];
                        left_factors(&self.blocks.tile, first_row, &mut left, step, groups, width);
                    }
                    warpgroup::add(&left, right, results, first, together, columns, groups, false);
                }
            }
        } else {
            #[unroll]
            for one in 0..steps {
                let step = comptime![channels.from / STEP + one];
                if comptime![resident] {
                    let first = comptime![step * groups];
                    let left = &self.factors;
                    tile::add_dot(left, right, begin, results, first, step, columns, groups, width);
                } else {
                    let mut left = LeftFactors::new();
                    left_factors(&self.blocks.tile, first_row, &mut left, step, groups, width);
                    tile::add_dot(
                        &left, right, begin, results, 0usize, step, columns, groups, width,
                    );
                }
            }
        }
    }
}

/// Adds the products of results, `[16, rows]` for each group of rows, with the rows of a block, `[rows, width]`, from
/// `begin` on, for some channels; groups of planes take all.
#[cube]
#[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
pub(super) fn add_mix(
    weights: &Results,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] rows: usize,
    #[comptime] groups: usize,
    #[comptime] channels: Channels,
    #[comptime] transfer: Transfer,
) {
    let (steps, width) = comptime![(rows / STEP, channels.width)];
    if comptime![transfer.warpgroups] {
        let mut left = LeftFactors::new();
        #[unroll]
        for step in 0..steps {
            mix_factors(weights, &mut left, step, groups);
        }
        warpgroup::add(&left, &tile[begin..], results, 0usize, steps, width, groups, true);
    } else {
        #[unroll]
        for step in 0..steps {
            let mut left = LeftFactors::new();
            mix_factors(weights, &mut left, step, groups);
            add_mix_step(&left, tile, begin, results, step, groups, channels);
        }
    }
}
