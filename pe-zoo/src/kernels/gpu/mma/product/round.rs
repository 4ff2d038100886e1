//! Rows of bf16, padded with zeros to whole pieces.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, bf16};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::calculate_cube_count_elemwise;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::cast;
use burn_cubecl::tensor::CubeTensor;

use crate::kernels::gpu::mma::config::UNITS;
use crate::kernels::gpu::mma::packed::empty;
use crate::kernels::gpu::mma::tile::Piece;

/// Rounds a contiguous matrix `[rows, width]` of f32.
pub(in crate::kernels::gpu) fn rounded_rows(
    matrix: CubeTensor,
    rows: usize,
    width: usize,
) -> CubeTensor {
    if width.is_multiple_of(8) {
        return Cube::float_reshape(cast(matrix, DType::BF16), [rows, width].into());
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
