//! Rows of bf16, padded with zeros to whole pieces.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, bf16};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::calculate_cube_count_elemwise;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::{cast, into_contiguous};
use burn_cubecl::tensor::CubeTensor;

use crate::kernels::gpu::elementwise::sums::sum_of_rows;
use crate::kernels::gpu::mma::config::UNITS;
use crate::kernels::gpu::mma::pack::Eight;
use crate::kernels::gpu::mma::tensors::empty;
use crate::kernels::gpu::mma::tile::Piece;

/// Rounds a contiguous matrix `[rows, width]` of f32.
pub(in crate::kernels::gpu) fn rounded_rows(
    matrix: CubeTensor,
    rows: usize,
    width: usize,
) -> CubeTensor {
    if width.is_multiple_of(8) {
        // CUDA pads the rows of new tensors.
        let rounded = into_contiguous(cast(matrix, DType::BF16));
        return Cube::float_reshape(rounded, [rows, width].into());
    }
    let pieces = width.div_ceil(8);
    let to = empty(&matrix, &[rows, pieces * 8], DType::BF16);
    let dim = CubeDim::new_1d(UNITS as u32);
    let count = calculate_cube_count_elemwise(&matrix.client, rows * pieces, dim);
    round_rows::launch(
        &matrix.client.clone(),
        count,
        dim,
        matrix.into_buffer_arg(),
        to.clone().into_buffer_arg(),
        rows * pieces,
        width,
    );
    to
}

/// Rows that a cube rounds and sums.
pub(in crate::kernels::gpu::mma) const ROWS_EACH: usize = 256;
/// Rows that a cube reads at once, one for each plane.
pub(in crate::kernels::gpu::mma) const AT_ONCE: usize = 8;
/// Pieces of a row that a cube rounds, one for each unit of a plane.
pub(in crate::kernels::gpu::mma) const PIECES_EACH: usize = 32;

/// Columns of a wider matrix of bf16, and of sums of [`ROWS_EACH`] of its rows.
#[derive(Debug, Clone)]
pub(in crate::kernels::gpu) struct RoundedColumns {
    /// Matrix, `[rows, width]`.
    pub(in crate::kernels::gpu) matrix: CubeTensor,
    /// Sums, `[chunks, width]`.
    pub(in crate::kernels::gpu) sums: CubeTensor,
    /// Width of the whole matrix, a multiple of eight.
    pub(in crate::kernels::gpu) width: usize,
}

impl RoundedColumns {
    pub(in crate::kernels::gpu) fn new(like: &CubeTensor, rows: usize, width: usize) -> Self {
        let sums = empty(like, &[rows.div_ceil(ROWS_EACH), width], DType::F32);
        Self { matrix: empty(like, &[rows, width], DType::BF16), sums, width }
    }

    /// Rounds a contiguous matrix of f32, `[rows, columns]`, to the columns from `first` on.
    pub(in crate::kernels::gpu) fn write(
        &self,
        matrix: CubeTensor,
        rows: usize,
        columns: usize,
        first: usize,
    ) {
        let (pieces, chunks) = (columns / 8, rows.div_ceil(ROWS_EACH));
        round_and_sum_rows::launch(
            &matrix.client.clone(),
            CubeCount::Static(pieces.div_ceil(PIECES_EACH) as u32, chunks as u32, 1),
            CubeDim::new_1d((AT_ONCE * PIECES_EACH) as u32),
            matrix.into_buffer_arg(),
            self.matrix.clone().into_buffer_arg(),
            self.sums.clone().into_buffer_arg(),
            rows,
            pieces,
            self.width / 8,
            first / 8,
        );
    }

    /// Sum of all rows, `[width]`.
    pub(in crate::kernels::gpu) fn sum(self) -> CubeTensor {
        let [chunks, width] = self.sums.meta.shape().dims();
        sum_of_rows(self.sums, chunks, width)
    }
}

/// Rounds the gradient of rows of f32, `[rows, width]`, and sums its rows if the gradient of a bias is needed.
pub(in crate::kernels::gpu) fn rounded_gradient(
    matrix: CubeTensor,
    rows: usize,
    width: usize,
    of_bias: bool,
) -> (CubeTensor, Option<CubeTensor>) {
    if !of_bias {
        return (rounded_rows(matrix, rows, width), None);
    }
    if !width.is_multiple_of(8) {
        let sum = sum_of_rows(matrix.clone(), rows, width);
        return (rounded_rows(matrix, rows, width), Some(sum));
    }
    let rounded = RoundedColumns::new(&matrix, rows, width);
    rounded.write(matrix, rows, width, 0);
    (rounded.matrix.clone(), Some(rounded.sum()))
}

/// A cube rounds [`ROWS_EACH`] rows of a block of columns. Each plane adds every [`AT_ONCE`]-th row; their sums are added
/// in order. Rows of the results have `wide` pieces, of which the first written is `first`.
#[cube(launch, create_dummy_kernel)]
pub(in crate::kernels::gpu::mma) fn round_and_sum_rows(
    from: &Box<[Eight]>,
    to: &mut Box<[Piece]>,
    sums: &mut Box<[f32]>,
    rows: usize,
    pieces: usize,
    wide: usize,
    first: usize,
) {
    let unit = UNIT_POS as usize;
    let plane = unit / PIECES_EACH;
    let piece = CUBE_POS_X as usize * PIECES_EACH + unit % PIECES_EACH;
    let chunk = CUBE_POS_Y as usize;
    let mut sum = Eight::new(0.0);
    if piece < pieces {
        let end = min(rows, (chunk + 1) * ROWS_EACH);
        let mut row = chunk * ROWS_EACH + plane;
        while row < end {
            let numbers = from[row * pieces + piece];
            to[row * wide + first + piece] = Piece::cast_from(numbers);
            sum += numbers;
            row += AT_ONCE;
        }
    }
    let mut shared = Shared::<[f32]>::new_slice(comptime![AT_ONCE * PIECES_EACH * 8]);
    #[unroll]
    for n in 0..8usize {
        shared[unit + n * comptime![AT_ONCE * PIECES_EACH]] = sum.extract(n);
    }
    sync_cube();
    if plane == 0 && piece < pieces {
        #[unroll]
        for n in 0..8usize {
            let mut total = f32::new(0.0);
            #[unroll]
            for other in 0..AT_ONCE {
                total += shared[unit + comptime![other * PIECES_EACH + n * AT_ONCE * PIECES_EACH]];
            }
            sums[(chunk * wide + first + piece) * 8 + n] = total;
        }
    }
}

/// Each unit writes a piece.
#[cube(launch, create_dummy_kernel)]
pub(in crate::kernels::gpu::mma) fn round_rows(
    from: &Box<[f32]>,
    to: &mut Box<[Piece]>,
    count: usize,
    width: usize,
) {
    let at = ABSOLUTE_POS;
    if at < count {
        let pieces = width.div_ceil(8);
        let (row, first) = (at / pieces, at % pieces * 8);
        let mut piece = Piece::new(bf16::new(0.0));
        #[unroll]
        for n in 0..8usize {
            if first + n < width {
                piece.insert(n, bf16::cast_from(from[row * width + first + n]));
            }
        }
        to[at] = piece;
    }
}
