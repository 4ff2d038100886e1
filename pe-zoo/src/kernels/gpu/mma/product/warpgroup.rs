//! Product of two matrices of bf16 on the tensor instructions of the H100 and H200: a cube computes 128 x 256 sums, each of its two
//! groups of four planes half of them.
//!
//! Factors of two steps are on their way to shared memory while two others are multiplied.

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::ProductForm;
use super::kernel::{Factor, ProductSizes, block_rows, block_width};
use super::sums::{PLANE_PIECES, ROWS, RowsPlace, write};
use crate::kernels::gpu::mma::copies::{
    begin_copy, begin_copy_or_zeros, end_group, wait_for_groups,
};
use crate::kernels::gpu::mma::tile::Piece;
use crate::kernels::gpu::mma::warpgroup::{
    ACROSS, ALIGNMENT, DEPTH, GROUP_ROWS, GROUP_UNITS, SUMS, finish, multiply, multiply_simulated,
    place,
};

/// Rows of a cube.
pub(in crate::kernels::gpu::mma) const BLOCK_ROWS: usize = 128;
/// Columns of a cube.
pub(in crate::kernels::gpu::mma) const BLOCK_COLUMNS: usize = ACROSS;
/// Units of a cube.
pub(in crate::kernels::gpu::mma) const WARPGROUP_UNITS: usize =
    BLOCK_ROWS / GROUP_ROWS * GROUP_UNITS;
/// Steps in shared memory.
const STAGES: usize = 4;
/// Steps that are read ahead. Of the others, one is multiplied and one may be.
const AHEAD: usize = STAGES - 2;
/// Pieces of the left factor of a step.
const LEFT_PIECES: usize = BLOCK_ROWS * DEPTH / 8;
/// Pieces of both factors of a step.
const STAGE_PIECES: usize = LEFT_PIECES + BLOCK_COLUMNS * DEPTH / 8;
/// Pieces of the rows of a group of planes in a left factor.
const GROUP_PIECES: usize = GROUP_ROWS * DEPTH / 8;
/// Blocks of rows whose cubes run side by side, so that they share the factors of columns in the cache.
const SIDE_BY_SIDE: usize = 8;

/// Begins to read a block of a factor, for a stage that nobody reads any more. What lies beyond the factor is zero.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a factor, and a place in it")]
fn fetch(
    factor: &Factor,
    tile: &mut Shared<[Piece]>,
    begin: usize,
    walk: &BlockWalk,
    sizes: &ProductSizes,
    #[comptime] inner_is_contiguous: bool,
    #[comptime] left: bool,
    #[comptime] form: ProductForm,
) {
    let matrix = walk.matrix;
    let inner = walk.step * DEPTH;
    let inner_len = sizes.inner;
    let mut outer = walk.row;
    let mut outer_len = sizes.rows;
    if comptime![!left] {
        outer = walk.column;
        outer_len = sizes.columns;
    }
    let side = comptime![if left { BLOCK_ROWS } else { BLOCK_COLUMNS }];
    let rows = comptime![block_rows(side, DEPTH, inner_is_contiguous)];
    let pieces = comptime![block_width(side, DEPTH, inner_is_contiguous) / 8];
    let mut first_row = outer;
    let mut first_number = inner;
    let mut row_end = outer_len;
    let mut number_end = inner_len;
    if comptime![!inner_is_contiguous] {
        first_row = inner;
        first_number = outer;
        row_end = inner_len;
        number_end = outer_len;
    }
    let unit = UNIT_POS as usize;
    let row = unit / pieces;
    let piece = first_number / 8 + unit % pieces;
    let first = matrix * factor.matrix_stride + (first_row + row) * factor.row_stride + piece;
    // Pieces of a unit lie whole groups of eight rows apart, at the same place in them.
    let to = begin + place(row, unit % pieces, rows);
    #[unroll]
    for copy in 0..comptime![side * DEPTH / 8 / WARPGROUP_UNITS] {
        let further = comptime![copy * WARPGROUP_UNITS / pieces];
        let to = to + comptime![further * 8];
        let from = first + further * factor.row_stride;
        if comptime![form.whole] {
            if comptime![form.copies] {
                begin_copy(&factor.pieces[from..], &mut tile[to..]);
            } else {
                tile[to] = factor.pieces[from];
            }
        } else {
            let inside = first_row + row + further < row_end && piece * 8 < number_end;
            let from = select(inside, from, 0usize);
            if comptime![form.copies] {
                begin_copy_or_zeros(&factor.pieces[from..], &mut tile[to..], inside);
            } else {
                let mut numbers = Piece::new(bf16::new(0.0));
                if inside {
                    numbers = factor.pieces[from];
                }
                tile[to] = numbers;
            }
        }
    }
}

/// Where a cube is in its blocks of sums, and in the terms of one.
#[derive(CubeType)]
struct BlockWalk {
    /// Number of the block among those of all cubes.
    block: usize,
    step: usize,
    matrix: usize,
    row: usize,
    column: usize,
}

#[cube]
impl BlockWalk {
    fn begin(sizes: &ProductSizes) -> BlockWalk {
        let mut walk = BlockWalk {
            block: CUBE_POS,
            step: 0usize.runtime(),
            matrix: 0usize.runtime(),
            row: 0usize.runtime(),
            column: 0usize.runtime(),
        };
        walk.locate(sizes);
        walk
    }

