//! Sums in one order: over the units of a cube, and over the rows of a matrix.

use burn::tensor::{DType, bf16};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes, cubes_of_units, empty};

/// Sum of one number of each unit of the cube, for all of them. `units` is a power of two. All units must call it.
#[cube]
pub(super) fn sum_of_units(
    value: f32,
    shared: &mut Shared<[f32]>,
    #[comptime] units: usize,
) -> f32 {
    let unit = UNIT_POS as usize;
    // All units must have read the result of an earlier sum.
    sync_cube();
    shared[unit] = value;
    sync_cube();
    #[unroll]
    for halving in 0..comptime![units.ilog2() as usize] {
        let half = comptime![units / 2] >> halving;
        if unit < half {
            shared[unit] = shared[unit] + shared[unit + half];
        }
        sync_cube();
    }
    shared[0]
}

/// Largest of one number of each unit of the cube; like [`sum_of_units`].
#[cube]
pub(super) fn largest_of_units(
    value: f32,
    shared: &mut Shared<[f32]>,
    #[comptime] units: usize,
) -> f32 {
    let unit = UNIT_POS as usize;
    sync_cube();
    shared[unit] = value;
    sync_cube();
    #[unroll]
    for halving in 0..comptime![units.ilog2() as usize] {
        let half = comptime![units / 2] >> halving;
        if unit < half {
            shared[unit] = max(shared[unit], shared[unit + half]);
        }
        sync_cube();
    }
    shared[0]
}

/// Columns of a cube that sums rows.
const COLUMNS: usize = 32;
/// Parts into which it divides the rows.
const PARTS: usize = 8;

/// Most rows that one cube sums for its columns.
const MOST_ROWS: usize = 1024;
/// Rows of a cube where there are more.
const ROWS_EACH: usize = 512;

/// Sums the rows of a contiguous matrix of f32 or bf16, `[R, C] -> [C]`.
pub(in crate::kernels::gpu) fn sum_of_rows(
    matrix: CubeTensor,
    rows: usize,
    columns: usize,
) -> CubeTensor {
    if rows <= FEW_ROWS && columns.is_multiple_of(4) && matrix.dtype == DType::F32 {
        return sum_of_few(matrix, rows, columns);
    }
    if rows > MOST_ROWS {
        let chunks = rows.div_ceil(ROWS_EACH);
        let sums = empty(&matrix, [chunks, columns]);
        return sum_of_rows(launch(matrix, sums, rows, columns, ROWS_EACH), chunks, columns);
    }
    let sums = empty(&matrix, [columns]);
    launch(matrix, sums, rows, columns, rows)
}

/// Most rows that one unit sums for its columns.
const FEW_ROWS: usize = 64;

fn sum_of_few(matrix: CubeTensor, rows: usize, columns: usize) -> CubeTensor {
    let sums = empty(&matrix, [columns]);
    let (client, fours) = (matrix.client.clone(), columns / 4);
    let (count, dim) = cubes_of_units(&client, fours);
    let to = sums.clone().into_buffer_arg();
    sums_of_few::launch(&client, count, dim, 4, matrix.into_buffer_arg(), to, rows, fours);
    sums
}

/// Each unit sums all rows of a vector of columns.
#[cube(launch)]
fn sums_of_few<N: Size>(
    matrix: &[Vector<f32, N>],
    sums: &mut [Vector<f32, N>],
    rows: usize,
    columns: usize,
) {
    let column = ABSOLUTE_POS;
    if column < columns {
        let mut sum = Vector::new(0.0);
        for row in 0..rows {
            sum += matrix[row * columns + column];
        }
        sums[column] = sum;
    }
}

/// Sums of each `each` rows.
fn launch(
    matrix: CubeTensor,
    sums: CubeTensor,
    rows: usize,
    columns: usize,
    each: usize,
) -> CubeTensor {
    let blocks = columns.div_ceil(COLUMNS);
    let (count, dim) = cubes(&matrix.client, blocks * rows.div_ceil(each), COLUMNS * PARTS);
    let launch = match matrix.dtype {
        DType::BF16 => row_sums::launch::<bf16>,
        _ => row_sums::launch::<f32>,
    };
    launch(
        &matrix.client.clone(),
        count,
        dim,
        matrix.into_buffer_arg(),
        sums.clone().into_buffer_arg(),
        rows,
        columns,
        each,
        blocks,
    );
    sums
}

/// A cube sums `each` rows of a block of columns. Each part adds every [`PARTS`]-th row; their sums are added in order.
#[cube(launch)]
fn row_sums<F: Float>(
    matrix: &[F],
    sums: &mut [f32],
    rows: usize,
    columns: usize,
    each: usize,
    blocks: usize,
) {
    let unit = UNIT_POS as usize;
    let column = CUBE_POS % blocks * COLUMNS + unit % COLUMNS;
    let chunk = CUBE_POS / blocks;
    let part = unit / COLUMNS;
    let end = min(rows, (chunk + 1) * each);
    let mut shared = Shared::<[f32]>::new_slice(comptime![COLUMNS * PARTS]);
    let mut sum = f32::new(0.0);
    if column < columns {
        let mut row = chunk * each + part;
        while row < end {
            sum += f32::cast_from(matrix[row * columns + column]);
            row += PARTS;
        }
    }
    shared[unit] = sum;
    sync_cube();
    if part == 0 && column < columns && chunk * each < rows {
        #[unroll]
        for other in 1..PARTS {
            sum += shared[other * COLUMNS + unit];
        }
        sums[chunk * columns + column] = sum;
    }
}
