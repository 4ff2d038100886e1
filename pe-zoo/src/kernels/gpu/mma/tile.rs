//! Blocks of rows in shared memory, and products of them whose results stay in registers.
//!
//! A result of 16 x 8 is two pairs in each lane: columns `2 (lane % 4)` and the next of row `lane / 4`, and of the row
//! eight further. Two adjacent results have the layout of a factor of 16 x 16, so that a product's result is the next
//! product's left factor without shared memory.

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::cmma::{MatrixIdent, MmaDefinition};
use burn_cubecl::cubecl::prelude::*;

use super::config::{ACROSS, OWNED, ROWS, STEP, UNITS};

/// 16 bytes of a row.
pub(super) type Piece = Vector<bf16, Const<8>>;
/// A register of a factor.
pub(super) type FactorPair = Vector<bf16, Const<2>>;
/// Two adjacent numbers of a result.
pub(super) type SumPair = Vector<f32, Const<2>>;
/// Factors of 16 x 16, one after the other along the inner dimension.
pub(super) type LeftFactors = Sequence<Array<FactorPair>>;
/// Results of 16 x 8, one after the other across the columns.
pub(super) type Results = Sequence<Array<SumPair>>;

/// Place of a piece in shared memory. Pieces of eight adjacent rows lie in different banks.
#[cube]
pub(super) fn place(row: usize, piece: usize, #[comptime] width: usize) -> usize {
    let pieces = comptime![width / 8];
    let mut shift = row & 7;
    if comptime![pieces % 8 != 0] {
        shift = (row / 2) & 3;
    }
    row * pieces + (piece ^ shift)
}

/// Reads this unit's pieces of `rows` adjacent rows, of which the first piece is `from[begin]`.
#[cube]
pub(super) fn fetch(
    from: &Box<[Piece]>,
    begin: usize,
    to: &mut Array<Piece>,
    #[comptime] rows: usize,
    #[comptime] width: usize,
) {
    #[unroll]
    for copy in 0..comptime![rows * width / 8 / UNITS] {
        to[copy] = from[begin + UNIT_POS as usize + copy * UNITS];
    }
}

/// Writes pieces that [`fetch`] has read to a block in shared memory, which begins at `begin`.
#[cube]
pub(super) fn store(
    pieces: &Array<Piece>,
    tile: &mut Shared<[Piece]>,
    begin: usize,
    #[comptime] rows: usize,
    #[comptime] width: usize,
) {
    #[unroll]
    for copy in 0..comptime![rows * width / 8 / UNITS] {
        let at = UNIT_POS as usize + copy * UNITS;
        tile[begin + place(at / comptime![width / 8], at % comptime![width / 8], width)] =
            pieces[copy];
    }
}

/// Reads a left factor: the 16 rows of this plane from `first_row` on, channels from `16 step` on.
#[cube]
pub(super) fn left_factor(
    tile: &Shared<[Piece]>,
    first_row: usize,
    #[comptime] step: usize,
    #[comptime] width: usize,
) -> Array<FactorPair> {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    let at = place(first_row + lane % 16, comptime![step * 2] + lane / 16, width);
    multiply.load_matrix::<Piece, Const<2>>(&tile[at..], MatrixIdent::A, 4usize, false)
}

#[cube]
pub(super) fn zeros(#[comptime] count: usize) -> Results {
    let mut results = Results::new();
    #[unroll]
    for _ in 0..count {
        let mut result = Array::<SumPair>::new(2usize);
        result[0] = SumPair::new(0.0);
        result[1] = SumPair::new(0.0);
        results.push(result);
    }
    results
}

/// Adds the product of one left factor with two adjacent right factors to two results.
#[cube]
pub(super) fn add_two(
    left: &Array<FactorPair>,
    both: &Array<FactorPair>,
    results: &mut Results,
    #[comptime] two: usize,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    #[unroll]
    for one in 0..2usize {
        let mut factor = Array::<FactorPair>::new(2usize);
        factor[0] = both[one * 2];
        factor[1] = both[one * 2 + 1];
        multiply.execute_inplace(left, &factor, results.index_mut(two * 2 + one));
    }
}

