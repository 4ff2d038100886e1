//! Biases that depend on the positions of row and column, and the causal mask.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::KernelConfig;
use super::inputs::{Inputs, LaunchSizes};

/// Position of a block of logits.
#[derive(CubeType, Clone, Copy)]
pub(super) struct BlockOrigin {
    /// Index of the plane: one head of one sequence.
    pub(super) plane: usize,
    pub(super) head: usize,
    /// Index of the first row.
    pub(super) row: usize,
    /// Index of the first column.
    pub(super) column: usize,
}

/// Index of a unit's row among all rows.
#[cube]
pub(super) fn own_row(
    block: &BlockOrigin,
    #[comptime] r: usize,
    #[comptime] config: KernelConfig,
) -> usize {
    block.row + UNIT_POS_Y as usize * comptime![config.tile.rows_each] + r
}

/// Index of a unit's column among all columns.
#[cube]
pub(super) fn own_column(
    block: &BlockOrigin,
    #[comptime] c: usize,
    #[comptime] config: KernelConfig,
) -> usize {
    block.column + UNIT_POS_X as usize * comptime![config.tile.columns_each] + c
}

/// Whether the row exists and sees the column.
#[cube]
pub(super) fn sees(place: &LaunchSizes, row: usize, column: usize) -> bool {
    row < place.rows && column <= place.first_row + row
}

/// Whether a row attends to a column: as [`sees`], except for the row's own token where it does not
/// take part.
#[cube]
pub(super) fn attends(
    place: &LaunchSizes,
    row: usize,
    column: usize,
    #[comptime] config: KernelConfig,
) -> bool {
    if comptime![config.strict] {
        row < place.rows && column < place.first_row + row
    } else {
        row < place.rows && column <= place.first_row + row
    }
}

/// Distance from column to row, 0 where the row does not see the column; both must exist.
#[cube]
pub(super) fn distance(
    inputs: &Inputs,
    place: &LaunchSizes,
    row: usize,
    column: usize,
    #[comptime] config: KernelConfig,
) -> usize {
    let own = place.first_row + row;
    let mut distance = 0usize;
    if column < own {
        if comptime![config.contiguous] {
            distance = own - column;
        } else {
            distance = (inputs.positions[own] - inputs.positions[column]) as usize;
        }
    }
    distance
}

/// Adds slopes, distance tables, running sums and dense biases to the unit's own logits.
#[cube]
pub(super) fn add_biases(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    logits: &mut Array<f32>,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        // Rows and columns past the end repeat the last one; their results are discarded.
        let row = min(own_row(block, r, config), place.rows - 1);
        let own = place.first_row + row;
        let line = block.plane * place.rows + row;
        #[unroll]
        for c in 0..columns {
            let column = min(own_column(block, c, config), place.columns - 1);
            let mut bias = f32::new(0.0);
            if comptime![config.slopes || config.distance || config.query_distance] {
                let away = distance(inputs, place, row, column, config);
                if comptime![config.slopes] {
                    bias -= inputs.slopes[block.head] * away as f32;
                }
                if comptime![config.distance] {
                    let entry = min(away, place.distance_entries - 1);
                    bias += inputs.distance[block.head * place.distance_entries + entry];
                }
                if comptime![config.query_distance] {
                    let entry = min(away, place.query_entries - 1);
                    bias += inputs.query_distance[line * place.query_entries + entry];
                }
            }
            if comptime![config.decay] {
                let sums = block.plane * place.columns;
                bias += inputs.decay[sums + own] - inputs.decay[sums + column];
            }
            if comptime![config.decay_residual] {
                let sums = block.plane * place.columns;
                bias += inputs.decay_residual[sums + own] - inputs.decay_residual[sums + column];
            }
            if comptime![config.dense] {
                bias += inputs.dense[line * place.columns + column];
            }
            logits[r * columns + c] += bias;
        }
    }
}
