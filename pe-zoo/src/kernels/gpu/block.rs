//! The logits of one block, and what the contextual positions leave behind.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::contextual;
use super::cores;
use super::form::Form;
use super::inputs::{Inputs, Place};
use super::logits::{self, Block};
use super::tile::{self, Sheet};

/// What all units of a cube see.
#[derive(CubeType)]
pub(super) struct Board<F: Float> {
    /// `[rows, D]`.
    pub(super) query: Sheet<F>,
    /// `[columns, D]`.
    pub(super) keys: Sheet<F>,
    /// `[columns, E]`.
    pub(super) values: Sheet<F>,
    /// `[columns, D]`.
    pub(super) gate_keys: Sheet<F>,
    /// Where tensor cores leave their products.
    pub(super) stage: Shared<[f32]>,
    /// `[rows, entries]`.
    pub(super) products: Shared<[f32]>,
    /// `[rows, units_x]`.
    pub(super) segments: Shared<[f32]>,
    /// `[rows, units_x]`.
    pub(super) other_segments: Shared<[f32]>,
    /// `[rows]`.
    pub(super) counted: Shared<[f32]>,
}

#[cube]
impl<F: Float> Board<F> {
    pub(super) fn new(#[comptime] form: Form) -> Board<F> {
        let rows = comptime![form.tile.rows()];
        let columns = comptime![form.tile.columns()];
        let products = comptime![if form.has_products() { rows * form.entries } else { 1 }];
        let gate_exact = comptime![form.own_gates && !form.cores()];
        let gate_rounded = comptime![form.own_gates && form.cores()];
        Board::<F> {
            query: Sheet::of_factors(rows, form.head_dim, form),
            keys: Sheet::of_factors(columns, form.head_dim, form),
            values: Sheet::of_factors(columns, form.value_dim, form),
            gate_keys: Sheet::new(columns, form.head_dim, gate_exact, gate_rounded),
            stage: Shared::new_aligned_slice(comptime![form.stage()], comptime![cores::ALIGNMENT]),
            products: Shared::new_slice(products),
            segments: Shared::new_slice(comptime![rows * form.tile.units_x]),
            other_segments: Shared::new_slice(comptime![rows * form.tile.units_x]),
            counted: Shared::new_slice(rows),
        }
    }
}

/// What one unit knows of its part of a block: `rows_each x columns_each` numbers each, and one per
/// row of what is carried from the blocks to the right.
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
    pub(super) fn new(#[comptime] form: Form) -> Own {
        let all = comptime![form.tile.rows_each * form.tile.columns_each];
        let some = comptime![if form.function.present() { all } else { 1 }];
        Own {
            logits: Array::new(all),
            gates: Array::new(some),
            counts: Array::new(some),
            rises: Array::new(some),
            counted: Array::new(comptime![form.tile.rows_each]),
        }
    }
}

/// Begins a walk along a block of rows: nothing is counted yet. To be followed by a barrier.
#[cube]
pub(super) fn begin<F: Float>(board: &mut Board<F>, own: &mut Own, #[comptime] form: Form) {
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        own.counted[r] = f32::new(0.0);
    }
    contextual::publish_counts(&own.counted, &mut board.counted, form);
}

/// Loads what stays while a block of rows is walked along. To be followed by a barrier.
#[cube]
pub(super) fn load_rows<F: Float>(
    inputs: &Inputs,
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    #[comptime] form: Form,
) {
    let rows = comptime![form.tile.rows()];
    let width = comptime![form.head_dim];
    tile::load(&inputs.q, &mut board.query, block.plane, place.rows, block.row, rows, width, form);
    if comptime![form.has_products()] {
        contextual::load_products(inputs, place, block, &mut board.products, form);
    }
}

/// Makes `own.logits` of one block, and of contextual positions `own.gates`, `own.counts` (clamped)
/// and `own.rises`. Returns whether all rows had counted past the largest position before.
#[cube]
pub(super) fn logits_of<F: Float>(
    inputs: &Inputs,
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    own: &mut Own,
    #[comptime] form: Form,
) -> bool {
    let columns = comptime![form.tile.columns()];
    let all = comptime![form.tile.rows_each * form.tile.columns_each];
    // Nobody may still read what was loaded before.
    sync_cube();
    tile::load(
        &inputs.k,
        &mut board.keys,
        block.plane,
        place.columns,
        block.column,
        columns,
        comptime![form.head_dim],
        form,
    );
    tile::load(
        &inputs.values,
        &mut board.values,
        block.plane,
        place.columns,
        block.column,
        columns,
        comptime![form.value_dim],
        form,
    );
    if comptime![form.own_gates] {
        tile::load(
            &inputs.gate_keys,
            &mut board.gate_keys,
            block.plane,
            place.columns,
            block.column,
            columns,
            comptime![form.head_dim],
            form,
        );
    }
    sync_cube();
    if comptime![form.content] {
        tile::dot(
            &board.query,
            &board.keys,
            &mut own.logits,
            &mut board.stage,
            place.content_scale,
            comptime![form.head_dim],
            form,
        );
    } else {
        #[unroll]
        for i in 0..all {
            own.logits[i] = f32::new(0.0);
        }
    }
    let mut stopped = false;
    if comptime![form.function.present()] {
        stopped = contextual::all_beyond(&board.counted, place, block, form);
        if comptime![form.own_gates] {
            if !stopped {
                tile::dot(
                    &board.query,
                    &board.gate_keys,
                    &mut own.gates,
                    &mut board.stage,
                    place.gate_scale,
                    comptime![form.head_dim],
                    form,
                );
            }
        } else {
            let ratio = place.gate_scale / place.content_scale;
            #[unroll]
            for i in 0..all {
                own.gates[i] = own.logits[i] * ratio;
            }
        }
        contextual::open_gates(&mut own.gates, place, block, stopped, form);
        contextual::sum_from_the_right(
            &own.gates,
            &mut own.counts,
            &mut own.counted,
            &mut board.segments,
            form,
        );
        contextual::publish_counts(&own.counted, &mut board.counted, form);
        contextual::add_function(
            inputs,
            place,
            block,
            &board.products,
            &mut own.counts,
            &mut own.logits,
            &mut own.rises,
            stopped,
            form,
        );
    }
    logits::add_biases(inputs, place, block, &mut own.logits, form);
    stopped
}

/// Each unit knows the sum over its own columns; afterwards all know that over the row.
#[cube]
pub(super) fn add_up<F: Float>(
    total: &mut Array<f32>,
    board: &mut Board<F>,
    #[comptime] form: Form,
) {
    let units = comptime![form.tile.units_x];
    let rows_each = comptime![form.tile.rows_each];
    let first_row = UNIT_POS_Y as usize * rows_each;
    sync_cube();
    #[unroll]
    for r in 0..rows_each {
        board.other_segments[(first_row + r) * units + UNIT_POS_X as usize] = total[r];
    }
    sync_cube();
    #[unroll]
    for r in 0..rows_each {
        let mut sum = f32::new(0.0);
        for unit in 0..units {
            sum += board.other_segments[(first_row + r) * units + unit];
        }
        total[r] = sum;
    }
}
