//! Product of two matrices of bf16 on the tensor instructions of the H100 and H200: a cube computes 128 x 128 sums, each of its two
//! groups of four planes half of them.
//!
//! Factors of two steps are on their way to shared memory while a third is multiplied. Two cubes share a processor, so that
//! one multiplies while the other waits.

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::ProductForm;
use super::kernel::{Factor, ProductSizes, SIDE, block_rows, block_width};
use super::write::write;
use crate::kernels::gpu::mma::copies::{
    begin_copy, begin_copy_or_zeros, end_group, wait_for_all_groups_but_one,
};
use crate::kernels::gpu::mma::tile::{Piece, Results, SumPair};
use crate::kernels::gpu::mma::warpgroup::{
    ALIGNMENT, DEPTH, GROUP_ROWS, GROUP_UNITS, SUMS, multiply, multiply_simulated, place,
};

/// Units of a cube.
pub(in crate::kernels::gpu::mma) const WARPGROUP_UNITS: usize = SIDE / GROUP_ROWS * GROUP_UNITS;
/// Steps in shared memory.
const STAGES: usize = 3;
/// Pieces of a factor of a step.
const PIECES: usize = SIDE * DEPTH / 8;
/// Pieces of the rows of a group of planes in a left factor.
const GROUP_PIECES: usize = PIECES * GROUP_ROWS / SIDE;
/// Blocks of rows whose cubes run side by side, so that they share the factors of columns in the cache.
const SIDE_BY_SIDE: usize = 8;

/// Begins to read the block of a factor that begins at number `outer` and at term `inner`, for a stage that nobody reads any
/// more. What lies beyond the factor is zero.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a factor, and a place in it")]
fn fetch(
    factor: &Factor,
    tile: &mut Shared<[Piece]>,
    stage: usize,
    matrix: usize,
    outer: usize,
    outer_len: usize,
    inner: usize,
    inner_len: usize,
    #[comptime] inner_is_contiguous: bool,
    #[comptime] form: ProductForm,
) {
    let rows = comptime![block_rows(SIDE, DEPTH, inner_is_contiguous)];
    let pieces = comptime![block_width(SIDE, DEPTH, inner_is_contiguous) / 8];
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
    let begin = matrix * factor.matrix_stride + (first_row + row) * factor.row_stride + piece;
    // Pieces of a unit lie whole groups of eight rows apart, at the same place in them.
    let to = stage * PIECES + place(row, unit % pieces, rows);
    #[unroll]
    for copy in 0..comptime![PIECES / WARPGROUP_UNITS] {
        let further = comptime![copy * WARPGROUP_UNITS / pieces];
        let to = to + comptime![further * 8];
        let from = begin + further * factor.row_stride;
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

/// Writes `out`, `[matrices, rows, columns]`.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(in crate::kernels::gpu::mma) fn warpgroup_kernel<O: Float>(
    left: &Factor,
    right: &Factor,
    bias: &Box<[f32]>,
    out: &mut Box<[Vector<O, Const<2>>]>,
    sizes: &ProductSizes,
    #[comptime] form: ProductForm,
) {
    let by_rows = comptime![!form.left_transposed];
    let by_columns = comptime![form.right_transposed];
    let (rows, columns, inner) = (sizes.rows, sizes.columns, sizes.inner);
    let blocks = columns.div_ceil(SIDE);
    let row_blocks = rows.div_ceil(SIDE);
    let cube = CUBE_POS_Y as usize * CUBE_COUNT_X as usize + CUBE_POS_X as usize;
    let matrix = cube / (row_blocks * blocks);
    let of_matrix = cube % (row_blocks * blocks);
    let first_block = of_matrix / (SIDE_BY_SIDE * blocks) * SIDE_BY_SIDE;
    let together = min(row_blocks - first_block, SIDE_BY_SIDE);
    let of_group = of_matrix % (SIDE_BY_SIDE * blocks);
    let first_row = (first_block + of_group % together) * SIDE;
    let first_column = of_group / together * SIDE;

    let mut of_rows = Shared::<[Piece]>::new_aligned_slice(comptime![STAGES * PIECES], ALIGNMENT);
    let mut of_columns =
        Shared::<[Piece]>::new_aligned_slice(comptime![STAGES * PIECES], ALIGNMENT);
    let mut sums = Array::<f32>::new(SUMS);
    #[unroll]
    for at in 0..SUMS {
        sums[at] = f32::new(0.0);
    }
    let steps = inner.div_ceil(DEPTH);
    #[unroll]
    for step in 0..comptime![STAGES - 1] {
        if step < steps {
            let term = step * DEPTH;
            fetch(left, &mut of_rows, step, matrix, first_row, rows, term, inner, by_rows, form);
            fetch(
                right,
                &mut of_columns,
                step,
                matrix,
                first_column,
                columns,
                term,
                inner,
                by_columns,
                form,
            );
        }
        if comptime![form.copies] {
            end_group();
        }
    }
    let group = UNIT_POS as usize / GROUP_UNITS;
    let mut step = 0usize.runtime();
    let mut stage = 0usize.runtime();
    while step < steps {
        if comptime![form.copies] {
            wait_for_all_groups_but_one();
        }
        sync_cube();
        // The stage of the step before, which all planes have multiplied.
        let mut free = stage + comptime![STAGES - 1];
        if free >= STAGES {
            free -= STAGES;
        }
        let next = step + comptime![STAGES - 1];
        if next < steps {
            let term = next * DEPTH;
            fetch(left, &mut of_rows, free, matrix, first_row, rows, term, inner, by_rows, form);
            fetch(
                right,
                &mut of_columns,
                free,
                matrix,
                first_column,
                columns,
                term,
                inner,
                by_columns,
                form,
            );
        }
        let of_left = stage * PIECES + group * GROUP_PIECES;
        let of_right = stage * PIECES;
        if comptime![form.copies] {
            end_group();
            let (left, right) = (&of_rows[of_left..], &of_columns[of_right..]);
            multiply(left, right, &mut sums, comptime![!by_rows], comptime![!by_columns]);
        } else {
            multiply_simulated(
                &of_rows,
                of_left,
                &of_columns,
                of_right,
                &mut sums,
                comptime![!by_rows],
                comptime![!by_columns],
            );
        }
        stage += 1;
        if stage == STAGES {
            stage = 0;
        }
        step += 1;
    }
    let mut results = Results::new();
    #[unroll]
    for n in 0..comptime![SUMS / 4] {
        let mut result = Array::<SumPair>::new(2usize);
        #[unroll]
        for eight in 0..2usize {
            let mut pair = SumPair::new(0.0);
            #[unroll]
            for one in 0..2usize {
                pair.insert(one, sums[comptime![n * 4 + eight * 2 + one]]);
            }
            result[eight] = pair;
        }
        results.push(result);
    }
    let lane = UNIT_POS_PLANE as usize;
    let plane = UNIT_POS as usize / 32;
    let row = first_row + plane * 16 + lane / 4;
    let column = first_column + lane % 4 * 2;
    write::<O>(&results, bias, out, matrix, row, column, sizes, 1usize, form);
}