    /// Finds the block. Blocks of a few rows of blocks follow one another, so that cubes that run side by side share factors
    /// in the cache.
    fn locate(&mut self, sizes: &ProductSizes) {
        let across = sizes.columns.div_ceil(BLOCK_COLUMNS);
        let down = sizes.rows.div_ceil(BLOCK_ROWS);
        let of_matrix = self.block % (down * across);
        let first = of_matrix / (SIDE_BY_SIDE * across) * SIDE_BY_SIDE;
        let together = min(down - first, SIDE_BY_SIDE);
        let of_group = of_matrix % (SIDE_BY_SIDE * across);
        self.matrix = self.block / (down * across);
        self.row = (first + of_group % together) * BLOCK_ROWS;
        self.column = of_group / together * BLOCK_COLUMNS;
    }

    /// Goes on to the next step, of the next block of this cube after the last of `steps`.
    fn advance(&mut self, steps: usize, sizes: &ProductSizes) {
        self.step += 1;
        if self.step == steps {
            self.step = 0;
            self.block += CUBE_COUNT;
            self.locate(sizes);
        }
    }
}

/// Writes `out`, `[matrices, rows, columns]`. A cube computes blocks of sums one after the other, and reads the factors of the next one
/// while it writes.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(in crate::kernels::gpu::mma) fn warpgroup_kernel<O: Float>(
    left: &Factor,
    right: &Factor,
    bias: &Box<[f32]>,
    beside: &mut Box<[Vector<O, Const<2>>]>,
    out: &mut Box<[Vector<O, Const<2>>]>,
    sizes: &ProductSizes,
    blocks: usize,
    #[comptime] form: ProductForm,
) {
    let by_rows = comptime![!form.left_transposed];
    let by_columns = comptime![form.right_transposed];
    // The factors of a step: that of rows, then that of columns.
    let mut tile =
        Shared::<[Piece]>::new_aligned_slice(comptime![STAGES * STAGE_PIECES], ALIGNMENT);
    let mut sums = Array::<f32>::new(SUMS);
    clear(&mut sums);
    let steps = sizes.inner.div_ceil(DEPTH);
    let cube = CUBE_POS;
    let cubes = CUBE_COUNT;
    let end = (blocks - cube).div_ceil(cubes) * steps;
    let mut ahead = BlockWalk::begin(sizes);
    #[unroll]
    for stage in 0..AHEAD {
        if stage < end {
            let begin = comptime![stage * STAGE_PIECES];
            let of_right = comptime![begin + LEFT_PIECES];
            fetch(left, &mut tile, begin, &ahead, sizes, by_rows, true, form);
            fetch(right, &mut tile, of_right, &ahead, sizes, by_columns, false, form);
            ahead.advance(steps, sizes);
        }
        if comptime![form.copies] {
            end_group();
        }
    }
    let plane = UNIT_POS as usize / 32;
    let group = UNIT_POS as usize / GROUP_UNITS;
    let mut current = BlockWalk::begin(sizes);
    let mut stage = 0usize.runtime();
    let mut done = 0usize.runtime();
    while current.block < blocks {
        let mut step = 0usize.runtime();
        while step < steps {
            if comptime![form.copies] {
                wait_for_groups(1usize);
            }
            sync_cube();
            if done + AHEAD < end {
                // The stage of the step before the last one, which all planes have multiplied.
                let free = (stage + AHEAD) % STAGES * STAGE_PIECES;
                fetch(left, &mut tile, free, &ahead, sizes, by_rows, true, form);
                let free = free + LEFT_PIECES;
                fetch(right, &mut tile, free, &ahead, sizes, by_columns, false, form);
                ahead.advance(steps, sizes);
            }
            let begin = stage * STAGE_PIECES;
            let of_left = begin + group * GROUP_PIECES;
            let of_right = begin + LEFT_PIECES;
            let (across_rows, across_columns) = comptime![(!by_rows, !by_columns)];
            if comptime![form.copies] {
                end_group();
                let (left, right) = (&tile[of_left..], &tile[of_right..]);
                multiply(left, right, &mut sums, step > 0, across_rows, across_columns);
            } else {
                if step == 0 {
                    clear(&mut sums);
                }
                multiply_simulated(
                    &tile,
                    of_left,
                    of_right,
                    &mut sums,
                    across_rows,
                    across_columns,
                );
            }
            stage = (stage + 1) % STAGES;
            step += 1;
            done += 1;
        }
        if comptime![form.copies] {
            finish(&mut sums);
        }
        // Nobody reads the stage of the last step any more.
        sync_cube();
        let place = RowsPlace {
            matrix: current.matrix,
            row: current.row + plane * ROWS,
            column: current.column,
        };
        let begin = (stage + STAGES - 1) % STAGES * STAGE_PIECES + plane * PLANE_PIECES;
        write::<O>(&sums, &mut tile, begin, bias, beside, out, &place, sizes, form);
        current.block += cubes;
        current.locate(sizes);
    }
}

#[cube]
fn clear(sums: &mut Array<f32>) {
    #[unroll]
    for at in 0..SUMS {
        sums[at] = f32::new(0.0);
    }
}
