//! Product of two matrices of f32 without rounding of the factors: each number is the sum of three of bf16, and the six
//! largest of their nine products are added. A cube computes 64 x 64 sums.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::kernel::{DEPTH, ProductSizes, block_width, factors};
use crate::kernels::gpu::mma::config::{ACROSS, ROWS, STEP, UNITS};
use crate::kernels::gpu::mma::pack::Eight;
use crate::kernels::gpu::mma::tile::{
    FactorPair, LeftFactors, Piece, Results, add_two, place, zeros,
};

/// Rows, and columns, of a cube.
pub(in crate::kernels::gpu::mma) const SIDE: usize = 64;
/// Rows, and columns, of a plane.
const PLANE_SIDE: usize = SIDE / 2;
/// Groups of 16 rows of a plane.
const GROUPS: usize = PLANE_SIDE / ROWS;
/// Parts of a number.
const PARTS: usize = 3;
/// Parts of the left and of the right number of each product, the smallest first.
const PRODUCTS: [[usize; 2]; 6] = [[1, 1], [0, 2], [2, 0], [0, 1], [1, 0], [0, 0]];
/// Pieces of a part of a block.
const PART_PIECES: usize = SIDE * DEPTH / 8;
/// Pieces of a block that a unit reads.
const OWN: usize = PART_PIECES / UNITS;

/// Matrices of f32 in memory. Strides count numbers.
#[derive(CubeType, CubeLaunch)]
pub(in crate::kernels::gpu::mma) struct ExactFactor {
    pub(in crate::kernels::gpu::mma) numbers: Box<[Vector<f32, Const<4>>]>,
    pub(in crate::kernels::gpu::mma) row_stride: usize,
    pub(in crate::kernels::gpu::mma) matrix_stride: usize,
}

/// Order of a factor in memory, which is fixed when the kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::kernels::gpu::mma) struct ExactForm {
    /// Whether terms of a sum are adjacent in memory.
    pub(in crate::kernels::gpu::mma) inner_is_contiguous: bool,
    /// Whether rows in memory consist of whole, aligned groups of four numbers.
    pub(in crate::kernels::gpu::mma) fours: bool,
}

/// Two blocks of a factor in shared memory, and this unit's pieces of the next one.
#[derive(CubeType)]
struct ExactBlocks {
    tile: Shared<[Piece]>,
    next: Array<Eight>,
}

#[cube]
impl ExactBlocks {
    fn new() -> ExactBlocks {
        ExactBlocks {
            tile: Shared::new_slice(comptime![2 * PARTS * PART_PIECES]),
            next: Array::new(OWN),
        }
    }

    /// Reads this unit's pieces of the block that begins at number `outer` and at term `inner`; numbers from `outer_end` on,
    /// and terms from `inner_end` on, are zeros.
    fn fetch(
        &mut self,
        factor: &ExactFactor,
        matrix: usize,
        outer: usize,
        outer_end: usize,
        inner: usize,
        inner_end: usize,
        #[comptime] form: ExactForm,
    ) {
        let width = comptime![block_width(SIDE, DEPTH, form.inner_is_contiguous)];
        let mut first_row = outer;
        let mut first_number = inner;
        let mut row_end = outer_end;
        let mut number_end = inner_end;
        if comptime![!form.inner_is_contiguous] {
            first_row = inner;
            first_number = outer;
            row_end = inner_end;
            number_end = outer_end;
        }
        #[unroll]
        for copy in 0..OWN {
            let at = UNIT_POS as usize + copy * UNITS;
            let row = first_row + at / comptime![width / 8];
            let number = first_number + at % comptime![width / 8] * 8;
            let from = matrix * factor.matrix_stride + row * factor.row_stride + number;
            let mut eight = Eight::new(0.0);
            if comptime![form.fours] {
                #[unroll]
                for half in 0..2usize {
                    if row < row_end && number + comptime![half * 4] < number_end {
                        let four = factor.numbers[from / 4 + half];
                        #[unroll]
                        for n in 0..4usize {
                            eight.insert(comptime![half * 4 + n], four.extract(n));
                        }
                    }
                }
            } else {
                let numbers = factor.numbers.with_vector_size::<Const<1>>();
                #[unroll]
                for n in 0..8usize {
                    if row < row_end && number + n < number_end {
                        eight.insert(n, numbers[from + n].extract(0usize));
                    }
                }
            }
            self.next[copy] = eight;
        }
    }

    /// Splits the pieces that [`fetch`](Self::fetch) has read, and writes their parts to shared memory.
    fn store(&mut self, stage: usize, #[comptime] form: ExactForm) {
        let width = comptime![block_width(SIDE, DEPTH, form.inner_is_contiguous)];
        #[unroll]
        for copy in 0..OWN {
            let at = UNIT_POS as usize + copy * UNITS;
            let to = place(at / comptime![width / 8], at % comptime![width / 8], width);
            let mut rest = self.next[copy];
            #[unroll]
            for part in 0..PARTS {
                let rounded = Piece::cast_from(rest);
                self.tile[(stage * PARTS + part) * PART_PIECES + to] = rounded;
                rest -= Eight::cast_from(rounded);
            }
        }
    }

