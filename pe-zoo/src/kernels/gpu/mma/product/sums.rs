//! Results from the sums of a product. They go through shared memory, so that a plane writes whole rows.

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::activation::{gelu, gelu_derivative, where_above};
use super::kernel::ProductSizes;
use super::{AfterSums, ProductForm};
use crate::kernels::activation::NumberActivation;
use crate::kernels::gpu::mma::tile::{Piece, SumPair};
use crate::kernels::gpu::mma::warpgroup::SUMS;

/// Four adjacent sums of a row.
type FourSums = Vector<f32, Const<4>>;
/// Rows of a plane.
pub(super) const ROWS: usize = 16;
/// Columns that a plane writes at once.
const COLUMNS: usize = 64;
/// Pieces of shared memory for the sums of a row.
const ROW_PIECES: usize = COLUMNS / 4;
/// Pieces of shared memory of a plane.
pub(super) const PLANE_PIECES: usize = ROWS * ROW_PIECES;
/// Sums of a unit that a plane writes at once.
const AT_ONCE: usize = ROWS * COLUMNS / 32;

/// Sums of 16 rows of a matrix from a row and a column on.
#[derive(CubeType)]
pub(super) struct RowsPlace {
    pub(super) matrix: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Writes the sums of a plane, plus the bias of their column. They go through `PLANE_PIECES` of the tile from `begin` on, which no other
/// plane uses.
#[cube]
pub(super) fn write<O: Float>(
    sums: &Array<f32>,
    tile: &mut Shared<[Piece]>,
    begin: usize,
    bias: &Box<[f32]>,
    beside: &mut Box<[Vector<O, Const<2>>]>,
    out: &mut Box<[Vector<O, Const<2>>]>,
    place: &RowsPlace,
    sizes: &ProductSizes,
    #[comptime] form: ProductForm,
) {
    let lane = UNIT_POS_PLANE as usize;
    let columns = sizes.columns;
    let (row, column) = (lane / 4, lane % 4 * 2);
    let written = begin + in_row(row, column / 4);
    let read = begin + in_row(lane / ROW_PIECES, lane % ROW_PIECES);
    let first = (place.matrix * sizes.rows + place.row) * columns + place.column;
    #[unroll]
    for part in 0..comptime![SUMS / AT_ONCE] {
        #[unroll]
        for n in 0..comptime![AT_ONCE / 4] {
            #[unroll]
            for eight in 0..2usize {
                let mut pair = SumPair::new(0.0);
                #[unroll]
                for one in 0..2usize {
                    pair.insert(one, sums[comptime![part * AT_ONCE + n * 4 + eight * 2 + one]]);
                }
                let at = further(written, comptime![n * 2]) + comptime![eight * 8 * ROW_PIECES];
                let pairs = tile.with_vector_size_mut::<Const<4>>();
                pairs[at * 2 + lane % 2] = Vector::<bf16, Const<4>>::reinterpret(pair);
            }
        }
        sync_plane();
        let first = first + comptime![part * COLUMNS];
        let first_column = place.column + comptime![part * COLUMNS];
        if comptime![form.whole || form.fours] {
            let own = lane % ROW_PIECES * 4;
            let inside = first_column + own < columns;
            let mut offset = FourSums::new(0.0);
            if comptime![form.bias] {
                if comptime![form.whole] {
                    offset = four(bias, first_column + own);
                } else if inside {
                    offset = four(bias, first_column + own);
                }
            }
            let mut at = (first + lane / ROW_PIECES * columns + own) / 4;
            #[unroll]
            for two in 0..comptime![ROWS * ROW_PIECES / 32] {
                // Two rows at once; rows are turned like columns.
                let turned = comptime![two * 2 % 8];
                let piece = tile[(read ^ turned) + comptime![two * 2 * ROW_PIECES]];
                let sums = FourSums::reinterpret(piece) + offset;
                if comptime![form.whole] {
                    finish::<O, Const<4>>(sums, beside, out, at, form);
                } else if inside && place.row + lane / ROW_PIECES + comptime![two * 2] < sizes.rows
                {
                    finish::<O, Const<4>>(sums, beside, out, at, form);
                }
                at += columns / 2;
            }
        } else {
            #[unroll]
            for half in 0..comptime![COLUMNS / 32] {
                let own = lane + comptime![half * 32];
                let inside = first_column + own < columns;
                let mut offset = f32::new(0.0);
                if comptime![form.bias] {
                    if inside {
                        offset = bias[first_column + own];
                    }
                }
                for row in 0..ROWS {
                    let piece = tile[begin + in_row(row, own / 4)];
                    let four = FourSums::reinterpret(piece);
                    let mut sum = four.extract(0usize);
                    #[unroll]
                    for n in 1..4usize {
                        if own % 4 == n {
                            sum = four.extract(n);
                        }
                    }
                    if inside && place.row + row < sizes.rows {
                        let sum = Vector::<f32, Const<1>>::new(sum + offset);
                        let at = first + row * columns + own;
                        finish::<O, Const<1>>(sum, beside, out, at, form);
                    }
                }
            }
        }
        sync_plane();
    }
}

/// Applies the last operation, and writes the results at a place that counts vectors.
#[cube]
fn finish<O: Float, N: Size>(
    sums: Vector<f32, N>,
    beside: &mut Box<[Vector<O, Const<2>>]>,
    out: &mut Box<[Vector<O, Const<2>>]>,
    at: usize,
    #[comptime] form: ProductForm,
) {
    let mut results = sums;
    match comptime![form.after] {
        AfterSums::Nothing => {}
        AfterSums::Activated(activation) => {
            let activated = match comptime![activation] {
                NumberActivation::Gelu => gelu::<N>(sums, comptime![form.copies]),
                NumberActivation::Relu => where_above::<N>(sums, sums),
            };
            beside.with_vector_size_mut::<N>()[at] = Vector::cast_from(activated);
        }
        AfterSums::Differentiated(activation) => {
            let x = Vector::<f32, N>::cast_from(beside.with_vector_size::<N>()[at]);
            results = match comptime![activation] {
                NumberActivation::Gelu => sums * gelu_derivative::<N>(x, comptime![form.copies]),
                NumberActivation::Relu => where_above::<N>(x, sums),
            };
        }
    }
    out.with_vector_size_mut::<N>()[at] = Vector::cast_from(results);
}

/// Place of the four sums that lie `fours`, an even number, further in their row than those at `at`, the first or the second.
#[cube]
fn further(at: usize, #[comptime] fours: usize) -> usize {
    (at ^ comptime![fours % 8]) + comptime![fours / 8 * 8]
}

/// Place of four sums in a plane's part of the tile. Those of eight adjacent rows lie in different banks.
#[cube]
fn in_row(row: usize, four: usize) -> usize {
    row * ROW_PIECES + (four ^ (row & 7))
}

#[cube]
fn four(numbers: &Box<[f32]>, first: usize) -> FourSums {
    let mut four = FourSums::new(0.0);
    #[unroll]
    for n in 0..4usize {
        four.insert(n, numbers[first + n]);
    }
    four
}
