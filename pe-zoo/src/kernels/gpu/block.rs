//! Logits of one block, and the values of contextual positions that the backward pass needs.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::KernelConfig;
use super::contextual;
use super::cores;
use super::inputs::{Inputs, LaunchSizes};
use super::logits::{self, BlockOrigin};
use super::tile::{self, SharedTile};

/// Shared memory of one cube.
#[derive(CubeType)]
pub(super) struct SharedTiles<F: Float> {
    /// Query rows, `[rows, D]`.
    pub(super) query: SharedTile<F>,
    /// Keys of the columns, `[columns, D]`.
    pub(super) keys: SharedTile<F>,
    /// Values of the columns, `[columns, E]`.
    pub(super) values: SharedTile<F>,
    /// Separate keys of the gates, `[columns, D]`.
    pub(super) gate_keys: SharedTile<F>,
    /// Results of products on tensor cores.
    pub(super) stage: Shared<[f32]>,
    /// Products of queries with the contextual table, `[rows, entries]`.
    pub(super) products: Shared<[f32]>,
    /// Sums over the columns of each unit, `[rows, units_x]`.
    pub(super) segments: Shared<[f32]>,
    /// Second buffer for sums over the columns of each unit, `[rows, units_x]`.
    pub(super) other_segments: Shared<[f32]>,
    /// Contextual counts of the rows, `[rows]`, summed over the blocks to the right.
    pub(super) counted: Shared<[f32]>,
}

#[cube]
impl<F: Float> SharedTiles<F> {
    pub(super) fn new(#[comptime] config: KernelConfig) -> SharedTiles<F> {
        let rows = comptime![config.tile.rows()];
        let columns = comptime![config.tile.columns()];
        let products = comptime![if config.has_products() { rows * config.entries } else { 1 }];
        let gate_exact = comptime![config.own_gates && !config.cores()];
        let gate_rounded = comptime![config.own_gates && config.cores()];
        SharedTiles::<F> {
            query: SharedTile::of_factors(rows, config.head_dim, config),
            keys: SharedTile::of_factors(columns, config.head_dim, config),
            values: SharedTile::of_factors(columns, config.value_dim, config),
            gate_keys: SharedTile::new(columns, config.head_dim, gate_exact, gate_rounded),
            stage: Shared::new_aligned_slice(
                comptime![config.stage()],
                comptime![cores::ALIGNMENT],
            ),
            products: Shared::new_slice(products),
            segments: Shared::new_slice(comptime![rows * config.tile.units_x]),
            other_segments: Shared::new_slice(comptime![rows * config.tile.units_x]),
            counted: Shared::new_slice(rows),
        }
    }
}

/// Values of one unit for a block: `rows_each x columns_each` numbers each, and one per row carried
/// over from the blocks to the right.
#[derive(CubeType)]
pub(super) struct Own {
    pub(super) logits: Array<f32>,
    pub(super) gates: Array<f32>,
    pub(super) counts: Array<f32>,
    pub(super) rises: Array<f32>,
    pub(super) counted: Array<f32>,
}

#[cube]
impl Own {
    pub(super) fn new(#[comptime] config: KernelConfig) -> Own {
        let all = comptime![config.tile.rows_each * config.tile.columns_each];
        let some = comptime![if config.function.present() { all } else { 1 }];
        Own {
            logits: Array::new(all),
            gates: Array::new(some),
            counts: Array::new(some),
            rises: Array::new(some),
            counted: Array::new(comptime![config.tile.rows_each]),
        }
    }
}

/// Resets the counts before the first block of some rows. A barrier must follow.
#[cube]
pub(super) fn begin<F: Float>(
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    #[comptime] config: KernelConfig,
) {
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        own.counted[r] = f32::new(0.0);
    }
    contextual::publish_counts(&own.counted, &mut tiles.counted, config);
}

