//! Contextual positions on GPUs: sums of gates from the diagonal to the left, and the function of
//! these sums.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::config::{Function, KernelConfig};
use super::inputs::{Inputs, LaunchSizes};
use super::logits::{BlockOrigin, own_column, own_row, sees};

/// Number greater than every largest position.
const BEYOND: f32 = 3e30;

/// Computes `1 / (1 + e^-x)`. The comparison propagates NaN, which `max` would replace.
#[cube]
pub(super) fn sigmoid(x: f32) -> f32 {
    let mut exponent = x;
    if x < f32::new(-80.0) {
        exponent = f32::new(-80.0);
    }
    f32::new(1.0) / (f32::new(1.0) + (-exponent).exp())
}

/// Softplus function, `ln(1 + e^x)`.
#[cube]
pub(super) fn softplus(x: f32) -> f32 {
    max(x, f32::new(0.0)) + (f32::new(1.0) + (-x.abs()).exp()).ln()
}

/// Computes suffix sums along each row: of the unit's own numbers, all those to the right in the
/// block, and the total carried from the blocks to the right. `sums` receives the sum up to and
/// including each column, `carried` that of the whole block. All units of the cube must call it.
#[cube]
pub(super) fn sum_from_the_right(
    terms: &Array<f32>,
    sums: &mut Array<f32>,
    carried: &mut Array<f32>,
    segments: &mut Shared<[f32]>,
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows_each];
    let columns = comptime![config.tile.columns_each];
    let units = comptime![config.tile.units_x];
    let unit = UNIT_POS_X as usize;
    let first_row = UNIT_POS_Y as usize * rows;
    #[unroll]
    for r in 0..rows {
        let mut sum = f32::new(0.0);
        #[unroll]
        for c in 0..columns {
            sum += terms[r * columns + c];
        }
        segments[(first_row + r) * units + unit] = sum;
    }
    sync_cube();
    #[unroll]
    for r in 0..rows {
        let mut right = f32::new(0.0);
        let mut left = f32::new(0.0);
        for i in 0..units {
            let other = comptime![units - 1] - i;
            let sum = segments[(first_row + r) * units + other];
            if other > unit {
                right += sum;
            } else {
                left += sum;
            }
        }
        let mut sum = carried[r] + right;
        #[unroll]
        for i in 0..columns {
            let c = comptime![columns - 1 - i];
            sum += terms[r * columns + c];
            sums[r * columns + c] = sum;
        }
        carried[r] = carried[r] + right + left;
    }
}

/// Converts gate logits to gates, 0 where the row does not see the column.
#[cube]
pub(super) fn open_gates(
    gates: &mut Array<f32>,
    place: &LaunchSizes,
    block: &BlockOrigin,
    stopped: bool,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        let row = own_row(block, r, config);
        #[unroll]
        for c in 0..columns {
            let mut gate = f32::new(0.0);
            if !stopped && sees(place, row, own_column(block, c, config)) {
                gate = sigmoid(gates[r * columns + c]);
            }
            gates[r * columns + c] = gate;
        }
    }
}

/// Whether the count of every row of the block has passed the largest position. All units get the
/// same answer once `counted` is written and synchronised.
#[cube]
pub(super) fn all_beyond(
    counted: &Shared<[f32]>,
    place: &LaunchSizes,
    block: &BlockOrigin,
    #[comptime] config: KernelConfig,
) -> bool {
    let mut least = f32::new(BEYOND);
    for r in 0..comptime![config.tile.rows()] {
        if block.row + r < place.rows {
            least = min(least, counted[r]);
        }
    }
    least > place.max_position
}

/// Writes the rows' counts to shared memory.
#[cube]
pub(super) fn publish_counts(
    carried: &Array<f32>,
    counted: &mut Shared<[f32]>,
    #[comptime] config: KernelConfig,
) {
    let rows = comptime![config.tile.rows_each];
    if UNIT_POS_X == 0 {
        #[unroll]
        for r in 0..rows {
            counted[UNIT_POS_Y as usize * rows + r] = carried[r];
        }
    }
}

