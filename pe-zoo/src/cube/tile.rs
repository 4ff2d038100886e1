//! Blocks of rows in shared memory, and products of them.
//!
//! Rows stand one number further apart than they are long: neighbours then lie in different banks.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::form::Tile;

/// Copies `count` rows from `start` on of one plane of `[plane, len, width]`; zeros past its end.
#[cube]
#[expect(clippy::borrowed_box, reason = "the kernel language's handle of a buffer")]
#[expect(clippy::too_many_arguments, reason = "source, target, and what part of it")]
pub(super) fn load(
    from: &Box<[f32]>,
    to: &mut Shared<[f32]>,
    plane: usize,
    len: usize,
    start: usize,
    #[comptime] count: usize,
    #[comptime] width: usize,
    #[comptime] units: usize,
) {
    let stride = comptime![width + 1];
    let end = comptime![count * width];
    let mut at = UNIT_POS as usize;
    while at < end {
        let row = at / width;
        let channel = at - row * width;
        let mut value = f32::new(0.0);
        if start + row < len {
            value = from[(plane * len + start + row) * width + channel];
        }
        to[row * stride + channel] = value;
        at += units;
    }
}

/// `out[r, c] = scale * left[row r] . right[column c]` for the unit's own rows and columns.
#[cube]
pub(super) fn dot(
    left: &Shared<[f32]>,
    right: &Shared<[f32]>,
    out: &mut Array<f32>,
    scale: f32,
    #[comptime] width: usize,
    #[comptime] tile: Tile,
) {
    let stride = comptime![width + 1];
    let rows = comptime![tile.rows_each];
    let columns = comptime![tile.columns_each];
    let first_row = UNIT_POS_Y as usize * rows;
    let first_column = UNIT_POS_X as usize * columns;
    #[unroll]
    for i in 0..comptime![rows * columns] {
        out[i] = f32::new(0.0);
    }
    let mut of_columns = Array::<f32>::new(columns);
    for channel in 0..width {
        #[unroll]
        for c in 0..columns {
            of_columns[c] = right[(first_column + c) * stride + channel];
        }
        #[unroll]
        for r in 0..rows {
            let of_row = left[(first_row + r) * stride + channel];
            #[unroll]
            for c in 0..columns {
                out[r * columns + c] += of_row * of_columns[c];
            }
        }
    }
    #[unroll]
    for i in 0..comptime![rows * columns] {
        out[i] = out[i] * scale;
    }
}

/// Adds `scale * weights[row, :] . from[:, channel]` for the unit's own rows and channels.
#[cube]
pub(super) fn mix(
    weights: &Shared<[f32]>,
    from: &Shared<[f32]>,
    sums: &mut Array<f32>,
    scale: f32,
    #[comptime] width: usize,
    #[comptime] tile: Tile,
) {
    let stride = comptime![width + 1];
    let weight_stride = comptime![tile.columns() + 1];
    let rows = comptime![tile.rows_each];
    let each = comptime![tile.channels_each(width)];
    let step = comptime![tile.units_x];
    let last = comptime![width - 1];
    let first_row = UNIT_POS_Y as usize * rows;
    let first_channel = UNIT_POS_X as usize;
    let mut of_column = Array::<f32>::new(each);
    for column in 0..comptime![tile.columns()] {
        #[unroll]
        for i in 0..each {
            // Units without a channel of their own repeat the last one, and write it nowhere.
            let channel = min(first_channel + i * step, last);
            of_column[i] = scale * from[column * stride + channel];
        }
        #[unroll]
        for r in 0..rows {
            let weight = weights[(first_row + r) * weight_stride + column];
            #[unroll]
            for i in 0..each {
                sums[r * each + i] += weight * of_column[i];
            }
        }
    }
}

/// Adds `scale * sum over rows of weights[row, column] * from[row, :]` to the columns' own rows of
/// `[slot, len, width]`. The same unit always adds to the same number.
#[cube]
#[expect(clippy::borrowed_box, reason = "the kernel language's handle of a buffer")]
#[expect(clippy::too_many_arguments, reason = "two factors, target, and what part of it")]
pub(super) fn add_transposed(
    weights: &Shared<[f32]>,
    from: &Shared<[f32]>,
    to: &mut Box<[f32]>,
    slot: usize,
    len: usize,
    start: usize,
    scale: f32,
    #[comptime] width: usize,
    #[comptime] tile: Tile,
) {
    let stride = comptime![width + 1];
    let weight_stride = comptime![tile.columns() + 1];
    let each = comptime![tile.channels_each(width)];
    let step = comptime![tile.units_x];
    let last = comptime![width - 1];
    let first_channel = UNIT_POS_X as usize;
    let mut sums = Array::<f32>::new(each);
    let mut column = UNIT_POS_Y as usize;
    while column < comptime![tile.columns()] {
        #[unroll]
        for i in 0..each {
            sums[i] = f32::new(0.0);
        }
        for row in 0..comptime![tile.rows()] {
            let weight = weights[row * weight_stride + column];
            #[unroll]
            for i in 0..each {
                let channel = min(first_channel + i * step, last);
                sums[i] += weight * from[row * stride + channel];
            }
        }
        if start + column < len {
            #[unroll]
            for i in 0..each {
                let channel = first_channel + i * step;
                if channel < width {
                    to[(slot * len + start + column) * width + channel] += scale * sums[i];
                }
            }
        }
        column += comptime![tile.units_y];
    }
}

/// Writes the unit's own numbers of a block of logits where all units see them.
#[cube]
pub(super) fn publish(from: &Array<f32>, to: &mut Shared<[f32]>, #[comptime] tile: Tile) {
    let stride = comptime![tile.columns() + 1];
    let rows = comptime![tile.rows_each];
    let columns = comptime![tile.columns_each];
    let first_row = UNIT_POS_Y as usize * rows;
    let first_column = UNIT_POS_X as usize * columns;
    #[unroll]
    for r in 0..rows {
        #[unroll]
        for c in 0..columns {
            to[(first_row + r) * stride + first_column + c] = from[r * columns + c];
        }
    }
}
