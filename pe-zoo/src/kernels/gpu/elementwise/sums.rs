//! Sums in one order: over the units of a cube, and over the rows of a matrix.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::{cubes, empty};

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

/// Sums the rows of a contiguous matrix, `[R, C] -> [C]`.
pub(super) fn sum_of_rows(matrix: CubeTensor, rows: usize, columns: usize) -> CubeTensor {
    let sums = empty(&matrix, [columns]);
    let (count, dim) = cubes(&matrix.client, columns.div_ceil(COLUMNS), COLUMNS * PARTS);
    row_sums::launch(
        &matrix.client.clone(),
        count,
        dim,
        matrix.into_buffer_arg(),
        sums.clone().into_buffer_arg(),
        rows,
        columns,
    );
    sums
}

/// Each part adds every [`PARTS`]-th row; their sums are added in order.
#[cube(launch)]
fn row_sums(matrix: &[f32], sums: &mut [f32], rows: usize, columns: usize) {
    let unit = UNIT_POS as usize;
    let column = CUBE_POS * COLUMNS + unit % COLUMNS;
    let part = unit / COLUMNS;
    let mut shared = Shared::<[f32]>::new_slice(comptime![COLUMNS * PARTS]);
    let mut sum = f32::new(0.0);
    if column < columns {
        let mut row = part;
        while row < rows {
            sum += matrix[row * columns + column];
            row += PARTS;
        }
    }
    shared[unit] = sum;
    sync_cube();
    if part == 0 && column < columns {
        #[unroll]
        for other in 1..PARTS {
            sum += shared[other * COLUMNS + unit];
        }
        sums[column] = sum;
    }
}
