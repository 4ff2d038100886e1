//! Blocks of rows in shared memory, and products of them whose results stay in registers.
//!
//! A result of 16 x 8 is two pairs in each lane: columns `2 (lane % 4)` and the next of row `lane / 4`, and of the row
//! eight further. Two adjacent results have the layout of a factor of 16 x 16, so that a product's result is the next
//! product's left factor without shared memory. A plane that owns several groups of 16 rows uses each right factor that it
//! reads for all of them.

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::cmma::{MatrixIdent, MmaDefinition};
use burn_cubecl::cubecl::prelude::*;

use super::config::{ACROSS, Channels, OWNED, ROWS, STEP, UNITS};
use super::copies::begin_copy;

/// 16 bytes of a row.
pub(super) type Piece = Vector<bf16, Const<8>>;
/// A register of a factor.
pub(super) type FactorPair = Vector<bf16, Const<2>>;
/// Two adjacent numbers of a result.
pub(super) type SumPair = Vector<f32, Const<2>>;
/// Factors of 16 x 16, one for each group of rows, and then one after the other along the inner dimension.
pub(super) type LeftFactors = Sequence<Array<FactorPair>>;
/// Results of 16 x 8, one after the other across the columns; each has two pairs for each group of rows.
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

/// Place of the piece that lies `pieces`, an even number, further in its row than that at `at`, which is the first or the
/// second of the row. It is one operation, so products of a block share the place of their first piece.
#[cube]
pub(super) fn further(at: usize, #[comptime] pieces: usize, #[comptime] width: usize) -> usize {
    let turned = comptime![if width / 8 % 8 == 0 { pieces % 8 } else { pieces % 4 }];
    (at ^ turned) + comptime![pieces - turned]
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

/// Begins to copy `rows` adjacent rows, of which the first piece is `from[first]`, to a block in shared memory, which begins
/// at `begin`.
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
    if comptime![UNITS % (8 * pieces) == 0] {
        // Pieces of a unit lie whole groups of eight rows apart, at the same place in them.
        let to = &mut tile[begin + place(unit / pieces, unit % pieces, width)..];
        #[unroll]
        for copy in 0..comptime![rows * width / 8 / UNITS] {
            begin_copy(&from[copy * UNITS..], &mut to[copy * UNITS..]);
        }
    } else {
        #[unroll]
        for copy in 0..comptime![rows * width / 8 / UNITS] {
            let at = unit + copy * UNITS;
            let to = begin + place(at / pieces, at % pieces, width);
            begin_copy(&from[copy * UNITS..], &mut tile[to..]);
        }
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

/// Reads left factors, one for each group of 16 rows of this plane from `first_row` on: channels from `16 step` on.
#[cube]
pub(super) fn left_factors(
    tile: &Shared<[Piece]>,
    first_row: usize,
    factors: &mut LeftFactors,
    #[comptime] step: usize,
    #[comptime] groups: usize,
    #[comptime] width: usize,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    let at = further(place(first_row + lane % 16, lane / 16, width), comptime![step * 2], width);
    let lines = &tile[at..];
    #[unroll]
    for group in 0..groups {
        let pieces = &lines[comptime![group * ROWS * width / 8]..];
        factors.push(multiply.load_matrix::<Piece, Const<2>>(
            pieces,
            MatrixIdent::A,
            4usize,
            false,
        ));
    }
}

/// `count` results of 16 x 8 for each group of 16 rows.
#[cube]
pub(super) fn zeros(#[comptime] count: usize, #[comptime] groups: usize) -> Results {
    let mut results = Results::new();
    #[unroll]
    for _ in 0..count {
        let mut result = Array::<SumPair>::new(comptime![2 * groups]);
        #[unroll]
        for eight in 0..comptime![2 * groups] {
            result[eight] = SumPair::new(0.0);
        }
        results.push(result);
    }
    results
}

/// Adds the products of left factors from `first` on, one for each group of rows, with two adjacent right factors to two
/// results.
#[cube]
pub(super) fn add_two(
    left: &LeftFactors,
    both: &Array<FactorPair>,
    results: &mut Results,
    #[comptime] first: usize,
    #[comptime] two: usize,
    #[comptime] groups: usize,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    #[unroll]
    for one in 0..2usize {
        let mut factor = Array::<FactorPair>::new(2usize);
        factor[0] = both[one * 2];
        factor[1] = both[one * 2 + 1];
        let result = results.index_mut(two * 2 + one);
        #[unroll]
        for group in 0..groups {
            let mut of_group = Array::<SumPair>::new(2usize);
            of_group[0] = result[group * 2];
            of_group[1] = result[group * 2 + 1];
            multiply.execute_inplace(left.index(first + group), &factor, &mut of_group);
            result[group * 2] = of_group[0];
            result[group * 2 + 1] = of_group[1];
        }
    }
}

/// Adds products of this plane's rows with the rows of a block, whose first piece is `tile[begin]`, over the channels
/// of one step. The left factors are those from `first` on, one for each group of rows.
#[cube]
#[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
pub(super) fn add_dot(
    left: &LeftFactors,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] first: usize,
    #[comptime] step: usize,
    #[comptime] columns: usize,
    #[comptime] groups: usize,
    #[comptime] width: usize,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    let row = lane % 8 + lane / 16 * 8;
    let at = further(begin + place(row, lane / 8 % 2, width), comptime![step * 2], width);
    // A slice of a slice: the second offset is part of the instruction.
    let lines = &tile[at..];
    #[unroll]
    for two in 0..comptime![columns / ACROSS / 2] {
        let pieces = &lines[comptime![two * 16 * width / 8]..];
        let both = multiply.load_matrix::<Piece, Const<2>>(pieces, MatrixIdent::B, 4usize, false);
        add_two(left, &both, results, first, two, groups);
    }
}

/// Adds the products of left factors, one for each group of rows, with channels of 16 rows of a block, from `16 step` on.
#[cube]
pub(super) fn add_mix_step(
    left: &LeftFactors,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] step: usize,
    #[comptime] groups: usize,
    #[comptime] channels: Channels,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    let width = comptime![channels.width];
    let row = lane % 8 + lane / 8 % 2 * 8;
    let first = begin + place(row, lane / 16, width);
    #[unroll]
    for one in 0..comptime![channels.steps()] {
        let two = comptime![channels.from / STEP + one];
        let at = further(first, comptime![two * 2], width);
        let lines = &tile[at..];
        let pieces = &lines[comptime![step * 16 * width / 8]..];
        let both = multiply.load_matrix::<Piece, Const<2>>(pieces, MatrixIdent::B, 4usize, true);
        add_two(left, &both, results, 0usize, two, groups);
    }
}

