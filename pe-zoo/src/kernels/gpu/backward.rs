//! The gradients: each cube takes every so many blocks of rows of one plane and adds what columns and
//! tables get to a slot of its own, so that no number is added to by two cubes.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Board, Own};
use super::contextual::sum_from_the_right;
use super::form::Form;
use super::gradients::{self, Walk};
use super::inputs::{Behind, Inputs, Outputs, Place};
use super::logits::Block;
use super::sums::{RowSums, Sheets, content_sums, own_sums, shared_sums, write};
use super::tile::{self, Sheet};

/// All gradients of one plane's rows that fall to this cube.
#[cube(launch, create_dummy_kernel)]
pub(super) fn backward_kernel<F: Float>(
    inputs: &Inputs,
    place: &Place,
    behind: &Behind,
    out: &mut Outputs,
    #[comptime] form: Form,
) {
    let rows = comptime![form.tile.rows()];
    let columns = comptime![form.tile.columns()];
    let plane = CUBE_POS_Y as usize;
    let slot = CUBE_POS_X as usize * CUBE_COUNT_Y as usize + plane;
    let mut block = Block { plane, head: plane % place.heads, row: 0usize, column: 0usize };
    let mut board = Board::<F>::new(form);
    let mut own = Own::new(form);
    let mut walk = Walk::new(form);
    let mut sums = RowSums::new(form);
    let mut sheets = Sheets::<F>::new(form);
    let mut through = Array::<f32>::new(comptime![form.tile.rows_each]);
    let mut passed = Array::<f32>::new(comptime![form.tile.rows_each]);
    let mut whole = Array::<f32>::new(comptime![form.tile.rows_each]);

    block.row = CUBE_POS_X as usize * rows;
    while block.row < place.rows {
        // Nobody may still read the rows before.
        sync_cube();
        block::load_rows(inputs, place, &block, &mut board, form);
        tile::load(
            &behind.grad,
            &mut sheets.output_grads,
            plane,
            place.rows,
            block.row,
            rows,
            comptime![form.value_dim],
            form,
        );
        sums.clear(form);
        let newest = place.first_row + min(block.row + rows, place.rows) - 1;
        let blocks = newest / columns + 1;

        if comptime![form.own_whole()] {
            #[unroll]
            for r in 0..comptime![form.tile.rows_each] {
                whole[r] = f32::new(0.0);
            }
            block::begin(&mut board, &mut own, form);
            gradients::begin(behind, place, &block, &mut walk, &whole, form);
            whole_output(
                inputs,
                place,
                &block,
                &mut board,
                &mut own,
                &sheets.output_grads,
                &mut walk,
                &mut whole,
                blocks,
                form,
            );
        }
        if comptime![form.function.present()] {
            block::begin(&mut board, &mut own, form);
            gradients::begin(behind, place, &block, &mut walk, &whole, form);
            whole_through(
                inputs,
                place,
                &block,
                &mut board,
                &mut own,
                &sheets.output_grads,
                &mut walk,
                &mut through,
                blocks,
                form,
            );
        }

        block::begin(&mut board, &mut own, form);
        gradients::begin(behind, place, &block, &mut walk, &whole, form);
        #[unroll]
        for r in 0..comptime![form.tile.rows_each] {
            passed[r] = f32::new(0.0);
        }
        for step in 0..blocks {
            block.column = (blocks - 1 - step) * columns;
            let _stopped = gradients::gradients_of(
                inputs,
                place,
                &block,
                &mut board,
                &mut own,
                &sheets.output_grads,
                &mut walk,
                form,
            );
            tile::publish_factors(&own.logits, &mut sheets.weights, form);
            tile::publish_both(&walk.grads, &mut sheets.grads, form);
            if comptime![form.has_products()] {
                tile::publish_exact(&own.counts, &mut sheets.counts, form);
            }
            own_sums(inputs, place, &block, &own, &walk, &mut sums, out, form);
            sync_cube();
            shared_sums(inputs, place, &block, &mut board, &sheets, &mut sums, out, slot, form);
            if comptime![form.function.present()] {
                gate_sums(
                    place,
                    &block,
                    &mut board,
                    &own,
                    &walk,
                    &mut sheets,
                    &mut sums,
                    &through,
                    &mut passed,
                    out,
                    slot,
                    form,
                );
            }
        }
        write(place, &block, &mut board, &mut sums, out, form);
        block.row += CUBE_COUNT_X as usize * rows;
    }
}

