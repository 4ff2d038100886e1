//! Backward kernel. Each cube processes some blocks of rows of one plane, and adds the gradients of
//! columns and tables to a slot of its own, so that no two cubes add to the same number.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Own, SharedTiles};
use super::config::KernelConfig;
use super::contextual::sum_from_the_right;
use super::gradients::{self, CarriedSums};
use super::inputs::{BackwardInputs, Inputs, LaunchSizes, Outputs};
use super::logits::BlockOrigin;
use super::sums::{RowSums, SharedGrads, content_sums, own_sums, shared_sums, write};
use super::tile::{self, SharedTile};

/// Computes all gradients of the rows of one plane that are assigned to this cube.
#[cube(launch, create_dummy_kernel)]
pub(super) fn backward_kernel<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    upstream: &BackwardInputs,
    out: &mut Outputs,
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows()];
    let columns = comptime![config.tile.columns()];
    let plane = CUBE_POS_Y as usize;
    let slot = CUBE_POS_X as usize * CUBE_COUNT_Y as usize + plane;
    let mut block = BlockOrigin { plane, head: plane % place.heads, row: 0usize, column: 0usize };
    let mut tiles = SharedTiles::<F>::new(config);
    let mut own = Own::new(config);
    let mut walk = CarriedSums::new(config);
    let mut sums = RowSums::new(config);
    let mut shared = SharedGrads::<F>::new(config);
    let mut through = Array::<f32>::new(comptime![config.tile.rows_each]);
    let mut passed = Array::<f32>::new(comptime![config.tile.rows_each]);
    let mut whole = Array::<f32>::new(comptime![config.tile.rows_each]);

    block.row = CUBE_POS_X as usize * rows;
    while block.row < place.rows {
        // All units must have finished reading the previous rows.
        sync_cube();
        block::load_rows(inputs, place, &block, &mut tiles, config);
        tile::load(
            &upstream.grad,
            &mut shared.output_grads,
            plane,
            place.rows,
            block.row,
            rows,
            comptime![config.value_dim],
            config,
        );
        sums.clear(config);
        let newest = place.first_row + min(block.row + rows, place.rows) - 1;
        let blocks = newest / columns + 1;

        if comptime![config.own_whole()] {
            #[unroll]
            for r in 0..comptime![config.tile.rows_each] {
                whole[r] = f32::new(0.0);
            }
            block::begin(&mut tiles, &mut own, config);
            gradients::begin(upstream, place, &block, &mut walk, &whole, config);
            whole_output(
                inputs,
                place,
                &block,
                &mut tiles,
                &mut own,
                &shared.output_grads,
                &mut walk,
                &mut whole,
                blocks,
                config,
            );
        }
        if comptime![config.function.present()] {
            block::begin(&mut tiles, &mut own, config);
            gradients::begin(upstream, place, &block, &mut walk, &whole, config);
            whole_through(
                inputs,
                place,
                &block,
                &mut tiles,
                &mut own,
                &shared.output_grads,
                &mut walk,
                &mut through,
                blocks,
                config,
            );
        }

        block::begin(&mut tiles, &mut own, config);
        gradients::begin(upstream, place, &block, &mut walk, &whole, config);
        #[unroll]
        for r in 0..comptime![config.tile.rows_each] {
            passed[r] = f32::new(0.0);
        }
        for step in 0..blocks {
            block.column = (blocks - 1 - step) * columns;
            let _stopped = gradients::gradients_of(
                inputs,
                place,
                &block,
                &mut tiles,
                &mut own,
                &shared.output_grads,
                &mut walk,
                config,
            );
            tile::publish_factors(&own.logits, &mut shared.weights, config);
            tile::publish_both(&walk.grads, &mut shared.grads, config);
            if comptime![config.has_products()] {
                tile::publish_exact(&own.counts, &mut shared.counts, config);
            }
            own_sums(inputs, place, &block, &own, &walk, &mut sums, out, config);
            sync_cube();
            shared_sums(inputs, place, &block, &mut tiles, &shared, &mut sums, out, slot, config);
            if comptime![config.function.present()] {
                gate_sums(
                    place,
                    &block,
                    &mut tiles,
                    &own,
                    &walk,
                    &mut shared,
                    &mut sums,
                    &through,
                    &mut passed,
                    out,
                    slot,
                    config,
                );
            }
        }
        write(place, &block, &mut tiles, &mut sums, out, config);
        block.row += CUBE_COUNT_X as usize * rows;
    }
}