/// Adds products of this plane's rows with the rows of a block, whose first piece is `tile[begin]`, over the channels
/// of one step.
#[cube]
pub(super) fn add_dot(
    left: &Array<FactorPair>,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] step: usize,
    #[comptime] columns: usize,
    #[comptime] width: usize,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for two in 0..comptime![columns / ACROSS / 2] {
        let row = comptime![two * 16] + lane % 8 + lane / 16 * 8;
        let at = begin + place(row, comptime![step * 2] + lane / 8 % 2, width);
        let both =
            multiply.load_matrix::<Piece, Const<2>>(&tile[at..], MatrixIdent::B, 4usize, false);
        add_two(left, &both, results, two);
    }
}

/// Adds the product of one left factor with 16 rows of a block, from `16 step` on.
#[cube]
fn add_mix_step(
    left: &Array<FactorPair>,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] step: usize,
    #[comptime] width: usize,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for two in 0..comptime![width / ACROSS / 2] {
        let row = comptime![step * 16] + lane % 8 + lane / 8 % 2 * 8;
        let at = begin + place(row, comptime![two * 2] + lane / 16, width);
        let both =
            multiply.load_matrix::<Piece, Const<2>>(&tile[at..], MatrixIdent::B, 4usize, true);
        add_two(left, &both, results, two);
    }
}

/// Adds the product of a result, `[16, rows]`, with the rows of a block, `[rows, width]`.
#[cube]
pub(super) fn add_mix(
    weights: &Results,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] rows: usize,
    #[comptime] width: usize,
) {
    #[unroll]
    for step in 0..comptime![rows / STEP] {
        let mut left = Array::<FactorPair>::new(4usize);
        #[unroll]
        for quarter in 0..4usize {
            left[quarter] =
                FactorPair::cast_from(weights.index(step * 2 + quarter / 2)[quarter % 2]);
        }
        add_mix_step(&left, tile, begin, results, step, width);
    }
}

/// Writes a result of 16 x 8 to a square of 64 x 64 in shared memory: rows from `first_row` on, columns from `8 piece` on.
#[cube]
pub(super) fn store_result(
    result: &Array<SumPair>,
    square: &mut Shared<[Piece]>,
    first_row: usize,
    #[comptime] piece: usize,
) {
    let lane = UNIT_POS_PLANE as usize;
    let pairs = square.with_vector_size_mut::<Const<2>>();
    #[unroll]
    for half in 0..2usize {
        let row = first_row + lane / 4 + comptime![half * 8];
        pairs[place(row, piece.runtime(), OWNED) * 4 + lane % 4] =
            FactorPair::cast_from(result[half]);
    }
}

/// Adds the product of a square's columns from `first_column` on, `[64, 16]` transposed, with the rows of a block,
/// `[64, width]`.
#[cube]
pub(super) fn add_transposed_mix(
    square: &Shared<[Piece]>,
    first_column: usize,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] width: usize,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for step in 0..comptime![OWNED / STEP] {
        let row = comptime![step * 16] + lane % 8 + lane / 16 * 8;
        let at = place(row, first_column / 8 + lane / 8 % 2, OWNED);
        let left =
            multiply.load_matrix::<Piece, Const<2>>(&square[at..], MatrixIdent::A, 4usize, true);
        add_mix_step(&left, tile, begin, results, step, width);
    }
}

/// Sum or maximum of a row's numbers in its four lanes.
#[cube]
pub(super) fn row_sum(own: f32) -> f32 {
    let sum = own + plane_shuffle_xor(own, 1);
    sum + plane_shuffle_xor(sum, 2)
}

#[cube]
pub(super) fn row_max(own: f32) -> f32 {
    let most = max(own, plane_shuffle_xor(own, 1));
    max(most, plane_shuffle_xor(most, 2))
}
