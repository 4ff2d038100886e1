//! Product of two matrices of bf16: a cube computes 128 x 128 sums, each of its planes 64 x 64 of them in registers.
//!
//! A step multiplies 64 numbers of each row and column, or 32 where they are read through registers. Those of the next step
//! are read while the current one is computed.

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::cmma::{MatrixIdent, MmaDefinition};
use burn_cubecl::cubecl::prelude::*;

use super::ProductForm;
use crate::kernels::gpu::mma::blocks::Blocks;
use crate::kernels::gpu::mma::config::{ACROSS, ROWS, STEP, UNITS};
use crate::kernels::gpu::mma::copies::{Transfer, begin_copy, sync_copies};
use crate::kernels::gpu::mma::tile::{
    FactorPair, LeftFactors, Piece, Results, SumPair, add_two, place, zeros,
};

/// Rows, and columns, of a cube.
pub(in crate::kernels::gpu::mma) const SIDE: usize = 128;
/// Rows, and columns, of a plane.
const PLANE_SIDE: usize = SIDE / 2;
/// Groups of 16 rows of a plane.
const GROUPS: usize = PLANE_SIDE / ROWS;
/// Numbers of each row and column that a step multiplies, where they lie in registers for a while.
pub(in crate::kernels::gpu::mma) const DEPTH: usize = 32;

/// The same, where they are copied to shared memory without registers.
pub(in crate::kernels::gpu::mma) const COPIED_DEPTH: usize = 64;

/// Matrix in rows of whole pieces, or several of them with the same shape.
#[derive(CubeType, CubeLaunch)]
pub(in crate::kernels::gpu::mma) struct Factor {
    pub(super) pieces: Box<[Piece]>,
    /// Pieces from one row to the next.
    pub(super) row_stride: usize,
    /// Pieces from one matrix to the next.
    pub(super) matrix_stride: usize,
}

/// Numbers of rows, columns and terms of a product.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(in crate::kernels::gpu::mma) struct ProductSizes {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) inner: usize,
}

/// Rows of a block of a factor in memory, from the numbers that a cube and a step take of it.
pub(super) const fn block_rows(side: usize, depth: usize, inner_is_contiguous: bool) -> usize {
    if inner_is_contiguous { side } else { depth }
}

/// Numbers in each of these rows.
pub(super) const fn block_width(side: usize, depth: usize, inner_is_contiguous: bool) -> usize {
    side * depth / block_rows(side, depth, inner_is_contiguous)
}

/// Begins to read this unit's pieces of the block of a factor that begins at number `outer` and at term `inner`, for a
/// stage that nobody reads any more.
#[cube]
#[expect(clippy::too_many_arguments, reason = "a factor, and a place in it")]
fn fetch(
    factor: &Factor,
    blocks: &mut Blocks,
    stage: usize,
    matrix: usize,
    outer: usize,
    outer_len: usize,
    inner: usize,
    inner_len: usize,
    #[comptime] inner_is_contiguous: bool,
    #[comptime] form: ProductForm,
) {
    let width = comptime![block_width(SIDE, form.depth, inner_is_contiguous)];
    let begin = matrix * factor.matrix_stride;
    let mut first_row = outer;
    let mut first_number = inner;
    let mut rows = outer_len;
    let mut numbers = inner_len;
    if comptime![!inner_is_contiguous] {
        first_row = inner;
        first_number = outer;
        rows = inner_len;
        numbers = outer_len;
    }
    #[unroll]
    for copy in 0..comptime![SIDE * form.depth / 8 / UNITS] {
        let at = UNIT_POS as usize + copy * UNITS;
        let row = first_row + at / comptime![width / 8];
        let piece = first_number / 8 + at % comptime![width / 8];
        let from = begin + row * factor.row_stride + piece;
        if comptime![form.copies] {
            let to = stage * comptime![SIDE * form.depth / 8]
                + place(at / comptime![width / 8], at % comptime![width / 8], width);
            begin_copy(&factor.pieces[from..], &mut blocks.tile[to..]);
        } else if comptime![form.whole] {
            blocks.next[copy] = factor.pieces[from];
        } else {
            let mut numbers_of_piece = Piece::new(bf16::new(0.0));
            if row < rows && piece * 8 < numbers {
                numbers_of_piece = factor.pieces[from];
            }
            blocks.next[copy] = numbers_of_piece;
        }
    }
}

