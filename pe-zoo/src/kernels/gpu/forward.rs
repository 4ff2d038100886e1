//! Forward kernel: one cube per block of rows, which processes blocks of columns from the diagonal
//! to the left.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Own, SharedTiles};
use super::config::KernelConfig;
use super::contextual::{softplus, sum_from_the_right};
use super::inputs::{self, Inputs, LaunchSizes};
use super::logits::{BlockOrigin, attends, own_column, own_row};
use super::tile::{self, SharedTile};

/// Number less than every logit.
const LOWEST: f32 = -3e38;

/// Computes `out`, `[B, T, H, E]`, and `log`, `[plane, T]`: the logarithm of the softmax's
/// denominator, or of the remainder of the stick.
#[cube(launch, create_dummy_kernel)]
pub(super) fn forward_kernel<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    out: &mut [f32],
    log: &mut [f32],
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows()];
    let columns = comptime![config.tile.columns()];
    let rows_each = comptime![config.tile.rows_each];
    let channels_each = comptime![config.tile.channels_each(config.value_dim)];
    let plane = CUBE_POS_Y as usize;
    // The last rows see the most columns and take longest, so they start first.
    let row = ((place.rows - 1) / rows - CUBE_POS_X as usize) * rows;
    let mut block = BlockOrigin { plane, head: plane % place.heads, row, column: 0usize };
    let mut tiles = SharedTiles::<F>::new(config);
    let mut own = Own::new(config);
    let mut weights = SharedTile::<F>::of_factors(rows, columns, config);
    let mut sums = Array::<f32>::new(comptime![rows_each * channels_each]);
    let mut largest = Array::<f32>::new(rows_each);
    let mut total = Array::<f32>::new(rows_each);
    #[unroll]
    for i in 0..comptime![rows_each * channels_each] {
        sums[i] = f32::new(0.0);
    }
    #[unroll]
    for r in 0..rows_each {
        largest[r] = f32::new(LOWEST);
        total[r] = f32::new(0.0);
    }
    block::load_rows(inputs, place, &block, &mut tiles, config);
    block::begin(&mut tiles, &mut own, config);

    let newest = place.first_row + min(row + rows, place.rows) - 1;
    let blocks = newest / columns + 1;
    for step in 0..blocks {
        block.column = (blocks - 1 - step) * columns;
        let _stopped = block::logits_of(inputs, place, &block, &mut tiles, &mut own, config);
        if comptime![config.sticks] {
            break_sticks(place, &block, &mut tiles, &mut own, &mut total, config);
        } else {
            soften(
                place,
                &block,
                &mut tiles,
                &mut own,
                &mut sums,
                &mut largest,
                &mut total,
                config,
            );
        }
        tile::publish_factors(&own.logits, &mut weights, config);
        sync_cube();
        tile::mix(
            &weights,
            &tiles.values,
            &mut sums,
            &mut tiles.stage,
            f32::new(1.0),
            comptime![config.value_dim],
            config,
        );
    }
    if comptime![!config.sticks] {
        block::add_up(&mut total, &mut tiles, config);
    }
    write(inputs, place, &block, &sums, &largest, &total, out, log, config);
}

/// Converts the unit's own logits to softmax weights without the division. `sums` and `total` are
/// relative to the largest logit so far.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
fn soften<F: Float>(
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    sums: &mut Array<f32>,
    largest: &mut Array<f32>,
    total: &mut Array<f32>,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    let units = comptime![config.tile.units_x];
    let channels_each = comptime![config.tile.channels_each(config.value_dim)];
    let rows_each = comptime![config.tile.rows_each];
    let first_row = UNIT_POS_Y as usize * rows_each;
    #[unroll]
    for r in 0..rows_each {
        let row = own_row(block, r, config);
        let mut most = f32::new(LOWEST);
        #[unroll]
        for c in 0..columns {
            if attends(place, row, own_column(block, c, config), config) {
                most = max(most, own.logits[r * columns + c]);
            }
        }
        tiles.other_segments[(first_row + r) * units + UNIT_POS_X as usize] = most;
    }
    sync_cube();
    #[unroll]
    for r in 0..rows_each {
        let row = own_row(block, r, config);
        let mut most = largest[r];
        for unit in 0..units {
            most = max(most, tiles.other_segments[(first_row + r) * units + unit]);
        }
        let shrink = (largest[r] - most).exp();
        largest[r] = most;
        let mut sum = total[r] * shrink;
        #[unroll]
        for c in 0..columns {
            let mut weight = f32::new(0.0);
            if attends(place, row, own_column(block, c, config), config) {
                weight = (own.logits[r * columns + c] - most).exp();
            }
            own.logits[r * columns + c] = weight;
            sum += weight;
        }
        total[r] = sum;
        #[unroll]
        for i in 0..channels_each {
            sums[r * channels_each + i] = sums[r * channels_each + i] * shrink;
        }
    }
}

/// Converts the unit's own logits to stick-breaking weights; `left` carries the logarithms of the
/// remainders.
#[cube]
fn break_sticks<F: Float>(
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    left: &mut Array<f32>,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    let all = comptime![config.tile.rows_each * columns];
    let mut stays = Array::<f32>::new(all);
    let mut after = Array::<f32>::new(all);
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let mut stay = f32::new(0.0);
            if attends(place, row, own_column(block, c, config), config) {
                stay = -softplus(own.logits[r * columns + c]);
            }
            stays[r * columns + c] = stay;
        }
    }
    sum_from_the_right(&stays, &mut after, left, &mut tiles.other_segments, config);
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let mut weight = f32::new(0.0);
            if attends(place, row, own_column(block, c, config), config) {
                weight = (own.logits[r * columns + c] + after[r * columns + c]).exp();
            }
            own.logits[r * columns + c] = weight;
        }
    }
}

#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
fn write(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    sums: &Array<f32>,
    largest: &Array<f32>,
    total: &Array<f32>,
    out: &mut [f32],
    log: &mut [f32],
    #[comptime] config: KernelConfig,
) {
    let width = comptime![config.value_dim];
    let channels_each = comptime![config.tile.channels_each(config.value_dim)];
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        if row < place.rows {
            let line = block.plane * place.rows + row;
            let to = inputs::line(block.plane, row, place.rows, place.heads);
            #[unroll]
            for i in 0..channels_each {
                let channel = UNIT_POS_X as usize + comptime![i * config.tile.units_x];
                if channel < width {
                    let mut value = sums[r * channels_each + i];
                    if comptime![config.sticks] {
                        if comptime![config.own_token] {
                            let values = &inputs.values;
                            let own = place.first_row + row;
                            let own = inputs::line(block.plane, own, place.columns, values.beside);
                            value += total[r].exp() * values.numbers[own * width + channel];
                        }
                    } else {
                        value /= total[r];
                    }
                    out[to * width + channel] = value;
                }
            }
            if UNIT_POS_X == 0 {
                if comptime![config.sticks] {
                    log[line] = total[r];
                } else {
                    log[line] = largest[r] + total[r].ln();
                }
            }
        }
    }
}
