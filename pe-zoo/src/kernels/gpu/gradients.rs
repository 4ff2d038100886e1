//! Weights of one block made again, and the gradients of its logits.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Board, Own};
use super::contextual::{sigmoid, softplus, sum_from_the_right};
use super::form::Form;
use super::inputs::{Behind, Inputs, Place};
use super::logits::{Block, attends, own_column, own_row};
use super::tile::{self, Sheet};

/// Logarithm of the share of a stick below which what older columns contribute is lost in the rounding
/// of what newer ones do.
const NOTHING_LEFT: f32 = -14.0;

/// What one unit carries along its rows in the backward pass.
#[derive(CubeType)]
pub(super) struct Walk {
    /// Gradients of the logits, `rows_each x columns_each`.
    pub(super) grads: Array<f32>,
    /// Logarithms that the forward pass left, one per row.
    pub(super) log: Array<f32>,
    /// Products of output and gradient, one per row.
    pub(super) share: Array<f32>,
    /// Logarithms of what is left of the sticks.
    pub(super) left: Array<f32>,
    /// What the columns so far contribute to the products of output and gradient.
    pub(super) taken: Array<f32>,
    /// What the unit's own columns contribute to them where a row gets the rest of its stick.
    pub(super) rest: Array<f32>,
}

#[cube]
impl Walk {
    pub(super) fn new(#[comptime] form: Form) -> Walk {
        let rows = comptime![form.tile.rows_each];
        Walk {
            grads: Array::new(comptime![form.tile.rows_each * form.tile.columns_each]),
            log: Array::new(rows),
            share: Array::new(rows),
            left: Array::new(rows),
            taken: Array::new(rows),
            rest: Array::new(rows),
        }
    }
}

/// Begins a walk along the block's rows. `whole` is what all columns contribute to the products of
/// output and gradient, where [`Form::own_whole`] says that the walk needs it to the last digit.
#[cube]
pub(super) fn begin(
    behind: &Behind,
    place: &Place,
    block: &Block,
    walk: &mut Walk,
    whole: &Array<f32>,
    #[comptime] form: Form,
) {
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        let line = block.plane * place.rows + min(own_row(block, r, form), place.rows - 1);
        walk.log[r] = behind.log[line];
        if comptime![form.own_whole()] {
            walk.share[r] = whole[r];
        } else {
            walk.share[r] = behind.share[line];
        }
        walk.left[r] = f32::new(0.0);
        walk.taken[r] = f32::new(0.0);
        walk.rest[r] = f32::new(0.0);
    }
}

/// `own.logits` becomes the weights of one block, `walk.grads` the gradients of its logits. Returns
/// what [`block::logits_of`] does. `output_grads` is `[rows, E]`.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn gradients_of<F: Float>(
    inputs: &Inputs,
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    own: &mut Own,
    output_grads: &Sheet<F>,
    walk: &mut Walk,
    #[comptime] form: Form,
) -> bool {
    let stopped = block::logits_of(inputs, place, block, board, own, form);
    // Products of the output's gradients with the values.
    tile::dot(
        output_grads,
        &board.values,
        &mut walk.grads,
        &mut board.stage,
        f32::new(1.0),
        comptime![form.value_dim],
        form,
    );
    if comptime![form.sticks] {
        of_sticks(place, block, board, own, walk, form);
    } else {
        of_softmax(place, block, own, walk, form);
    }
    stopped
}

#[cube]
fn of_softmax(
    place: &Place,
    block: &Block,
    own: &mut Own,
    walk: &mut Walk,
    #[comptime] form: Form,
) {
    let columns = comptime![form.tile.columns_each];
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        let row = own_row(block, r, form);
        #[unroll]
        for c in 0..columns {
            let mut weight = f32::new(0.0);
            if attends(place, row, own_column(block, c, form), form) {
                weight = (own.logits[r * columns + c] - walk.log[r]).exp();
            }
            own.logits[r * columns + c] = weight;
            walk.grads[r * columns + c] = weight * (walk.grads[r * columns + c] - walk.share[r]);
        }
    }
}

/// Every column takes from all older ones: what those contribute is the whole less what newer ones
/// and the column itself do.
#[cube]
fn of_sticks<F: Float>(
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    own: &mut Own,
    walk: &mut Walk,
    #[comptime] form: Form,
) {
    let columns = comptime![form.tile.columns_each];
    let all = comptime![form.tile.rows_each * columns];
    let mut terms = Array::<f32>::new(all);
    let mut sums = Array::<f32>::new(all);
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        let row = own_row(block, r, form);
        #[unroll]
        for c in 0..columns {
            let mut stay = f32::new(0.0);
            if attends(place, row, own_column(block, c, form), form) {
                stay = -softplus(own.logits[r * columns + c]);
            }
            terms[r * columns + c] = stay;
        }
    }
    sum_from_the_right(&terms, &mut sums, &mut walk.left, &mut board.other_segments, form);
    let mut breaks = Array::<f32>::new(all);
    let mut passed_on = Array::<f32>::new(all);
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        let row = own_row(block, r, form);
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let mut weight = f32::new(0.0);
            let mut share = f32::new(0.0);
            if attends(place, row, own_column(block, c, form), form) {
                weight = (own.logits[at] + sums[at]).exp();
                share = sigmoid(own.logits[at]);
            }
            if comptime![form.own_token && form.own_whole()] {
                if row < place.rows && own_column(block, c, form) == place.first_row + row {
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
    sum_from_the_right(&terms, &mut sums, &mut walk.taken, &mut board.segments, form);
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        let row = own_row(block, r, form);
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let older = walk.share[r] - sums[at];
            walk.grads[at] = terms[at] * (f32::new(1.0) - breaks[at]) - passed_on[at] * older;
            if comptime![form.own_token] {
                // The rest of the stick goes where the row itself is.
                if row < place.rows && own_column(block, c, form) == place.first_row + row {
                    own.logits[at] += walk.log[r].exp();
                }
            }
        }
    }
}