/// Loads the data of a block of rows that all its blocks of columns share. A barrier must follow.
#[cube]
pub(super) fn load_rows<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows()];
    let width = comptime![config.head_dim];
    tile::load(
        &inputs.q,
        &mut tiles.query,
        block.plane,
        place.rows,
        block.row,
        rows,
        width,
        config,
    );
    if comptime![config.has_products()] {
        contextual::load_products(inputs, place, block, &mut tiles.products, config);
    }
}

/// Computes `own.logits` of one block, and for contextual positions `own.gates`, `own.counts`
/// (clamped) and `own.rises`. Returns whether all rows had passed the largest position before this
/// block.
#[cube]
pub(super) fn logits_of<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    #[comptime] config: KernelConfig,
) -> bool {
    let columns = comptime![config.tile.columns()];
    let all = comptime![config.tile.rows_each * config.tile.columns_each];
    // All units must have finished reading the previous block.
    sync_cube();
    tile::load(
        &inputs.k,
        &mut tiles.keys,
        block.plane,
        place.columns,
        block.column,
        columns,
        comptime![config.head_dim],
        config,
    );
    tile::load(
        &inputs.values,
        &mut tiles.values,
        block.plane,
        place.columns,
        block.column,
        columns,
        comptime![config.value_dim],
        config,
    );
    if comptime![config.own_gates] {
        tile::load(
            &inputs.gate_keys,
            &mut tiles.gate_keys,
            block.plane,
            place.columns,
            block.column,
            columns,
            comptime![config.head_dim],
            config,
        );
    }
    sync_cube();
    if comptime![config.content] {
        tile::dot(
            &tiles.query,
            &tiles.keys,
            &mut own.logits,
            &mut tiles.stage,
            place.content_scale,
            comptime![config.head_dim],
            config,
        );
    } else {
        #[unroll]
        for i in 0..all {
            own.logits[i] = f32::new(0.0);
        }
    }
    let mut stopped = false;
    if comptime![config.function.present()] {
        stopped = contextual::all_beyond(&tiles.counted, place, block, config);
        if comptime![config.own_gates] {
            if !stopped {
                tile::dot(
                    &tiles.query,
                    &tiles.gate_keys,
                    &mut own.gates,
                    &mut tiles.stage,
                    place.gate_scale,
                    comptime![config.head_dim],
                    config,
                );
            }
        } else {
            let ratio = place.gate_scale / place.content_scale;
            #[unroll]
            for i in 0..all {
                own.gates[i] = own.logits[i] * ratio;
            }
        }
        contextual::open_gates(&mut own.gates, place, block, stopped, config);
        contextual::sum_from_the_right(
            &own.gates,
            &mut own.counts,
            &mut own.counted,
            &mut tiles.segments,
            config,
        );
        contextual::publish_counts(&own.counted, &mut tiles.counted, config);
        contextual::add_function(
            inputs,
            place,
            block,
            &tiles.products,
            &mut own.counts,
            &mut own.logits,
            &mut own.rises,
            stopped,
            config,
        );
    }
    logits::add_biases(inputs, place, block, &mut own.logits, config);
    stopped
}

/// Adds up the sums that the units of a row computed over their own columns; all units get the
/// total of the row.
#[cube]
pub(super) fn add_up<F: Float>(
    total: &mut Array<f32>,
    tiles: &mut SharedTiles<F>,
    #[comptime] config: KernelConfig,
) {
    let units = comptime![config.tile.units_x];
    let rows_each = comptime![config.tile.rows_each];
    let first_row = UNIT_POS_Y as usize * rows_each;
    sync_cube();
    #[unroll]
    for r in 0..rows_each {
        tiles.other_segments[(first_row + r) * units + UNIT_POS_X as usize] = total[r];
    }
    sync_cube();
    #[unroll]
    for r in 0..rows_each {
        let mut sum = f32::new(0.0);
        for unit in 0..units {
            sum += tiles.other_segments[(first_row + r) * units + unit];
        }
        total[r] = sum;
    }
}