/// Products of the output and its gradient, added up in the order in which they are taken apart.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block of rows")]
fn whole_output<F: Float>(
    inputs: &Inputs,
    place: &Place,
    rows: &Block,
    board: &mut Board<F>,
    own: &mut Own,
    output_grads: &Sheet<F>,
    walk: &mut Walk,
    whole: &mut Array<f32>,
    blocks: usize,
    #[comptime] form: Form,
) {
    let mut block = Block { plane: rows.plane, head: rows.head, row: rows.row, column: 0usize };
    for step in 0..blocks {
        block.column = (blocks - 1 - step) * comptime![form.tile.columns()];
        let _stopped =
            gradients::gradients_of(inputs, place, &block, board, own, output_grads, walk, form);
    }
    if comptime![form.own_token] {
        block::add_up(&mut walk.rest, board, form);
    }
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        whole[r] = walk.taken[r];
        if comptime![form.own_token] {
            whole[r] = walk.taken[r] + walk.rest[r];
        }
    }
}

/// Sums along whole rows of what flows back through the counts.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block of rows")]
fn whole_through<F: Float>(
    inputs: &Inputs,
    place: &Place,
    rows: &Block,
    board: &mut Board<F>,
    own: &mut Own,
    output_grads: &Sheet<F>,
    walk: &mut Walk,
    through: &mut Array<f32>,
    blocks: usize,
    #[comptime] form: Form,
) {
    let all = comptime![form.tile.columns_each];
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        through[r] = f32::new(0.0);
    }
    let mut block = Block { plane: rows.plane, head: rows.head, row: rows.row, column: 0usize };
    let mut step = 0usize;
    while step < blocks {
        block.column = (blocks - 1 - step) * comptime![form.tile.columns()];
        let stopped =
            gradients::gradients_of(inputs, place, &block, board, own, output_grads, walk, form);
        #[unroll]
        for r in 0..comptime![form.tile.rows_each] {
            #[unroll]
            for c in 0..all {
                through[r] += walk.grads[r * all + c] * own.rises[r * all + c];
            }
        }
        step += 1;
        if stopped {
            // Nothing changes further left.
            step = blocks;
        }
    }
    block::add_up(through, board, form);
}

/// What flows back through the gates: a gate moves the counts of its own column and all older ones.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
fn gate_sums<F: Float>(
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    own: &Own,
    walk: &Walk,
    sheets: &mut Sheets<F>,
    sums: &mut RowSums,
    through: &Array<f32>,
    passed: &mut Array<f32>,
    out: &mut Outputs,
    slot: usize,
    #[comptime] form: Form,
) {
    let columns = comptime![form.tile.columns_each];
    let all = comptime![form.tile.rows_each * columns];
    let mut terms = Array::<f32>::new(all);
    let mut newer = Array::<f32>::new(all);
    #[unroll]
    for i in 0..all {
        terms[i] = walk.grads[i] * own.rises[i];
    }
    sum_from_the_right(&terms, &mut newer, passed, &mut board.other_segments, form);
    let ratio = place.gate_scale / place.content_scale;
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let gate = own.gates[at];
            let older = through[r] - newer[at] + terms[at];
            let grad = older * gate * (f32::new(1.0) - gate);
            if comptime![form.own_gates] {
                terms[at] = grad;
            } else {
                terms[at] = walk.grads[at] + grad * ratio;
            }
        }
    }
    // The barrier of the sums has made sure that nobody reads the weights any more.
    tile::publish_factors(&terms, &mut sheets.weights, form);
    sync_cube();
    if comptime![form.own_gates] {
        let width = comptime![form.head_dim];
        let scale = place.gate_scale;
        let grads = &sheets.weights;
        tile::mix(grads, &board.gate_keys, &mut sums.q, &mut board.stage, scale, width, form);
        tile::add_transposed(
            grads,
            &board.query,
            &mut out.gate_keys,
            &mut board.stage,
            slot,
            place.columns,
            block.column,
            scale,
            width,
            form,
        );
    } else {
        content_sums(place, block, board, &sheets.weights, sums, out, slot, form);
    }
}
