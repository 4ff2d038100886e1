//! Blocks of rows in shared memory, and products of them.
//!
//! Rows of unrounded numbers are padded by one number, so that adjacent rows lie in different
//! banks. Products of rounded numbers are computed by tensor cores (`cores`).

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::KernelConfig;
use super::cores::{self, Product, multiply};
use super::inputs::{LaunchSizes, PlaneRows, line};

/// Block of rows in shared memory.
#[derive(CubeType)]
pub(super) struct SharedTile<F: Float> {
    /// Unrounded numbers, `[rows, width + 1]`; a single number if only rounded ones are read.
    pub(super) exact: Shared<[f32]>,
    /// Rounded numbers, `[rows, cores::stride(width)]`, zeros from `width` on; a single number
    /// without tensor cores.
    pub(super) rounded: Shared<[F]>,
}

#[cube]
impl<F: Float> SharedTile<F> {
    pub(super) fn new(
        #[comptime] rows: usize,
        #[comptime] width: usize,
        #[comptime] exact: bool,
        #[comptime] rounded: bool,
    ) -> SharedTile<F> {
        let exact = comptime![if exact { rows * (width + 1) } else { 1 }];
        let rounded = comptime![if rounded { rows * cores::stride(width) } else { 1 }];
        SharedTile::<F> {
            exact: Shared::new_slice(exact),
            rounded: Shared::new_aligned_slice(rounded, comptime![cores::ALIGNMENT]),
        }
    }

    /// Allocates a tile in the format of factors of products.
    pub(super) fn of_factors(
        #[comptime] rows: usize,
        #[comptime] width: usize,
        #[comptime] config: KernelConfig,
    ) -> SharedTile<F> {
        SharedTile::new(rows, width, comptime![!config.cores()], comptime![config.cores()])
    }
}

/// Copies `count` rows from `start` on of one plane, which has `len`, padded with zeros.
#[cube]
#[expect(clippy::too_many_arguments, reason = "source, target, and what part of it")]
pub(super) fn load<F: Float>(
    from: &PlaneRows,
    to: &mut SharedTile<F>,
    plane: usize,
    len: usize,
    start: usize,
    #[comptime] count: usize,
    #[comptime] width: usize,
    #[comptime] config: KernelConfig,
) {
    let written = comptime![if config.cores() { cores::padded(width) } else { width }];
    let first = line(plane, start, len, from.beside);
    let mut at = UNIT_POS as usize;
    while at < comptime![count * written] {
        let row = at / written;
        let channel = at - row * written;
        let mut value = f32::new(0.0);
        if start + row < len && channel < width {
            value = from.numbers[(first + row * from.beside) * width + channel];
        }
        if comptime![config.cores()] {
            to.rounded[row * comptime![cores::stride(width)] + channel] = F::cast_from(value);
        } else {
            to.exact[row * comptime![width + 1] + channel] = value;
        }
        at += comptime![config.tile.units()];
    }
}