/// Adds left factors of a step, one for each group of rows: results that are rounded.
#[cube]
pub(super) fn mix_factors(
    weights: &Results,
    factors: &mut LeftFactors,
    #[comptime] step: usize,
    #[comptime] groups: usize,
) {
    #[unroll]
    for group in 0..groups {
        let mut factor = Array::<FactorPair>::new(4usize);
        #[unroll]
        for quarter in 0..4usize {
            let result = weights.index(step * 2 + quarter / 2);
            factor[quarter] = FactorPair::cast_from(result[group * 2 + quarter % 2]);
        }
        factors.push(factor);
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
    for eight in 0..2usize {
        let row = first_row + lane / 4 + comptime![eight * 8];
        pairs[place(row, piece.runtime(), OWNED) * 4 + lane % 4] =
            FactorPair::cast_from(result[eight]);
    }
}

/// Adds the product of a square's columns from `first_column` on, `[64, 16]` transposed, with the rows of a block,
/// `[64, width]`, for some of its channels.
#[cube]
pub(super) fn add_transposed_mix(
    square: &Shared<[Piece]>,
    first_column: usize,
    tile: &Shared<[Piece]>,
    begin: usize,
    results: &mut Results,
    #[comptime] channels: Channels,
) {
    let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for step in 0..comptime![OWNED / STEP] {
        let row = comptime![step * 16] + lane % 8 + lane / 16 * 8;
        let at = place(row, first_column / 8 + lane / 8 % 2, OWNED);
        let factor =
            multiply.load_matrix::<Piece, Const<2>>(&square[at..], MatrixIdent::A, 4usize, true);
        let mut left = LeftFactors::new();
        left.push(factor);
        add_mix_step(&left, tile, begin, results, step, 1usize, channels);
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
