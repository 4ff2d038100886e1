//! Conversion of tensors to what the kernels walk over: rows of bf16, plane after plane, padded with zeros to whole cubes.

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{MmaConfig, UNITS};
use super::tile::{Piece, SumPair, row_sum};

/// Eight numbers of a row.
pub(super) type Eight = Vector<f32, Const<8>>;

/// Rows that a cube packs; four units share a row.
pub(super) const PACKED: usize = UNITS / 4;

/// Tensor `[B, H, rows, dim]` in any order of its first three axes. Strides count eight numbers.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Strided {
    pub(super) numbers: Box<[Eight]>,
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) batch_stride: usize,
    pub(super) head_stride: usize,
    pub(super) row_stride: usize,
}

#[cube]
impl Strided {
    /// Index of the first number of a row.
    pub(super) fn line(&self, row: usize) -> usize {
        let plane = CUBE_POS_Y as usize;
        plane / self.heads * self.batch_stride
            + plane % self.heads * self.head_stride
            + row * self.row_stride
    }
}

/// Row of a block that this unit helps to pack.
#[cube]
pub(super) fn own_row(block: usize) -> usize {
    block * PACKED + UNIT_POS as usize / 4
}

/// Queries, keys and values as the kernels read them, each `[plane, padded rows, width]`.
#[derive(CubeType, CubeLaunch)]
pub(super) struct PackedRows {
    q: Box<[Piece]>,
    k: Box<[Piece]>,
    values: Box<[Piece]>,
}

/// Packs queries, keys and values. A cube packs some rows of one of them.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn pack_kernel(
    q: &Strided,
    k: &Strided,
    values: &Strided,
    to: &mut PackedRows,
    padded_rows: usize,
    padded_columns: usize,
    #[comptime] config: MmaConfig,
) {
    let of_rows = padded_rows / PACKED;
    let of_columns = padded_columns / PACKED;
    let block = CUBE_POS_X as usize;
    let (head_dim, width) = comptime![(config.head_dim, config.width())];
    let (value_dim, value_width) = comptime![(config.value_dim, config.value_width())];
    if block < of_rows {
        pack(q, &mut to.q, block, padded_rows, head_dim, width);
    } else if block < of_rows + of_columns {
        pack(k, &mut to.k, block - of_rows, padded_columns, head_dim, width);
    } else {
        let block = block - of_rows - of_columns;
        pack(values, &mut to.values, block, padded_columns, value_dim, value_width);
    }
}

#[cube]
fn pack(
    from: &Strided,
    to: &mut Box<[Piece]>,
    block: usize,
    padded: usize,
    #[comptime] dim: usize,
    #[comptime] width: usize,
) {
    let row = own_row(block);
    let quarter = UNIT_POS as usize % 4;
    let begin = (CUBE_POS_Y as usize * padded + row) * comptime![width / 8];
    #[unroll]
    for step in 0..comptime![width / 32] {
        let piece = step * 4 + quarter;
        let mut packed = Piece::new(bf16::new(0.0));
        if row < from.rows && piece < comptime![dim / 8] {
            packed = Piece::cast_from(from.numbers[from.line(row) + piece]);
        }
        to[begin + piece] = packed;
    }
}

/// Packs the gradient of the output, and writes `statistics`, `[plane, padded rows, 2]`: the given logarithms, and the
/// dot products of the rows of the output and its gradient.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn pack_upstream_kernel(
    grad: &Strided,
    output: &Strided,
    log: &Box<[f32]>,
    to: &mut Box<[Piece]>,
    statistics: &mut Box<[SumPair]>,
    #[comptime] dim: usize,
    #[comptime] width: usize,
) {
    let row = own_row(CUBE_POS_X as usize);
    // Cubes cover the padded rows of a plane.
    let packed_row = CUBE_POS_Y as usize * CUBE_COUNT_X as usize * PACKED + row;
    let quarter = UNIT_POS as usize % 4;
    let mut products = Eight::new(0.0);
    #[unroll]
    for step in 0..comptime![width / 32] {
        let piece = step * 4 + quarter;
        let mut packed = Piece::new(bf16::new(0.0));
        if row < grad.rows && piece < comptime![dim / 8] {
            let numbers = grad.numbers[grad.line(row) + piece];
            products = fma(numbers, output.numbers[output.line(row) + piece], products);
            packed = Piece::cast_from(numbers);
        }
        to[packed_row * comptime![width / 8] + piece] = packed;
    }
    let mut sum = f32::new(0.0);
    #[unroll]
    for i in 0..8usize {
        sum += products.extract(i);
    }
    sum = row_sum(sum);
    if quarter == 0 {
        let mut pair = SumPair::empty();
        pair.insert(0usize, log[packed_row]);
        pair.insert(1usize, sum);
        statistics[packed_row] = pair;
    }
}
