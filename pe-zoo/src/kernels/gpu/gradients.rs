//! Recomputation of the weights of one block, and the gradients of its logits.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Own, SharedTiles};
use super::config::KernelConfig;
use super::contextual::{sigmoid, softplus, sum_from_the_right};
use super::inputs::{BackwardInputs, Inputs, LaunchSizes};
use super::logits::{BlockOrigin, attends, own_column, own_row};
use super::tile::{self, SharedTile};

/// Logarithm of the remainder of a stick below which the contribution of older columns is lost in
/// rounding.
const NOTHING_LEFT: f32 = -14.0;

/// Sums that one unit carries along its rows in the backward pass.
#[derive(CubeType)]
pub(super) struct CarriedSums {
    /// Gradients of the logits, `rows_each x columns_each`.
    pub(super) grads: Array<f32>,
    /// Logarithms from the forward pass, one per row.
    pub(super) log: Array<f32>,
    /// Dot products of output and gradient, one per row.
    pub(super) share: Array<f32>,
    /// Logarithms of the remainders of the sticks.
    pub(super) left: Array<f32>,
    /// Contribution of the columns so far to the dot products of output and gradient.
    pub(super) taken: Array<f32>,
    /// Contribution of the row's own token through the remainder of its stick.
    pub(super) rest: Array<f32>,
}

#[cube]
impl CarriedSums {
    pub(super) fn new(#[comptime] config: KernelConfig) -> CarriedSums {
        let rows = comptime![config.tile.rows_each];
        CarriedSums {
            grads: Array::new(comptime![config.tile.rows_each * config.tile.columns_each]),
            log: Array::new(rows),
            share: Array::new(rows),
            left: Array::new(rows),
            taken: Array::new(rows),
            rest: Array::new(rows),
        }
    }
}

/// Initialises the sums before the first block of some rows. `whole` holds the recomputed dot
/// products of output and gradient, which are used if [`KernelConfig::own_whole`] is true.
#[cube]
pub(super) fn begin(
    upstream: &BackwardInputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    walk: &mut CarriedSums,
    whole: &Array<f32>,
    #[comptime] config: KernelConfig,
) {
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let line = block.plane * place.rows + min(own_row(block, r, config), place.rows - 1);
        walk.log[r] = upstream.log[line];
        if comptime![config.own_whole()] {
            walk.share[r] = whole[r];
        } else {
            walk.share[r] = upstream.share[line];
        }
        walk.left[r] = f32::new(0.0);
        walk.taken[r] = f32::new(0.0);
        walk.rest[r] = f32::new(0.0);
    }
}

/// Converts `own.logits` to the weights of one block and fills `walk.grads` with the gradients of
/// its logits. Returns the result of [`block::logits_of`]. `output_grads` is `[rows, E]`.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn gradients_of<F: Float>(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    output_grads: &SharedTile<F>,
    walk: &mut CarriedSums,
    #[comptime] config: KernelConfig,
) -> bool {
    let stopped = block::logits_of(inputs, place, block, tiles, own, config);
    // Gradients of the weights: products of the output's gradients with the values.
    tile::dot(
        output_grads,
        &tiles.values,
        &mut walk.grads,
        &mut tiles.stage,
        f32::new(1.0),
        comptime![config.value_dim],
        config,
    );
    if comptime![config.sticks] {
        of_sticks(place, block, tiles, own, walk, config);
    } else {
        of_softmax(place, block, own, walk, config);
    }
    stopped
}

#[cube]
fn of_softmax(
    place: &LaunchSizes,
    block: &BlockOrigin,
    own: &mut Own,
    walk: &mut CarriedSums,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let mut weight = f32::new(0.0);
            if attends(place, row, own_column(block, c, config), config) {
                weight = (own.logits[r * columns + c] - walk.log[r]).exp();
            }
            own.logits[r * columns + c] = weight;
            walk.grads[r * columns + c] = weight * (walk.grads[r * columns + c] - walk.share[r]);
        }
    }
}

/// Computes the gradients of stick-breaking. A column reduces the shares of all older ones, whose
/// contribution is the total minus that of newer columns and of the column itself.
#[cube]
fn of_sticks<F: Float>(
    place: &LaunchSizes,
    block: &BlockOrigin,
    tiles: &mut SharedTiles<F>,
    own: &mut Own,
    walk: &mut CarriedSums,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    let all = comptime![config.tile.rows_each * columns];
    let mut terms = Array::<f32>::new(all);
    let mut sums = Array::<f32>::new(all);
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let mut stay = f32::new(0.0);
            if attends(place, row, own_column(block, c, config), config) {
                stay = -softplus(own.logits[r * columns + c]);
            }
            terms[r * columns + c] = stay;
        }
    }
    sum_from_the_right(&terms, &mut sums, &mut walk.left, &mut tiles.other_segments, config);
    let mut breaks = Array::<f32>::new(all);
    let mut passed_on = Array::<f32>::new(all);
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let mut weight = f32::new(0.0);
            let mut share = f32::new(0.0);
            if attends(place, row, own_column(block, c, config), config) {
                weight = (own.logits[at] + sums[at]).exp();
                share = sigmoid(own.logits[at]);
            }
            if comptime![config.own_token && config.own_whole()] {
                if row < place.rows && own_column(block, c, config) == place.first_row + row {
                    walk.rest[r] += walk.log[r].exp() * walk.grads[at];
                }
            }
            own.logits[at] = weight;
            breaks[at] = share;
            passed_on[at] = share;
            if sums[at] < f32::new(NOTHING_LEFT) {
                passed_on[at] = f32::new(0.0);
            }
            terms[at] = weight * walk.grads[at];
        }
    }
    sum_from_the_right(&terms, &mut sums, &mut walk.taken, &mut tiles.segments, config);
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let older = walk.share[r] - sums[at];
            walk.grads[at] = terms[at] * (f32::new(1.0) - breaks[at]) - passed_on[at] * older;
            if comptime![config.own_token] {
                // The remainder of the stick belongs to the row's own token.
                if row < place.rows && own_column(block, c, config) == place.first_row + row {
                    own.logits[at] += walk.log[r].exp();
                }
            }
        }
    }
}
