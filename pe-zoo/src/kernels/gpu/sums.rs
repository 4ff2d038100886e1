//! What a block of logits adds to the gradients.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Board, Own};
use super::form::{CONTEXTUAL_SLOPE, DECAY, FAR, Form, Function, SLOPE};
use super::gradients::Walk;
use super::inputs::{Inputs, Outputs, Place};
use super::logits::{Block, distance, own_column, own_row};
use super::scatter;
use super::tile::{self, Sheet};

/// Sums over the row that one unit has so far, one per row each.
#[derive(CubeType)]
pub(super) struct RowSums {
    pub(super) slope: Array<f32>,
    pub(super) contextual_slope: Array<f32>,
    pub(super) decay: Array<f32>,
    pub(super) far: Array<f32>,
    /// `rows_each x channels_each`.
    pub(super) q: Array<f32>,
}

/// Blocks of numbers that all units see, `[rows, columns]` each.
#[derive(CubeType)]
pub(super) struct Sheets<F: Float> {
    pub(super) weights: Sheet<F>,
    pub(super) grads: Sheet<F>,
    /// `[rows, columns + 1]`.
    pub(super) counts: Shared<[f32]>,
    /// `[rows, E]`.
    pub(super) output_grads: Sheet<F>,
}

#[cube]
impl RowSums {
    pub(super) fn new(#[comptime] form: Form) -> RowSums {
        let rows = comptime![form.tile.rows_each];
        let channels = comptime![rows * form.tile.channels_each(form.head_dim)];
        RowSums {
            slope: Array::new(rows),
            contextual_slope: Array::new(rows),
            decay: Array::new(rows),
            far: Array::new(rows),
            q: Array::new(channels),
        }
    }

    pub(super) fn clear(&mut self, #[comptime] form: Form) {
        let rows = comptime![form.tile.rows_each];
        #[unroll]
        for r in 0..rows {
            self.slope[r] = f32::new(0.0);
            self.contextual_slope[r] = f32::new(0.0);
            self.decay[r] = f32::new(0.0);
            self.far[r] = f32::new(0.0);
        }
        #[unroll]
        for i in 0..comptime![rows * form.tile.channels_each(form.head_dim)] {
            self.q[i] = f32::new(0.0);
        }
    }
}

#[cube]
impl<F: Float> Sheets<F> {
    pub(super) fn new(#[comptime] form: Form) -> Sheets<F> {
        let rows = comptime![form.tile.rows()];
        let columns = comptime![form.tile.columns()];
        let counts = comptime![if form.has_products() { rows * (columns + 1) } else { 1 }];
        Sheets::<F> {
            weights: Sheet::of_factors(rows, columns, form),
            grads: Sheet::new(
                rows,
                columns,
                comptime![form.exact_grads()],
                comptime![form.cores()],
            ),
            counts: Shared::new_slice(counts),
            output_grads: Sheet::of_factors(rows, form.value_dim, form),
        }
    }
}

/// What a unit adds up of its own logits.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn own_sums(
    inputs: &Inputs,
    place: &Place,
    block: &Block,
    own: &Own,
    walk: &Walk,
    sums: &mut RowSums,
    out: &mut Outputs,
    #[comptime] form: Form,
) {
    let columns = comptime![form.tile.columns_each];
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        let row = own_row(block, r, form);
        #[unroll]
        for c in 0..columns {
            let at = comptime![r * columns + c];
            let grad = walk.grads[at];
            let column = own_column(block, c, form);
            if comptime![form.slopes || form.distance] {
                let away = distance(
                    inputs,
                    place,
                    min(row, place.rows - 1),
                    min(column, place.columns - 1),
                    form,
                );
                if comptime![form.slopes] {
                    sums.slope[r] -= grad * away as f32;
                }
                if comptime![form.distance] {
                    if away >= place.distance_entries - 1 {
                        sums.far[r] += grad;
                    }
                }
            }
            if comptime![form.decay] {
                sums.decay[r] += grad;
            }
            if comptime![form.function == Function::Slope] {
                sums.contextual_slope[r] += grad * own.counts[at];
            }
            if comptime![form.dense] {
                if row < place.rows && column < place.columns {
                    let line = block.plane * place.rows + row;
                    out.dense[line * place.columns + column] = grad;
                }
            }
        }
    }
}