/// Copies the products of the block's rows to shared memory, padded with zeros.
#[cube]
pub(super) fn load_products(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    products: &mut Shared<[f32]>,
    #[comptime] config: KernelConfig,
) {
    let entries = comptime![config.entries];
    let end = comptime![config.tile.rows() * config.entries];
    let mut at = UNIT_POS as usize;
    while at < end {
        let r = at / entries;
        let entry = at - r * entries;
        let mut value = f32::new(0.0);
        if block.row + r < place.rows {
            value = inputs.products[(block.plane * place.rows + block.row + r) * entries + entry];
        }
        products[at] = value;
        at += comptime![config.tile.units()];
    }
}

/// Returns the activation of the hidden layer and its derivative.
#[cube]
pub(super) fn activate(x: f32, #[comptime] config: KernelConfig) -> (f32, f32) {
    if comptime![config.function == Function::Relu] {
        let mut rise = f32::new(0.0);
        if x > f32::new(0.0) {
            rise = f32::new(1.0);
        }
        (x * rise, rise)
    } else {
        let scaled = x * f32::new(core::f32::consts::FRAC_1_SQRT_2);
        let below = f32::new(0.5) + f32::new(0.5) * Erf::erf(scaled);
        let density = f32::new(0.398_942_3) * (f32::new(-0.5) * x * x).exp();
        (x * below, below + x * density)
    }
}

/// Returns the bias at a contextual position, and its derivative.
#[cube]
pub(super) fn read(
    inputs: &Inputs,
    products: &Shared<[f32]>,
    head: usize,
    row: usize,
    position: f32,
    #[comptime] config: KernelConfig,
) -> (f32, f32) {
    let entries = comptime![config.entries];
    let last = comptime![config.entries.max(1) - 1];
    let start = row * entries;
    if comptime![config.function == Function::Table] {
        let whole = position.floor();
        let fraction = position - whole;
        let entry = min(whole as usize, last);
        let low = products[start + entry];
        let rise = products[start + min(entry + 1, last)] - low;
        // At an integer position the derivative is defined as 0, as in the tensor code.
        let mut slope = f32::new(0.0);
        if fraction > f32::new(0.0) {
            slope = rise;
        }
        (low + rise * fraction, slope)
    } else if comptime![config.function == Function::Slope] {
        let slope = inputs.contextual_slopes[head];
        (slope * position, slope)
    } else {
        let mut bias = products[start + last];
        let mut rise = f32::new(0.0);
        for unit in 0..last {
            let weight = inputs.hidden[unit];
            let (value, slope) = activate(weight * position + inputs.hidden[last + unit], config);
            let product = products[start + unit];
            bias += product * value;
            rise += product * slope * weight;
        }
        (bias, rise)
    }
}

/// Adds the function of the counts to the unit's own logits; `rises` receives the derivatives, 0
/// past the largest position. Once all rows have `stopped`, a constant per row is added.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block")]
pub(super) fn add_function(
    inputs: &Inputs,
    place: &LaunchSizes,
    block: &BlockOrigin,
    products: &Shared<[f32]>,
    counts: &mut Array<f32>,
    logits: &mut Array<f32>,
    rises: &mut Array<f32>,
    stopped: bool,
    #[comptime] config: KernelConfig,
) {
    let columns = comptime![config.tile.columns_each];
    let first_row = UNIT_POS_Y as usize * comptime![config.tile.rows_each];
    #[unroll]
    for r in 0..comptime![config.tile.rows_each] {
        if stopped {
            let (constant, _rise) =
                read(inputs, products, block.head, first_row + r, place.max_position, config);
            #[unroll]
            for c in 0..columns {
                logits[r * columns + c] += constant;
                rises[r * columns + c] = f32::new(0.0);
                counts[r * columns + c] = place.max_position;
            }
        } else {
            #[unroll]
            for c in 0..columns {
                let count = counts[r * columns + c];
                // The comparison propagates NaN, which `min` would replace.
                let mut position = count;
                if count > place.max_position {
                    position = place.max_position;
                }
                let (bias, rise) =
                    read(inputs, products, block.head, first_row + r, position, config);
                logits[r * columns + c] += bias;
                let mut slope = f32::new(0.0);
                if count <= place.max_position {
                    slope = rise;
                }
                rises[r * columns + c] = slope;
                counts[r * columns + c] = position;
            }
        }
    }
}