/// Place in a stage's block of the piece that this lane reads of a factor of 16 x 16.
#[cube]
fn piece_of_lane(
    outer: usize,
    #[comptime] step: usize,
    #[comptime] side: usize,
    #[comptime] depth: usize,
    #[comptime] inner_is_contiguous: bool,
    #[comptime] left: bool,
) -> usize {
    let lane = UNIT_POS_PLANE as usize;
    // The four parts of 8 x 8 are in the order of a factor's registers.
    let mut outer_part = lane / 8 % 2;
    let mut inner_part = lane / 16;
    if comptime![!left] {
        outer_part = lane / 16;
        inner_part = lane / 8 % 2;
    }
    let width = comptime![block_width(side, depth, inner_is_contiguous)];
    if comptime![inner_is_contiguous] {
        place(outer + outer_part * 8 + lane % 8, comptime![step * 2] + inner_part, width)
    } else {
        place(comptime![step * 16] + inner_part * 8 + lane % 8, outer / 8 + outer_part, width)
    }
}

/// Reads a factor of 16 rows, or the factors of 16 columns, from `outer` on.
#[cube]
pub(super) fn factors(
    tile: &Shared<[Piece]>,
    begin: usize,
    outer: usize,
    #[comptime] step: usize,
    #[comptime] side: usize,
    #[comptime] depth: usize,
    #[comptime] inner_is_contiguous: bool,
    #[comptime] left: bool,
) -> Array<FactorPair> {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let at = begin + piece_of_lane(outer, step, side, depth, inner_is_contiguous, left);
    let ident = comptime![if left { MatrixIdent::A } else { MatrixIdent::B }];
    multiply.load_matrix::<Piece, Const<2>>(
        &tile[at..],
        ident,
        4usize,
        comptime![!inner_is_contiguous],
    )
}

/// Adds the products of a stage.
#[cube]
fn add_stage(
    left: &Blocks,
    right: &Blocks,
    stage: usize,
    results: &mut Results,
    #[comptime] form: ProductForm,
) {
    let begin = stage * comptime![SIDE * form.depth / 8];
    let plane = UNIT_POS as usize / 32;
    let row = plane / 2 * PLANE_SIDE;
    let column = plane % 2 * PLANE_SIDE;
    #[unroll]
    for step in 0..comptime![form.depth / STEP] {
        let mut of_rows = LeftFactors::new();
        #[unroll]
        for group in 0..GROUPS {
            let first = row + comptime![group * ROWS];
            let inner_is_contiguous = comptime![!form.left_transposed];
            of_rows.push(factors(
                &left.tile,
                begin,
                first,
                step,
                SIDE,
                comptime![form.depth],
                inner_is_contiguous,
                true,
            ));
        }
        #[unroll]
        for two in 0..comptime![PLANE_SIDE / 16] {
            let first = column + comptime![two * 16];
            let of_columns = factors(
                &right.tile,
                begin,
                first,
                step,
                SIDE,
                comptime![form.depth],
                comptime![form.right_transposed],
                false,
            );
            add_two(&of_rows, &of_columns, results, 0usize, two, GROUPS);
        }
    }
}