/// Computes the dot products of the output and its gradient, summed in the order in which the
/// backward pass subtracts them again.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block of rows")]
fn whole_output<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    rows: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    output_grads: &SharedTile<F>,
    walk: &mut CarriedSums,
    whole: &mut Array<f32>,
    blocks: usize,
    #[comptime] config: KernelConfig,
) {
    let mut block =
        BlockOrigin { plane: rows.plane, head: rows.head, row: rows.row, column: 0usize };
    for step in 0..blocks {
        block.column = (blocks - 1 - step) * comptime![config.tile.columns()];
        let _stopped =
            gradients::gradients_of(inputs, place, &block, tiles, own, output_grads, walk, config);
    }
    if comptime![config.own_token] {
        block::add_up(&mut walk.rest, tiles, config);
    }
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        whole[r] = walk.taken[r];
        if comptime![config.own_token] {
            whole[r] = walk.taken[r] + walk.rest[r];
        }
    }
}

/// Computes the sums of the gradients of the contextual counts along whole rows.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block of rows")]
fn whole_through<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    rows: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    output_grads: &SharedTile<F>,
    walk: &mut CarriedSums,
    through: &mut Array<f32>,
    blocks: usize,
    #[comptime] config: KernelConfig,
) {
    let all = comptime![config.tile.columns_each];
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        through[r] = f32::new(0.0);
    }
    let mut block =
        BlockOrigin { plane: rows.plane, head: rows.head, row: rows.row, column: 0usize };
    let mut step = 0usize;
    while step < blocks {
        block.column = (blocks - 1 - step) * comptime![config.tile.columns()];
        let stopped =
            gradients::gradients_of(inputs, place, &block, tiles, own, output_grads, walk, config);
        #[unroll]
        for r in 0..comptime![config.tile.rows_each] {
            #[unroll]
            for c in 0..all {
                through[r] += walk.grads[r * all + c] * own.rises[r * all + c];
            }
        }
        step += 1;
        if stopped {
            // All columns further left have the same values.
            step = blocks;
        }
    }
    block::add_up(through, tiles, config);
}

/// Computes the gradients through the gates. A gate changes the counts of its own column and of all
/// older ones.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
fn gate_sums<F: Float>(
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &Own,
    walk: &CarriedSums,
    shared: &mut SharedGrads<F>,
    sums: &mut RowSums,
    through: &Array<f32>,
    passed: &mut Array<f32>,
    out: &mut Outputs,
    slot: usize,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    let all = comptime![config.tile.rows_each * columns];
    let mut terms = Array::<f32>::new(all);
    let mut newer = Array::<f32>::new(all);
    #[unroll]
    for i in 0..all {
        terms[i] = walk.grads[i] * own.rises[i];
    }
    sum_from_the_right(&terms, &mut newer, passed, &mut tiles.other_segments, config);
    let ratio = place.gate_scale / place.content_scale;
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let gate = own.gates[at];
            let older = through[r] - newer[at] + terms[at];
            let grad = older * gate * (f32::new(1.0) - gate);
            if comptime![config.own_gates] {
                terms[at] = grad;
            } else {
                terms[at] = walk.grads[at] + grad * ratio;
            }
        }
    }
    // After the barrier of the sums, no unit reads the weights any more.
    tile::publish_factors(&terms, &mut shared.weights, config);
    sync_cube();
    if comptime![config.own_gates] {
        let width = comptime![config.head_dim];
        let scale = place.gate_scale;
        let grads = &shared.weights;
        tile::mix(grads, &tiles.gate_keys, &mut sums.q, &mut tiles.stage, scale, width, config);
        tile::add_transposed(
            grads,
            &tiles.query,
            &mut out.gate_keys,
            &mut tiles.stage,
            slot,
            place,
            block.column,
            scale,
            width,
            config,
        );
    } else {
        content_sums(place, block, tiles, &shared.weights, sums, out, slot, config);
    }
}