/// Computes `out[r, c] = scale * left[row r] . right[column c]` for the unit's own rows and
/// columns. All units of the cube must call it.
#[cube]
pub(super) fn dot<F: Float>(
    left: &SharedTile<F>,
    right: &SharedTile<F>,
    out: &mut Array<f32>,
    stage: &mut Shared<[f32]>,
    scale: f32,
    #[comptime] width: usize,
    #[comptime] config: KernelConfig,
) {
    let stride = comptime![width + 1];
    let rows = comptime![config.tile.rows_each];
    let columns = comptime![config.tile.columns_each];
    let first_row = UNIT_POS_Y as usize * rows;
    let first_column = UNIT_POS_X as usize * columns;
    if comptime![config.cores()] {
        let product = comptime![Product {
            rows: config.tile.rows(),
            columns: config.tile.columns(),
            inner: cores::padded(width),
            left_transposed: false,
            right_transposed: true,
            left_stride: cores::stride(width),
            right_stride: cores::stride(width),
            step: config.step(),
            units: config.tile.units(),
        }];
        multiply::<F>(&left.rounded, &right.rounded, stage, product);
        let stage_stride = comptime![cores::stride(config.tile.columns())];
        #[unroll]
        for r in 0..rows {
            #[unroll]
            for c in 0..columns {
                out[r * columns + c] = stage[(first_row + r) * stage_stride + first_column + c];
            }
        }
    } else {
        #[unroll]
        for i in 0..comptime![rows * columns] {
            out[i] = f32::new(0.0);
        }
        let mut of_columns = Array::<f32>::new(columns);
        for channel in 0..width {
            #[unroll]
            for c in 0..columns {
                of_columns[c] = right.exact[(first_column + c) * stride + channel];
            }
            #[unroll]
            for r in 0..rows {
                let of_row = left.exact[(first_row + r) * stride + channel];
                #[unroll]
                for c in 0..columns {
                    out[r * columns + c] += of_row * of_columns[c];
                }
            }
        }
    }
    #[unroll]
    for i in 0..comptime![rows * columns] {
        out[i] = out[i] * scale;
    }
}

/// Adds `scale * weights[row, :] . from[:, channel]` for the unit's own rows and channels. All
/// units of the cube must call it.
#[cube]
pub(super) fn mix<F: Float>(
    weights: &SharedTile<F>,
    from: &SharedTile<F>,
    sums: &mut Array<f32>,
    stage: &mut Shared<[f32]>,
    scale: f32,
    #[comptime] width: usize,
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows_each];
    let each = comptime![config.tile.channels_each(width)];
    let step = comptime![config.tile.units_x];
    // Units without a channel of their own compute the last one and discard it.
    let last = comptime![width - 1];
    let first_row = UNIT_POS_Y as usize * rows;
    let first_channel = UNIT_POS_X as usize;
    if comptime![config.cores()] {
        let product = comptime![Product {
            rows: config.tile.rows(),
            columns: cores::padded(width),
            inner: config.tile.columns(),
            left_transposed: false,
            right_transposed: false,
            left_stride: cores::stride(config.tile.columns()),
            right_stride: cores::stride(width),
            step: config.step(),
            units: config.tile.units(),
        }];
        multiply::<F>(&weights.rounded, &from.rounded, stage, product);
        let stage_stride = comptime![cores::stride(width)];
        #[unroll]
        for r in 0..rows {
            #[unroll]
            for i in 0..each {
                let channel = min(first_channel + i * step, last);
                sums[r * each + i] += scale * stage[(first_row + r) * stage_stride + channel];
            }
        }
    } else {
        let stride = comptime![width + 1];
        let weight_stride = comptime![config.tile.columns() + 1];
        let mut of_column = Array::<f32>::new(each);
        for column in 0..comptime![config.tile.columns()] {
            #[unroll]
            for i in 0..each {
                let channel = min(first_channel + i * step, last);
                of_column[i] = scale * from.exact[column * stride + channel];
            }
            #[unroll]
            for r in 0..rows {
                let weight = weights.exact[(first_row + r) * weight_stride + column];
                #[unroll]
                for i in 0..each {
                    sums[r * each + i] += weight * of_column[i];
                }
            }
        }
    }
}

