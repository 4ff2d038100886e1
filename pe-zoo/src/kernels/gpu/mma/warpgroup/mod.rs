//! Tensor instructions of the H100 and H200, which a group of four planes executes together: products of 64 rows with up to 256
//! columns in shared memory. They are 1.5 to 2 times as fast as the instructions of a plane.
//!
//! A factor is in blocks of 64 numbers across. Pieces of a row of 64 numbers, 128 bytes, are in another order in each of eight
//! adjacent rows, which the instructions undo.

#![cfg_attr(
    all(feature = "cuda", not(feature = "cuda-cpp")),
    expect(unsafe_code, reason = "the pointers of two slices that live")
)]

#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
#[expect(dead_code, unreachable_pub, reason = "what the attribute generates for each field")]
mod lowered;

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{STEP, UNITS, WIDTH};
use super::copies::begin_copy;
use super::tile::{FactorPair, LeftFactors, Piece, Results, SumPair};

/// Rows of the left factor of a group of four planes.
pub(super) const GROUP_ROWS: usize = 64;
/// Columns of the right factor.
pub(super) const ACROSS: usize = 256;
/// Terms of a sum.
pub(super) const DEPTH: usize = 64;
/// Units of a group of four planes.
pub(super) const GROUP_UNITS: usize = 128;
/// Sums of a unit.
pub(super) const SUMS: usize = GROUP_ROWS * ACROSS / GROUP_UNITS;
/// Bytes to which blocks are aligned.
pub(super) const ALIGNMENT: usize = 1024;
/// Pieces of a row of a block.
const WIDTH_PIECES: usize = WIDTH / 8;

/// Place in a factor's blocks of the piece that begins at a row in memory, and at a piece of that row. Rows are as long as the
/// factor is across, or as the sums are, `rows` of them.
#[cube]
pub(super) fn place(row: usize, piece: usize, #[comptime] rows: usize) -> usize {
    let block = piece / WIDTH_PIECES;
    block * comptime![rows * WIDTH_PIECES]
        + row * WIDTH_PIECES
        + ((piece % WIDTH_PIECES) ^ (row & 7))
}

/// Begins to multiply 64 rows of a left factor, whose first piece is `left[0]`, by 256 columns of a right factor, whose first piece is
/// `right[0]`. The products become this unit's sums, or are added to them: those of rows `16 (plane % 4) + lane / 4` and eight further, in
/// pairs of columns `8 n + 2 (lane % 4)` and the next. With `across` rows in memory are across a factor: they hold one
/// term of all sums.
///
/// All planes of the group must call it, after a barrier that follows the last write to the blocks. The product before it is
/// done then, so that its blocks are no longer read; this one is after [`finish`].
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn multiply(
    left: &[Piece],
    right: &[Piece],
    sums: &mut Array<f32>,
    adds: bool,
    #[comptime] left_across: bool,
    #[comptime] right_across: bool,
) {
    let adds = u32::cast_from(adds);
    intrinsic!(|scope| {
        // SAFETY: both pointers are values of the kernel, whose slices live during the call.
        let left = unsafe { *left.__expand_as_ptr_method(scope) }.value(scope);
        // SAFETY: as above.
        let right = unsafe { *right.__expand_as_ptr_method(scope) }.value(scope);
        let results = sums.__extract_list(scope);
        let sums = sums.read_value(scope);
        let adds = adds.read_value(scope);
        let [left_across, right_across] = [left_across, right_across].map(lowered::attribute);
        scope.register(&lowered::MultiplyOp::new(
            scope.ctx_mut(),
            left,
            right,
            adds,
            sums,
            results,
            left_across,
            right_across,
        ));
    });
}

/// Never called, because kernels without LLVM have no such instructions.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn multiply(
    _left: &[Piece],
    _right: &[Piece],
    sums: &mut Array<f32>,
    _adds: bool,
    #[comptime] _left_across: bool,
    #[comptime] _right_across: bool,
) {
    sums[0] = f32::new(0.0);
}

/// Waits for the products that [`multiply`] has begun.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
pub(super) fn finish(sums: &mut Array<f32>) {
    intrinsic!(|scope| {
        let results = sums.__extract_list(scope);
        let sums = sums.read_value(scope);
        scope.register(&lowered::FinishOp::new(scope.ctx_mut(), sums, results));
    });
}

/// Never called, because kernels without LLVM have no such instructions.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
pub(super) fn finish(sums: &mut Array<f32>) {
    sums[0] = f32::new(0.0);
}

/// Copies rows of whole blocks, of which the first piece is `from[first]`, to a tile from `begin` on.
#[cube]
pub(super) fn copy(
    from: &Box<[Piece]>,
    first: usize,
    tile: &mut Shared<[Piece]>,
    begin: usize,
    #[comptime] rows: usize,
    #[comptime] width: usize,
) {
    let pieces = comptime![width / 8];
    let unit = UNIT_POS as usize;
    let from = &from[first + unit..];
    // Pieces of a unit lie whole groups of eight rows apart, at the same place in them.
    let to = &mut tile[begin + place(unit / pieces, unit % pieces, rows)..];
    #[unroll]
    for copy in 0..comptime![rows * pieces / UNITS] {
        let further = comptime![copy * UNITS / pieces * WIDTH_PIECES];
        begin_copy(&from[copy * UNITS..], &mut to[further..]);
    }
}

