//! Contributions of a block of logits to the gradients of queries, keys and values.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Own, SharedTiles};
use super::config::{CONTEXTUAL_SLOPE, DECAY, FAR, Function, KernelConfig, SLOPE};
use super::gradients::CarriedSums;
use super::inputs::{self, Inputs, LaunchSizes, Outputs};
use super::logits::{BlockOrigin, distance, own_column, own_row};
use super::scatter;
use super::tile::{self, SharedTile};

/// Sums over the columns so far that one unit holds, one per row.
#[derive(CubeType)]
pub(super) struct RowSums {
    pub(super) slope: Array<f32>,
    pub(super) contextual_slope: Array<f32>,
    pub(super) decay: Array<f32>,
    pub(super) far: Array<f32>,
    /// Sums of the query gradients, `rows_each x channels_each`.
    pub(super) q: Array<f32>,
}

/// Blocks of numbers in shared memory, `[rows, columns]` each.
#[derive(CubeType)]
pub(super) struct SharedGrads<F: Float> {
    pub(super) weights: SharedTile<F>,
    pub(super) grads: SharedTile<F>,
    /// Gradients of the contextual counts, `[rows, columns + 1]`.
    pub(super) counts: Shared<[f32]>,
    /// Gradients of the output, `[rows, E]`.
    pub(super) output_grads: SharedTile<F>,
}

#[cube]
impl RowSums {
    pub(super) fn new(#[comptime] config: KernelConfig) -> RowSums {
        let rows = comptime![config.tile.rows_each];
        let channels = comptime![rows * config.tile.channels_each(config.head_dim)];
        RowSums {
            slope: Array::new(rows),
            contextual_slope: Array::new(rows),
            decay: Array::new(rows),
            far: Array::new(rows),
            q: Array::new(channels),
        }
    }

    pub(super) fn clear(&mut self, #[comptime] config: KernelConfig) {
        let rows = comptime![config.tile.rows_each];
        #[unroll]
        for r in 0..rows {
            self.slope[r] = f32::new(0.0);
            self.contextual_slope[r] = f32::new(0.0);
            self.decay[r] = f32::new(0.0);
            self.far[r] = f32::new(0.0);
        }
        #[unroll]
        for i in 0..comptime![rows * config.tile.channels_each(config.head_dim)] {
            self.q[i] = f32::new(0.0);
        }
    }
}

#[cube]
impl<F: Float> SharedGrads<F> {
    pub(super) fn new(#[comptime] config: KernelConfig) -> SharedGrads<F> {
        let rows = comptime![config.tile.rows()];
        let columns = comptime![config.tile.columns()];
        let counts = comptime![if config.has_products() { rows * (columns + 1) } else { 1 }];
        SharedGrads::<F> {
            weights: SharedTile::of_factors(rows, columns, config),
            grads: SharedTile::new(
                rows,
                columns,
                comptime![config.exact_grads()],
                comptime![config.cores()],
            ),
            counts: Shared::new_slice(counts),
            output_grads: SharedTile::of_factors(rows, config.value_dim, config),
        }
    }
}

/// Adds up the sums over one unit's own logits.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn own_sums(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    own: &Own,
    walk: &CarriedSums,
    sums: &mut RowSums,
    out: &mut Outputs,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let grad = walk.grads[at];
            let column = own_column(block, c, config);
            if comptime![config.slopes || config.distance] {
                let away = distance(
                    inputs,
                    place,
                    min(row, place.rows - 1),
                    min(column, place.columns - 1),
                    config,
                );
                if comptime![config.slopes] {
                    sums.slope[r] -= grad * away as f32;
                }
                if comptime![config.distance] {
                    if away >= place.distance_entries - 1 {
                        sums.far[r] += grad;
                    }
                }
            }
            if comptime![config.decay] {
                sums.decay[r] += grad;
            }
            if comptime![config.function == Function::Slope] {
                sums.contextual_slope[r] += grad * own.counts[at];
            }
            if comptime![config.dense] {
                if row < place.rows && column < place.columns {
                    let line = block.plane * place.rows + row;
                    out.dense[line * place.columns + column] = grad;
                }
            }
        }
    }
}

