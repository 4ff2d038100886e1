//! Gradients that are summed per row, per column and per distance. No two units add to the same
//! number.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{FIXED, KernelConfig};
use super::contextual::activate;
use super::inputs::{Inputs, LaunchSizes, Outputs};
use super::logits::{BlockOrigin, distance, own_row};

/// Number of values per row in `Outputs::rows`.
#[cube]
pub(super) fn row_stride(place: &LaunchSizes, #[comptime] config: KernelConfig) -> usize {
    comptime![config.row_grads(0)] + place.query_entries
}

/// Adds the gradients of the products with a table. One unit per row processes the columns in order
/// and writes whenever the entry changes.
#[cube]
pub(super) fn to_entries(
    place: &LaunchSizes,
    block: &BlockOrigin,
    grads: &Shared<[f32]>,
    counts: &Shared<[f32]>,
    out: &mut Outputs,
    #[comptime] config: KernelConfig,
) {
    let stride = comptime![config.tile.columns() + 1];
    let last = comptime![config.entries.max(1) - 1];
    let mut r = UNIT_POS as usize;
    while r < comptime![config.tile.rows()] {
        if block.row + r < place.rows {
            let line = block.plane * place.rows + block.row + r;
            let start = line * row_stride(place, config) + comptime![FIXED + 2 * config.hidden()];
            let mut entry = 0usize;
            let mut low = f32::new(0.0);
            let mut high = f32::new(0.0);
            for c in 0..comptime![config.tile.columns()] {
                let position = counts[r * stride + c];
                let grad = grads[r * stride + c];
                let whole = position.floor();
                let at = min(whole as usize, last);
                if at != entry {
                    out.rows[start + entry] += low;
                    out.rows[start + min(entry + 1, last)] += high;
                    low = f32::new(0.0);
                    high = f32::new(0.0);
                    entry = at;
                }
                let above = grad * (position - whole);
                low += grad - above;
                high += above;
            }
            out.rows[start + entry] += low;
            out.rows[start + min(entry + 1, last)] += high;
        }
        r += comptime![config.tile.units()];
    }
}

/// Adds the gradients of the products with a perceptron's second layer, and of its hidden layer.
/// The units of a row share the hidden units.
#[cube]
pub(super) fn to_hidden(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    products: &Shared<[f32]>,
    grads: &Shared<[f32]>,
    counts: &Shared<[f32]>,
    out: &mut Outputs,
    #[comptime] config: KernelConfig,
) {
    let stride = comptime![config.tile.columns() + 1];
    let hidden = comptime![config.hidden()];
    #[unroll]
    for i in 0..comptime![config.tile.rows_each] {
        let r = UNIT_POS_Y as usize * comptime![config.tile.rows_each] + i;
        let row = own_row(block, i, config);
        if row < place.rows {
            let line = block.plane * place.rows + row;
            let start = line * row_stride(place, config) + comptime![FIXED];
            let mut unit = UNIT_POS_X as usize;
            while unit <= hidden {
                let mut of_product = f32::new(0.0);
                if unit < hidden {
                    let weight = inputs.hidden[unit];
                    let bias = inputs.hidden[hidden + unit];
                    let product = products[r * comptime![config.entries] + unit];
                    let mut of_weight = f32::new(0.0);
                    let mut of_bias = f32::new(0.0);
                    for c in 0..comptime![config.tile.columns()] {
                        let position = counts[r * stride + c];
                        let grad = grads[r * stride + c];
                        let (value, slope) = activate(weight * position + bias, config);
                        of_product += grad * value;
                        let through = grad * product * slope;
                        of_weight += through * position;
                        of_bias += through;
                    }
                    out.rows[start + unit] += of_weight;
                    out.rows[start + hidden + unit] += of_bias;
                } else {
                    for c in 0..comptime![config.tile.columns()] {
                        of_product += grads[r * stride + c];
                    }
                }
                out.rows[start + comptime![2 * config.hidden()] + unit] += of_product;
                unit += comptime![config.tile.units_x];
            }
        }
    }
}

/// Adds the gradients of the products with the distance table, one unit per row.
#[cube]
pub(super) fn to_query_distances(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    grads: &Shared<[f32]>,
    out: &mut Outputs,
    #[comptime] config: KernelConfig,
) {
    let stride = comptime![config.tile.columns() + 1];
    let mut r = UNIT_POS as usize;
    while r < comptime![config.tile.rows()] {
        let row = block.row + r;
        if row < place.rows {
            let line = block.plane * place.rows + row;
            let start = line * row_stride(place, config) + comptime![config.row_grads(0)];
            let mut entry = 0usize;
            let mut sum = f32::new(0.0);
            for c in 0..comptime![config.tile.columns()] {
                let column = min(block.column + c, place.columns - 1);
                let away = distance(inputs, place, row, column, config);
                let at = min(away, place.query_entries - 1);
                if at != entry {
                    out.rows[start + entry] += sum;
                    sum = f32::new(0.0);
                    entry = at;
                }
                sum += grads[r * stride + c];
            }
            out.rows[start + entry] += sum;
        }
        r += comptime![config.tile.units()];
    }
}

/// Adds the gradients of a distance table at contiguous positions, one unit per diagonal. Gradients
/// at the last entry and beyond are summed per row.
#[cube]
pub(super) fn to_distances(
    place: &LaunchSizes,
    block: &BlockOrigin,
    grads: &Shared<[f32]>,
    out: &mut Outputs,
    slot: usize,
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows()];
    let columns = comptime![config.tile.columns()];
    let stride = comptime![config.tile.columns() + 1];
    // Distance from the first row to the column after the last one: that of diagonal 0, plus one.
    let first = place.first_row + block.row + 1;
    let mut diagonal = UNIT_POS as usize;
    while diagonal < comptime![rows + columns - 1] {
        // Row r and column c with r + columns - 1 - c = diagonal.
        let reach = first + diagonal;
        let end = block.column + columns;
        if reach >= end && reach - end < place.distance_entries - 1 {
            let mut sum = f32::new(0.0);
            for r in 0..rows {
                let column = r + comptime![columns - 1];
                if column >= diagonal && column - diagonal < columns {
                    sum += grads[r * stride + column - diagonal];
                }
            }
            out.distance[slot * place.distance_entries + reach - end] += sum;
        }
        diagonal += comptime![config.tile.units()];
    }
}

/// Adds the gradients of the running sums that come from columns.
#[cube]
pub(super) fn to_columns(
    place: &LaunchSizes,
    block: &BlockOrigin,
    grads: &Shared<[f32]>,
    out: &mut Outputs,
    slot: usize,
    #[comptime] config: KernelConfig,
) {
    let stride = comptime![config.tile.columns() + 1];
    let mut c = UNIT_POS as usize;
    while c < comptime![config.tile.columns()] {
        let mut sum = f32::new(0.0);
        for r in 0..comptime![config.tile.rows()] {
            sum += grads[r * stride + c];
        }
        if block.column + c < place.columns {
            out.decay[slot * place.columns + block.column + c] -= sum;
        }
        c += comptime![config.tile.units()];
    }
}