/// What is added up of a block's weights and gradients by any unit.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn shared_sums<F: Float>(
    inputs: &Inputs,
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    sheets: &Sheets<F>,
    sums: &mut RowSums,
    out: &mut Outputs,
    slot: usize,
    #[comptime] form: Form,
) {
    tile::add_transposed(
        &sheets.weights,
        &sheets.output_grads,
        &mut out.values,
        &mut board.stage,
        slot,
        place.columns,
        block.column,
        f32::new(1.0),
        comptime![form.value_dim],
        form,
    );
    // Gates from the content add to its gradients first.
    if comptime![form.content && (form.own_gates || !form.function.present())] {
        content_sums(place, block, board, &sheets.grads, sums, out, slot, form);
    }
    if comptime![form.distance] {
        scatter::to_distances(place, block, &sheets.grads.exact, out, slot, form);
    }
    if comptime![form.query_distance] {
        scatter::to_query_distances(inputs, place, block, &sheets.grads.exact, out, form);
    }
    if comptime![form.decay] {
        scatter::to_columns(place, block, &sheets.grads.exact, out, slot, form);
    }
    if comptime![form.function == Function::Table] {
        scatter::to_entries(place, block, &sheets.grads.exact, &sheets.counts, out, form);
    }
    if comptime![form.function.perceptron()] {
        let (grads, counts) = (&sheets.grads.exact, &sheets.counts);
        scatter::to_hidden(inputs, place, block, &board.products, grads, counts, out, form);
    }
}

/// Gradients of queries and keys from those of their products.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn content_sums<F: Float>(
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    grads: &Sheet<F>,
    sums: &mut RowSums,
    out: &mut Outputs,
    slot: usize,
    #[comptime] form: Form,
) {
    let scale = place.content_scale;
    let width = comptime![form.head_dim];
    tile::mix(grads, &board.keys, &mut sums.q, &mut board.stage, scale, width, form);
    tile::add_transposed(
        grads,
        &board.query,
        &mut out.k,
        &mut board.stage,
        slot,
        place.columns,
        block.column,
        scale,
        width,
        form,
    );
}

/// Writes what belongs to the block's rows.
#[cube]
pub(super) fn write<F: Float>(
    place: &Place,
    block: &Block,
    board: &mut Board<F>,
    sums: &mut RowSums,
    out: &mut Outputs,
    #[comptime] form: Form,
) {
    let width = comptime![form.head_dim];
    let each = comptime![form.tile.channels_each(form.head_dim)];
    if comptime![form.slopes] {
        block::add_up(&mut sums.slope, board, form);
    }
    if comptime![form.function == Function::Slope] {
        block::add_up(&mut sums.contextual_slope, board, form);
    }
    if comptime![form.decay] {
        block::add_up(&mut sums.decay, board, form);
    }
    if comptime![form.distance] {
        block::add_up(&mut sums.far, board, form);
    }
    #[unroll]
    for r in 0..comptime![form.tile.rows_each] {
        let row = own_row(block, r, form);
        if row < place.rows {
            let line = block.plane * place.rows + row;
            #[unroll]
            for i in 0..each {
                let channel = UNIT_POS_X as usize + comptime![i * form.tile.units_x];
                if channel < width {
                    out.q[line * width + channel] = sums.q[r * each + i];
                }
            }
            if UNIT_POS_X == 0 {
                let start = line * scatter::row_stride(place, form);
                if comptime![form.slopes] {
                    out.rows[start + SLOPE] = sums.slope[r];
                }
                if comptime![form.function == Function::Slope] {
                    out.rows[start + CONTEXTUAL_SLOPE] = sums.contextual_slope[r];
                }
                if comptime![form.decay] {
                    out.rows[start + DECAY] = sums.decay[r];
                }
                if comptime![form.distance] {
                    out.rows[start + FAR] = sums.far[r];
                }
            }
        }
    }
}