/// Adds the products of a block's weights and gradients, which all units compute together.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn shared_sums<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    shared: &SharedGrads<F>,
    sums: &mut RowSums,
    out: &mut Outputs,
    slot: usize,
    #[comptime] config: KernelConfig,
) {
    tile::add_transposed(
        &shared.weights,
        &shared.output_grads,
        &mut out.values,
        &mut tiles.stage,
        slot,
        place,
        block.column,
        f32::new(1.0),
        comptime![config.value_dim],
        config,
    );
    // Gradients through gates from the content must be added first.
    if comptime![config.content && (config.own_gates || !config.function.present())] {
        content_sums(place, block, tiles, &shared.grads, sums, out, slot, config);
    }
    if comptime![config.distance] {
        scatter::to_distances(place, block, &shared.grads.exact, out, slot, config);
    }
    if comptime![config.query_distance] {
        scatter::to_query_distances(inputs, place, block, &shared.grads.exact, out, config);
    }
    if comptime![config.decay] {
        scatter::to_columns(place, block, &shared.grads.exact, out, slot, config);
    }
    if comptime![config.function == Function::Table] {
        scatter::to_entries(place, block, &shared.grads.exact, &shared.counts, out, config);
    }
    if comptime![config.function.perceptron()] {
        let (grads, counts) = (&shared.grads.exact, &shared.counts);
        scatter::to_hidden(inputs, place, block, &tiles.products, grads, counts, out, config);
    }
}

/// Computes gradients of queries and keys from those of their products.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn content_sums<F: Float>(
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    grads: &SharedTile<F>,
    sums: &mut RowSums,
    out: &mut Outputs,
    slot: usize,
    #[comptime] config: KernelConfig,
) {
    let scale = place.content_scale;
    let width = comptime![config.head_dim];
    tile::mix(grads, &tiles.keys, &mut sums.q, &mut tiles.stage, scale, width, config);
    tile::add_transposed(
        grads,
        &tiles.query,
        &mut out.k,
        &mut tiles.stage,
        slot,
        place,
        block.column,
        scale,
        width,
        config,
    );
}

/// Writes the gradients that belong to the block's rows.
#[cube]
pub(super) fn write<F: Float>(
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    sums: &mut RowSums,
    out: &mut Outputs,
    #[comptime] config: KernelConfig,
) {
    let width = comptime![config.head_dim];
    let each = comptime![config.tile.channels_each(config.head_dim)];
    if comptime![config.slopes] {
        block::add_up(&mut sums.slope, tiles, config);
    }
    if comptime![config.function == Function::Slope] {
        block::add_up(&mut sums.contextual_slope, tiles, config);
    }
    if comptime![config.decay] {
        block::add_up(&mut sums.decay, tiles, config);
    }
    if comptime![config.distance] {
        block::add_up(&mut sums.far, tiles, config);
    }
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        if row < place.rows {
            let line = block.plane * place.rows + row;
            let to = inputs::line(block.plane, row, place.rows, place.heads);
            #[unroll]
            for i in 0..each {
                let channel = UNIT_POS_X as usize + comptime![i * config.tile.units_x];
                if channel < width {
                    out.q[to * width + channel] = sums.q[r * each + i];
                }
            }
            if UNIT_POS_X == 0 {
                let start = line * scatter::row_stride(place, config);
                if comptime![config.slopes] {
                    out.rows[start + SLOPE] = sums.slope[r];
                }
                if comptime![config.function == Function::Slope] {
                    out.rows[start + CONTEXTUAL_SLOPE] = sums.contextual_slope[r];
                }
                if comptime![config.decay] {
                    out.rows[start + DECAY] = sums.decay[r];
                }
                if comptime![config.distance] {
                    out.rows[start + FAR] = sums.far[r];
                }
            }
        }
    }
}