/// Writes `out`, `[matrices, rows, columns]`.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(in crate::kernels::gpu::mma) fn product_kernel<O: Float>(
    left: &Factor,
    right: &Factor,
    bias: &Box<[f32]>,
    out: &mut Box<[Vector<O, Const<2>>]>,
    sizes: &ProductSizes,
    #[comptime] form: ProductForm,
) {
    let first_row = CUBE_POS_Y as usize * SIDE;
    let blocks = sizes.columns.div_ceil(SIDE);
    let matrix = CUBE_POS_X as usize / blocks;
    let first_column = CUBE_POS_X as usize % blocks * SIDE;
    let by_rows = comptime![!form.left_transposed];
    let by_columns = comptime![form.right_transposed];
    let depth = comptime![form.depth];
    let transfer = comptime![Transfer { copies: form.copies, warpgroups: false }];
    let mut of_rows = Blocks::new(
        2usize,
        comptime![block_rows(SIDE, depth, by_rows)],
        comptime![block_width(SIDE, depth, by_rows)],
        transfer,
    );
    let mut of_columns = Blocks::new(
        2usize,
        comptime![block_rows(SIDE, depth, by_columns)],
        comptime![block_width(SIDE, depth, by_columns)],
        transfer,
    );
    let mut results = zeros(comptime![PLANE_SIDE / ACROSS], GROUPS);
    let steps = sizes.inner.div_ceil(depth);
    let mut step = 0usize.runtime();
    let rows = sizes.rows;
    let columns = sizes.columns;
    let inner = sizes.inner;
    fetch(left, &mut of_rows, 0usize, matrix, first_row, rows, 0usize, inner, by_rows, form);
    fetch(
        right,
        &mut of_columns,
        0usize,
        matrix,
        first_column,
        columns,
        0usize,
        inner,
        by_columns,
        form,
    );
    of_rows.store(0usize);
    of_columns.store(0usize);
    sync_copies(transfer);
    while step < steps {
        let next = step + 1;
        let stage = next % 2;
        if next < steps {
            let term = next * depth;
            fetch(left, &mut of_rows, stage, matrix, first_row, rows, term, inner, by_rows, form);
            fetch(
                right,
                &mut of_columns,
                stage,
                matrix,
                first_column,
                columns,
                term,
                inner,
                by_columns,
                form,
            );
        }
        add_stage(&of_rows, &of_columns, step % 2, &mut results, form);
        if next < steps {
            of_rows.store(stage);
            of_columns.store(stage);
        }
        sync_copies(transfer);
        step = next;
    }
    write::<O>(&results, bias, out, matrix, first_row, first_column, sizes, form);
}

/// Writes the sums of a plane, plus the bias of their column.
#[cube]
#[expect(clippy::too_many_arguments, reason = "results, and their place")]
fn write<O: Float>(
    results: &Results,
    bias: &Box<[f32]>,
    out: &mut Box<[Vector<O, Const<2>>]>,
    matrix: usize,
    first_row: usize,
    first_column: usize,
    sizes: &ProductSizes,
    #[comptime] form: ProductForm,
) {
    let rows = sizes.rows;
    let columns = sizes.columns;
    let lane = UNIT_POS_PLANE as usize;
    let plane = UNIT_POS as usize / 32;
    let row = first_row + plane / 2 * PLANE_SIDE + lane / 4;
    let column = first_column + plane % 2 * PLANE_SIDE + lane % 4 * 2;
    let begin = matrix * rows * columns;
    #[unroll]
    for n in 0..comptime![PLANE_SIDE / ACROSS] {
        let at = column + comptime![n * ACROSS];
        let mut offset = SumPair::new(0.0);
        if comptime![form.bias] {
            #[unroll]
            for one in 0..2usize {
                if comptime![form.whole] {
                    offset.insert(one, bias[at + one]);
                } else if at + one < columns {
                    offset.insert(one, bias[at + one]);
                }
            }
        }
        #[unroll]
        for eight in 0..comptime![PLANE_SIDE / 8] {
            let own_row = row + comptime![eight * 8];
            let line = begin + own_row * columns + at;
            let sums = results.index(n)[eight] + offset;
            if comptime![form.whole] {
                out[line / 2] = Vector::<O, Const<2>>::cast_from(sums);
            } else {
                // Rows of an odd number of columns have no whole pairs.
                let numbers = out.with_vector_size_mut::<Const<1>>();
                #[unroll]
                for one in 0..2usize {
                    if own_row < rows && at + one < columns {
                        numbers[line + one] = Vector::cast_from(sums.extract(one));
                    }
                }
            }
        }
    }
}