/// Adds products of left factors in registers, from `16 first_step` on of the terms and one for each group of 16 rows of this plane, with the
/// rows of a block, `[columns, terms]`, or with `across` its columns, `[terms, columns]`. The block begins at `right[0]`.
///
/// All four planes of a cube must call it, after a barrier that follows the last write to the block.
#[cube]
#[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
pub(super) fn add(
    left: &LeftFactors,
    right: &[Piece],
    results: &mut Results,
    #[comptime] first_step: usize,
    #[comptime] steps: usize,
    #[comptime] columns: usize,
    #[comptime] groups: usize,
    #[comptime] across: bool,
) {
    let mut factors = Array::<FactorPair>::new(comptime![steps * groups * 4]);
    #[unroll]
    for factor in 0..comptime![steps * groups] {
        #[unroll]
        for register in 0..4usize {
            factors[comptime![factor * 4 + register]] = left.index(factor)[register];
        }
    }
    let eights = comptime![columns / 8];
    let mut sums = Array::<f32>::new(comptime![groups * eights * 4]);
    #[unroll]
    for at in 0..comptime![groups * eights * 4] {
        let (group, n, number) = comptime![(at / (eights * 4), at / 4 % eights, at % 4)];
        let pair = results.index(n)[comptime![group * 2 + number / 2]];
        sums[at] = pair.extract(comptime![number % 2]);
    }
    let rows = comptime![if across { steps * STEP } else { columns }];
    add_factors(&factors, right, &mut sums, rows, first_step, steps, groups, across);
    #[unroll]
    for n in 0..eights {
        #[unroll]
        for eight in 0..comptime![groups * 2] {
            let first = comptime![(eight / 2 * eights + n) * 4 + eight % 2 * 2];
            let mut pair = SumPair::empty();
            pair.insert(0usize, sums[first]);
            pair.insert(1usize, sums[comptime![first + 1]]);
            results.index_mut(n)[eight] = pair;
        }
    }
}

/// Adds the products of [`add`], whose left factors are one after the other for the groups of each step, and whose sums are for
/// each group.
#[cube]
#[cfg(all(feature = "cuda", not(feature = "cuda-cpp")))]
fn add_factors(
    factors: &Array<FactorPair>,
    right: &[Piece],
    sums: &mut Array<f32>,
    #[comptime] rows: usize,
    #[comptime] first_step: usize,
    #[comptime] steps: usize,
    #[comptime] groups: usize,
    #[comptime] across: bool,
) {
    intrinsic!(|scope| {
        // SAFETY: the pointer is a value of the kernel, whose slice lives during the call.
        let right = unsafe { *right.__expand_as_ptr_method(scope) }.value(scope);
        let factors = factors.read_value(scope);
        let results = sums.__extract_list(scope);
        let sums = sums.read_value(scope);
        let [rows, first_step, steps, groups] =
            [rows, first_step, steps, groups].map(lowered::index);
        let across = lowered::attribute(across);
        scope.register(&lowered::AddFactorsOp::new(
            scope.ctx_mut(),
            factors,
            right,
            sums,
            results,
            rows,
            first_step,
            steps,
            groups,
            across,
        ));
    });
}

/// Never called, because kernels without LLVM have no such instructions.
#[cube]
#[cfg(not(all(feature = "cuda", not(feature = "cuda-cpp"))))]
fn add_factors(
    _factors: &Array<FactorPair>,
    _right: &[Piece],
    sums: &mut Array<f32>,
    #[comptime] _rows: usize,
    #[comptime] _first_step: usize,
    #[comptime] _steps: usize,
    #[comptime] _groups: usize,
    #[comptime] _across: bool,
) {
    sums[0] = f32::new(0.0);
}

/// The product of [`multiply`] of blocks of a tile, without the instruction, for the simulation.
#[cube]
pub(super) fn multiply_simulated(
    tile: &Shared<[Piece]>,
    left: usize,
    right: usize,
    sums: &mut Array<f32>,
    #[comptime] left_across: bool,
    #[comptime] right_across: bool,
) {
    let lane = UNIT_POS_PLANE as usize;
    let plane = UNIT_POS as usize / 32 % 4;
    for at in 0..SUMS {
        let row = plane * 16 + lane / 4 + at / 2 % 2 * 8;
        let column = at / 4 * 8 + lane % 4 * 2 + at % 2;
        let mut sum = sums[at];
        for term in 0..DEPTH {
            sum += number(tile, left, row, term, left_across)
                * number(tile, right, column, term, right_across);
        }
        sums[at] = sum;
    }
}

/// Number of a factor in shared memory.
#[cube]
fn number(
    tile: &Shared<[Piece]>,
    begin: usize,
    outer: usize,
    term: usize,
    #[comptime] across: bool,
) -> f32 {
    let mut row = outer;
    let mut column = term;
    if comptime![across] {
        row = term;
        column = outer;
    }
    let piece = tile[begin + place(row, column / 8, DEPTH)];
    let mut number = f32::new(0.0);
    #[unroll]
    for n in 0..8usize {
        if n == column % 8 {
            number = f32::cast_from(piece.extract(n));
        }
    }
    number
}