/// Adds `scale * sum over rows of weights[row, column] * from[row, :]` to the columns' own rows of
/// `[slot, len, width]`. A given number is always added to by the same unit. All units of the cube
/// must call it.
#[cube]
#[expect(clippy::too_many_arguments, reason = "two factors, target, and what part of it")]
pub(super) fn add_transposed<F: Float>(
    weights: &SharedTile<F>,
    from: &SharedTile<F>,
    to: &mut Box<[f32]>,
    stage: &mut Shared<[f32]>,
    slot: usize,
    place: &LaunchSizes,
    start: usize,
    scale: f32,
    #[comptime] width: usize,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns()];
    let first = line(slot, start, place.columns, place.heads);
    if comptime![config.cores()] {
        let product = comptime![Product {
            rows: columns,
            columns: cores::padded(width),
            inner: config.tile.rows(),
            left_transposed: true,
            right_transposed: false,
            left_stride: cores::stride(columns),
            right_stride: cores::stride(width),
            step: config.step(),
            units: config.tile.units(),
        }];
        multiply::<F>(&weights.rounded, &from.rounded, stage, product);
        let stage_stride = comptime![cores::stride(width)];
        let mut at = UNIT_POS as usize;
        while at < comptime![columns * width] {
            let column = at / width;
            let channel = at - column * width;
            if start + column < place.columns {
                let sum = stage[column * stage_stride + channel];
                to[(first + column * place.heads) * width + channel] += scale * sum;
            }
            at += comptime![config.tile.units()];
        }
    } else {
        let stride = comptime![width + 1];
        let weight_stride = comptime![columns + 1];
        let each = comptime![config.tile.channels_each(width)];
        let step = comptime![config.tile.units_x];
        let last = comptime![width - 1];
        let first_channel = UNIT_POS_X as usize;
        let mut sums = Array::<f32>::new(each);
        let mut column = UNIT_POS_Y as usize;
        while column < columns {
            #[unroll]
            for i in 0..each {
                sums[i] = f32::new(0.0);
            }
            for row in 0..comptime![config.tile.rows()] {
                let weight = weights.exact[row * weight_stride + column];
                #[unroll]
                for i in 0..each {
                    let channel = min(first_channel + i * step, last);
                    sums[i] += weight * from.exact[row * stride + channel];
                }
            }
            if start + column < place.columns {
                #[unroll]
                for i in 0..each {
                    let channel = first_channel + i * step;
                    if channel < width {
                        to[(first + column * place.heads) * width + channel] += scale * sums[i];
                    }
                }
            }
            column += comptime![config.tile.units_y];
        }
    }
}

/// Writes the unit's own numbers of a block of logits to shared memory, with rows `stride` apart.
#[cube]
fn publish<N: Float>(
    from: &Array<f32>,
    to: &mut Shared<[N]>,
    #[comptime] stride: usize,
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows_each];
    let columns = comptime![config.tile.columns_each];
    let first_row = UNIT_POS_Y as usize * rows;
    let first_column = UNIT_POS_X as usize * columns;
    #[unroll]
    for r in 0..rows {
        #[unroll]
        for c in 0..columns {
            let value = from[r * columns + c];
            to[(first_row + r) * stride + first_column + c] = N::cast_from(value);
        }
    }
}

/// Writes the numbers of a block without rounding.
#[cube]
pub(super) fn publish_exact(
    from: &Array<f32>,
    to: &mut Shared<[f32]>,
    #[comptime] config: KernelConfig,
) {
    publish::<f32>(from, to, comptime![config.tile.columns() + 1], config);
}

/// Writes the numbers of a block as factors of products, rounded if tensor cores are used.
#[cube]
pub(super) fn publish_factors<F: Float>(
    from: &Array<f32>,
    to: &mut SharedTile<F>,
    #[comptime] config: KernelConfig,
) {
    if comptime![config.cores()] {
        publish::<F>(
            from,
            &mut to.rounded,
            comptime![cores::stride(config.tile.columns())],
            config,
        );
    } else {
        publish_exact(from, &mut to.exact, config);
    }
}

/// Writes the numbers of a block as factors of products and, unrounded, for elementwise sums.
#[cube]
pub(super) fn publish_both<F: Float>(
    from: &Array<f32>,
    to: &mut SharedTile<F>,
    #[comptime] config: KernelConfig,
) {
    publish_factors::<F>(from, to, config);
    if comptime![config.cores() && config.exact_grads()] {
        publish_exact(from, &mut to.exact, config);
    }
}