    /// Reads a part of a factor of 16 rows, or of 16 columns, from `outer` on.
    fn part(
        &self,
        stage: usize,
        outer: usize,
        #[comptime] part: usize,
        #[comptime] step: usize,
        #[comptime] form: ExactForm,
        #[comptime] left: bool,
    ) -> Array<FactorPair> {
        let begin = (stage * PARTS + part) * PART_PIECES;
        let by_terms = comptime![form.inner_is_contiguous];
        factors(&self.tile, begin, outer, step, SIDE, DEPTH, by_terms, left)
    }
}

/// Adds the products of a stage.
#[cube]
fn add_stage(
    left: &ExactBlocks,
    right: &ExactBlocks,
    stage: usize,
    results: &mut Results,
    #[comptime] of_left: ExactForm,
    #[comptime] of_right: ExactForm,
) {
    let plane = UNIT_POS as usize / 32;
    let row = plane / 2 * PLANE_SIDE;
    let column = plane % 2 * PLANE_SIDE;
    #[unroll]
    for step in 0..comptime![DEPTH / STEP] {
        let mut of_rows = LeftFactors::new();
        #[unroll]
        for part in 0..PARTS {
            #[unroll]
            for group in 0..GROUPS {
                let first = row + comptime![group * ROWS];
                of_rows.push(left.part(stage, first, part, step, of_left, true));
            }
        }
        #[unroll]
        for two in 0..comptime![PLANE_SIDE / 16] {
            let first = column + comptime![two * 16];
            let mut of_columns = LeftFactors::new();
            #[unroll]
            for part in 0..PARTS {
                of_columns.push(right.part(stage, first, part, step, of_right, false));
            }
            #[unroll]
            for n in 0..comptime![PRODUCTS.len()] {
                add_two(
                    &of_rows,
                    of_columns.index(comptime![PRODUCTS[n][1]]),
                    results,
                    comptime![PRODUCTS[n][0] * GROUPS],
                    two,
                    GROUPS,
                );
            }
        }
    }
}

/// Writes `out`, `[slices, matrices, rows, columns]`: sums of `terms` adjacent terms for each slice.
#[cube(launch_unchecked, create_dummy_kernel)]
#[expect(clippy::too_many_arguments, reason = "matrices, and their sizes")]
pub(in crate::kernels::gpu::mma) fn exact_kernel(
    left: &ExactFactor,
    right: &ExactFactor,
    out: &mut Box<[f32]>,
    sizes: &ProductSizes,
    matrices: usize,
    terms: usize,
    #[comptime] of_left: ExactForm,
    #[comptime] of_right: ExactForm,
) {
    let blocks = sizes.columns.div_ceil(SIDE);
    let place = CUBE_POS_X as usize / blocks;
    let matrix = place % matrices;
    let begin = place / matrices * terms;
    let end = min(begin + terms, sizes.inner);
    let first_row = CUBE_POS_Y as usize * SIDE;
    let first_column = CUBE_POS_X as usize % blocks * SIDE;
    let rows = sizes.rows;
    let columns = sizes.columns;
    let mut of_rows = ExactBlocks::new();
    let mut of_columns = ExactBlocks::new();
    let mut results = zeros(comptime![PLANE_SIDE / ACROSS], GROUPS);
    of_rows.fetch(left, matrix, first_row, rows, begin, end, of_left);
    of_columns.fetch(right, matrix, first_column, columns, begin, end, of_right);
    of_rows.store(0usize, of_left);
    of_columns.store(0usize, of_right);
    sync_cube();
    let steps = (end - begin).div_ceil(DEPTH);
    let mut step = 0usize.runtime();
    while step < steps {
        let next = step + 1;
        if next < steps {
            let term = begin + next * DEPTH;
            of_rows.fetch(left, matrix, first_row, rows, term, end, of_left);
            of_columns.fetch(right, matrix, first_column, columns, term, end, of_right);
        }
        add_stage(&of_rows, &of_columns, step % 2, &mut results, of_left, of_right);
        if next < steps {
            of_rows.store(next % 2, of_left);
            of_columns.store(next % 2, of_right);
        }
        sync_cube();
        step = next;
    }
    let lane = UNIT_POS_PLANE as usize;
    let plane = UNIT_POS as usize / 32;
    let row = first_row + plane / 2 * PLANE_SIDE + lane / 4;
    let column = first_column + plane % 2 * PLANE_SIDE + lane % 4 * 2;
    #[unroll]
    for n in 0..comptime![PLANE_SIDE / ACROSS] {
        #[unroll]
        for eight in 0..comptime![PLANE_SIDE / 8] {
            let own_row = row + comptime![eight * 8];
            let at = column + comptime![n * ACROSS];
            let line = (place * rows + own_row) * columns + at;
            let sums = results.index(n)[eight];
            #[unroll]
            for one in 0..2usize {
                if own_row < rows && at + one < columns {
                    out[line + one] = sums.extract(one);
                }
            }
        }
    }
}
