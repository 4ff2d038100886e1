//! The gradients: each cube takes every so many blocks of rows of one plane and adds what columns and
//! tables get to a slot of its own, so that no number is added to by two cubes.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::block::{self, Board, Own};
use super::contextual::sum_from_the_right;
use super::form::{CONTEXTUAL_SLOPE, DECAY, FAR, Form, Function, SLOPE};
use super::gradients::{self, Walk};
use super::inputs::{Behind, Inputs, Outputs, Place};
use super::logits::{Block, distance, own_column, own_row};
use super::scatter;
use super::tile;

/// Sums over the row that one unit has so far, one per row each.
#[derive(CubeType)]
struct RowSums {
    slope: Array<f32>,
    contextual_slope: Array<f32>,
    decay: Array<f32>,
    far: Array<f32>,
    /// `rows_each x channels_each`.
    q: Array<f32>,
}

/// Blocks of numbers that all units see, `[rows, columns + 1]` each.
#[derive(CubeType)]
struct Sheets {
    weights: Shared<[f32]>,
    grads: Shared<[f32]>,
    counts: Shared<[f32]>,
    /// `[rows, E + 1]`.
    output_grads: Shared<[f32]>,
}

#[cube]
impl RowSums {
    fn new(#[comptime] form: Form) -> RowSums {
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

    fn clear(&mut self, #[comptime] form: Form) {
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
impl Sheets {
    fn new(#[comptime] form: Form) -> Sheets {
        let rows = comptime![form.tile.rows()];
        let sheet = comptime![rows * (form.tile.columns() + 1)];
        Sheets {
            weights: Shared::new_slice(sheet),
            grads: Shared::new_slice(sheet),
            counts: Shared::new_slice(comptime![if form.has_products() { sheet } else { 1 }]),
            output_grads: Shared::new_slice(comptime![rows * (form.value_dim + 1)]),
        }
    }
}

/// All gradients of one plane's rows that fall to this cube.
#[cube(launch)]
pub(super) fn backward_kernel(
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
    let mut board = Board::new(form);
    let mut own = Own::new(form);
    let mut walk = Walk::new(form);
    let mut sums = RowSums::new(form);
    let mut sheets = Sheets::new(form);
    let mut through = Array::<f32>::new(comptime![form.tile.rows_each]);
    let mut passed = Array::<f32>::new(comptime![form.tile.rows_each]);

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
            comptime![form.tile.units()],
        );
        sums.clear(form);
        let newest = place.first_row + min(block.row + rows, place.rows) - 1;
        let blocks = newest / columns + 1;

        if comptime![form.function.present()] {
            block::begin(&mut board, &mut own, form);
            gradients::begin(behind, place, &block, &mut walk, form);
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
        gradients::begin(behind, place, &block, &mut walk, form);
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
            tile::publish(&own.logits, &mut sheets.weights, comptime![form.tile]);
            tile::publish(&walk.grads, &mut sheets.grads, comptime![form.tile]);
            if comptime![form.has_products()] {
                tile::publish(&own.counts, &mut sheets.counts, comptime![form.tile]);
            }
            own_sums(inputs, place, &block, &own, &walk, &mut sums, out, form);
            sync_cube();
            shared_sums(inputs, place, &block, &board, &sheets, &mut sums, out, slot, form);
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

/// Sums along whole rows of what flows back through the counts.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block of rows")]
fn whole_through(
    inputs: &Inputs,
    place: &Place,
    rows: &Block,
    board: &mut Board,
    own: &mut Own,
    output_grads: &Shared<[f32]>,
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
    let mut block =
        Block { plane: rows.plane, head: rows.head, row: rows.row, column: 0usize };
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

/// What a unit adds up of its own logits.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
fn own_sums(
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
fn shared_sums(
    inputs: &Inputs,
    place: &Place,
    block: &Block,
    board: &Board,
    sheets: &Sheets,
    sums: &mut RowSums,
    out: &mut Outputs,
    slot: usize,
    #[comptime] form: Form,
) {
    tile::add_transposed(
        &sheets.weights,
        &sheets.output_grads,
        &mut out.values,
        slot,
        place.columns,
        block.column,
        f32::new(1.0),
        comptime![form.value_dim],
        comptime![form.tile],
    );
    // Gates from the content add to its gradients first.
    if comptime![form.content && (form.own_gates || !form.function.present())] {
        content_sums(
            place,
            block,
            &board.query,
            &board.keys,
            &sheets.grads,
            sums,
            out,
            slot,
            form,
        );
    }
    if comptime![form.distance] {
        scatter::to_distances(place, block, &sheets.grads, out, slot, form);
    }
    if comptime![form.query_distance] {
        scatter::to_query_distances(inputs, place, block, &sheets.grads, out, form);
    }
    if comptime![form.decay] {
        scatter::to_columns(place, block, &sheets.grads, out, slot, form);
    }
    if comptime![form.function == Function::Table] {
        scatter::to_entries(place, block, &sheets.grads, &sheets.counts, out, form);
    }
    if comptime![form.function.perceptron()] {
        scatter::to_hidden(inputs, place, block, board, &sheets.grads, &sheets.counts, out, form);
    }
}

/// Gradients of queries and keys from those of their products.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
fn content_sums(
    place: &Place,
    block: &Block,
    query: &Shared<[f32]>,
    keys: &Shared<[f32]>,
    grads: &Shared<[f32]>,
    sums: &mut RowSums,
    out: &mut Outputs,
    slot: usize,
    #[comptime] form: Form,
) {
    let scale = place.content_scale;
    let width = comptime![form.head_dim];
    let tile = comptime![form.tile];
    tile::mix(grads, keys, &mut sums.q, scale, width, tile);
    tile::add_transposed(
        grads,
        query,
        &mut out.k,
        slot,
        place.columns,
        block.column,
        scale,
        width,
        tile,
    );
}

/// What flows back through the gates: a gate moves the counts of its own column and all older ones.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
fn gate_sums(
    place: &Place,
    block: &Block,
    board: &mut Board,
    own: &Own,
    walk: &Walk,
    sheets: &mut Sheets,
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
    tile::publish(&terms, &mut sheets.weights, comptime![form.tile]);
    sync_cube();
    if comptime![form.own_gates] {
        let width = comptime![form.head_dim];
        let tile = comptime![form.tile];
        let scale = place.gate_scale;
        tile::mix(&sheets.weights, &board.gate_keys, &mut sums.q, scale, width, tile);
        tile::add_transposed(
            &sheets.weights,
            &board.query,
            &mut out.gate_keys,
            slot,
            place.columns,
            block.column,
            scale,
            width,
            tile,
        );
    } else {
        content_sums(
            place,
            block,
            &board.query,
            &board.keys,
            &sheets.weights,
            sums,
            out,
            slot,
            form,
        );
    }
}

/// Writes what belongs to the block's rows.
#[cube]
fn write(
    place: &Place,
    block: &Block,
    board: &mut Board,
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
