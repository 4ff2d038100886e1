//! Blocks near the diagonal under a form along the row: logits from products, and gradients of both.
//!
//! Sums along a row are carried from the diagonal to the left, as the kernels walk. A block is far when every row of the
//! cube has counted past the largest contextual position, has nothing left of its stick, or has passed the last distance of
//! its table: its biases are one number a row, or it has no weight at all.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::{LOG2_E, logarithm, power_of_two, reciprocal};
use super::biases::LOWEST;
use super::config::{ACROSS, AlongRow, MmaConfig};
use super::inputs::{MmaInputs, MmaSizes};
use super::pair::{PairPlace, pair_place};
use super::row_table::{RowTable, far_bias};
use super::rows::RowStatistics;
use super::terms::term_logits;
use super::tile::{Results, SumPair};
use super::walk::CubeWalk;
use crate::score::FarPairs;

/// Binary logarithm of the part of a stick, negated, at which what is left of it is lost in rounding.
pub(super) const NOTHING_LEFT: f32 = 20.0;

/// Numbers of this unit's two rows that are carried from the diagonal to the left.
#[derive(CubeType)]
pub(super) struct Carried {
    /// Sums of gates, or binary logarithms of what is left of the sticks, negated.
    pub(super) passed: Array<f32>,
    /// Sums of the gradients by `passed`, minus those of the whole rows.
    pub(super) behind: Array<f32>,
    /// Biases in base 2 of far columns.
    pub(super) far: Array<f32>,
}

#[cube]
impl Carried {
    /// State at the diagonal.
    pub(super) fn new() -> Carried {
        let mut carried = Carried {
            passed: Array::new(2usize),
            behind: Array::new(2usize),
            far: Array::new(2usize),
        };
        #[unroll]
        for eight in 0..2usize {
            carried.passed[eight] = f32::new(0.0);
            carried.behind[eight] = f32::new(0.0);
            carried.far[eight] = f32::new(0.0);
        }
        carried
    }

    /// Reads the biases of far columns.
    pub(super) fn read_far(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        walk: &CubeWalk,
        #[comptime] config: MmaConfig,
    ) {
        #[unroll]
        for eight in 0..2usize {
            let row = walk.first + walk.of_plane + UNIT_POS_PLANE as usize / 4 + eight * 8;
            self.far[eight] = far_bias(inputs, place, walk.plane, row, config);
        }
    }
}

/// Numbers of two adjacent columns of a row.
#[derive(CubeType, Clone, Copy)]
pub(super) struct ScoredPair {
    /// Logits in base 2; for sticks the logarithms of the weights.
    pub(super) logits: SumPair,
    /// Gates or, of step prices, their logarithms; the shares that columns take of what is left of a stick; 0 where the row does
    /// not see the column. Of far products, 1 for far pairs and 0 for others.
    pub(super) gates: SumPair,
    /// Contextual positions, sums of step prices, or binary logarithms of what is left of a stick after the column, negated.
    pub(super) positions: SumPair,
    /// Derivatives of the logits, not in base 2, by the contextual positions.
    pub(super) rises: SumPair,
    /// Indices of the pieces of a piecewise linear function.
    pub(super) pieces: SumPair,
}

/// Whether a row attends to a column.
#[cube]
fn attends(at: &PairPlace, #[comptime] one: usize, #[comptime] config: MmaConfig) -> bool {
    if comptime![matches!(config.along, AlongRow::Sticks { strict: true })] {
        at.column + one < at.own
    } else {
        at.column + one <= at.own
    }
}

/// Computes suffix sums along a row: of the pair, of all numbers to its right in the eight columns of the row's four lanes,
/// and of `carried`, which becomes the sum with all eight.
#[cube]
fn sum_from_the_right(
    pair: SumPair,
    carried: &mut Array<f32>,
    #[comptime] eight: usize,
) -> SumPair {
    let quarter = UNIT_POS_PLANE % 4;
    let own = pair.extract(0usize) + pair.extract(1usize);
    let beside = plane_shuffle_xor(own, 1);
    let two = own + beside;
    let across = plane_shuffle_xor(two, 2);
    let mut sum = carried[eight] + select(quarter < 2, across, f32::new(0.0));
    sum += select(quarter % 2 == 0, beside, f32::new(0.0));
    sum += pair.extract(1usize);
    let mut sums = SumPair::empty();
    sums.insert(1usize, sum);
    sums.insert(0usize, sum + pair.extract(0usize));
    carried[eight] += two + across;
    sums
}

/// Whether two tokens are far from each other.
#[cube]
fn are_far(at: &PairPlace, #[comptime] one: usize, #[comptime] pairs: FarPairs) -> bool {
    let mut first_near = at.own + 1;
    if comptime![matches!(pairs, FarPairs::Distance { .. })] {
        let from = comptime![pairs.lengths()[0]];
        first_near = max(first_near, from) - from;
    } else {
        let (chunk, last) = comptime![(pairs.lengths()[0], pairs.lengths()[1])];
        let begin = at.own / chunk * chunk;
        first_near = begin;
        if at.own - begin <= last {
            first_near = max(begin, chunk) - chunk;
        }
    }
    at.column + one < first_near
}

/// Logarithm of the sigmoid.
#[cube]
fn log_sigmoid(x: f32, #[comptime] native: bool) -> f32 {
    let smaller = power_of_two(-x.abs() * comptime![LOG2_E], native);
    let whole = logarithm(f32::new(1.0) + smaller, native) * comptime![std::f32::consts::LN_2];
    min(x, f32::new(0.0)) - whole
}

/// Scores two adjacent columns; all lanes of a plane must call it. `passed` is carried from the columns to the right. `second`
/// are the second products, or `products` if there are none.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one pair, and its row's")]
pub(super) fn score(
    products: SumPair,
    second: SumPair,
    passed: &mut Array<f32>,
    table: &RowTable,
    inputs: &MmaInputs,
    place: &MmaSizes,
    at: &PairPlace,
    #[comptime] eight: usize,
    #[comptime] config: MmaConfig,
) -> ScoredPair {
    let scale = place.scale * comptime![LOG2_E];
    let native = comptime![config.native];
    let content = products * SumPair::new(scale);
    let mut logits = SumPair::empty();
    let mut gates = SumPair::new(0.0);
    let mut positions = SumPair::new(0.0);
    let mut rises = SumPair::new(0.0);
    let mut pieces = SumPair::new(0.0);
    if comptime![config.contextual()] {
        let gate_scale = place.gate_scale * comptime![LOG2_E];
        #[unroll]
        for one in 0..2usize {
            let gate = if comptime![config.along == AlongRow::StepPrices] {
                log_sigmoid(second.extract(one) * place.gate_scale, native)
            } else {
                let closed = power_of_two(-(second.extract(one) * gate_scale), native);
                reciprocal(f32::new(1.0) + closed, native)
            };
            gates.insert(one, select(attends(at, one, config), gate, f32::new(0.0)));
        }
        let counts = sum_from_the_right(gates, passed, eight);
        #[unroll]
        for one in 0..2usize {
            let mut count = counts.extract(one);
            if comptime![config.along == AlongRow::StepPrices] {
                // The column's own price is not among those of the steps after it.
                count -= gates.extract(one);
            }
            let position = min(count, place.max_position);
            let mut bias = f32::new(0.0);
            let mut rise = f32::new(0.0);
            if comptime![config.along == AlongRow::Contextual] {
                let (value, derivative) = table.interpolate(at.row, position, config);
                bias = value;
                rise = derivative;
            }
            if comptime![config.along == AlongRow::ContextualPieces] {
                let piece = table.piece(position, config);
                let (value, derivative) = table.on_piece(at.row, piece, position, config);
                bias = value;
                rise = derivative;
                pieces.insert(one, f32::cast_from(u32::cast_from(piece)));
            }
            if comptime![config.has_slopes()] {
                rise = inputs.slopes[at.plane % place.heads];
                bias = rise * position;
            }
            logits.insert(one, fma(bias, f32::new(LOG2_E), content.extract(one)));
            rises.insert(one, select(count <= place.max_position, rise, f32::new(0.0)));
            positions.insert(one, position);
        }
    }
    if comptime![config.sticks()] {
        let mut stays = SumPair::empty();
        #[unroll]
        for one in 0..2usize {
            let logit = content.extract(one);
            let smaller = power_of_two(-logit.abs(), native);
            let whole = f32::new(1.0) + smaller;
            let larger_share = reciprocal(whole, native);
            let share = select(logit >= f32::new(0.0), larger_share, smaller * larger_share);
            let stay = max(logit, f32::new(0.0)) + logarithm(whole, native);
            let sees = attends(at, one, config);
            gates.insert(one, select(sees, share, f32::new(0.0)));
            stays.insert(one, select(sees, stay, f32::new(0.0)));
        }
        let left = sum_from_the_right(stays, passed, eight);
        #[unroll]
        for one in 0..2usize {
            positions.insert(one, left.extract(one));
            logits.insert(one, content.extract(one) - left.extract(one));
        }
    }
    if comptime![config.far_pairs().is_some()] {
        let pairs = comptime![config.far_pairs().unwrap()];
        #[unroll]
        for one in 0..2usize {
            let far = are_far(at, one, pairs);
            let product = select(far, second.extract(one), products.extract(one));
            gates.insert(one, select(far, f32::new(1.0), f32::new(0.0)));
            logits.insert(one, product * scale);
        }
    }
    if comptime![config.along == AlongRow::QueryDistance] {
        #[unroll]
        for one in 0..2usize {
            let bias = table.at_distance(at, one, config);
            logits.insert(one, fma(bias, f32::new(LOG2_E), content.extract(one)));
        }
    }
    if comptime![config.term().is_some()] {
        logits = term_logits(inputs, place, at, products, config);
    }
    let mut visible = SumPair::empty();
    #[unroll]
    for one in 0..2usize {
        let logit = select(attends(at, one, config), logits.extract(one), f32::new(LOWEST));
        visible.insert(one, logit);
    }
    ScoredPair { logits: visible, gates, positions, rises, pieces }
}

/// Gradients of the logits of two adjacent columns, not in base 2, and the columns' weights.
#[derive(CubeType, Clone, Copy)]
pub(super) struct PairGradients {
    pub(super) weights: SumPair,
    /// Gradients of logits without what goes through gates.
    pub(super) biases: SumPair,
    /// Gradients of logits by content.
    pub(super) content: SumPair,
    /// Gradients of the second products as if their factor were that of the content; 0 if there are none.
    pub(super) second: SumPair,
}

/// Weights of two adjacent columns.
#[cube]
pub(super) fn weights_of(
    scored: &ScoredPair,
    rows: &RowStatistics,
    #[comptime] eight: usize,
    #[comptime] config: MmaConfig,
) -> SumPair {
    let mut weights = SumPair::empty();
    #[unroll]
    for one in 0..2usize {
        let logit = scored.logits.extract(one) - rows.log[eight];
        weights.insert(one, power_of_two(logit, comptime![config.native]));
    }
    weights
}

/// Differentiates two adjacent columns from the gradients of their weights; all lanes of a plane must call it. `behind` is
/// carried from the columns to the right. With `whole`, it is only the sum of this lane's numbers.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one pair, and its row's")]
pub(super) fn differentiate(
    scored: &ScoredPair,
    of_weights: SumPair,
    behind: &mut Array<f32>,
    rows: &RowStatistics,
    place: &MmaSizes,
    #[comptime] eight: usize,
    #[comptime] whole: bool,
    #[comptime] config: MmaConfig,
) -> PairGradients {
    let weights = weights_of(scored, rows, eight, config);
    let mut biases = SumPair::empty();
    #[unroll]
    for one in 0..2usize {
        let weight = weights.extract(one);
        if comptime![config.sticks()] {
            biases.insert(one, weight * of_weights.extract(one));
        } else {
            biases.insert(one, weight * (of_weights.extract(one) - rows.share[eight]));
        }
    }
    let mut content = SumPair::new(0.0);
    let mut second = SumPair::new(0.0);
    if comptime![config.far_pairs().is_some()] {
        second = biases * scored.gates;
        content = biases - second;
    } else if comptime![!config.carries()] {
        content = biases;
    } else {
        let mut through = biases;
        if comptime![config.contextual()] {
            through = biases * scored.rises;
        }
        if comptime![whole] {
            behind[eight] += through.extract(0usize) + through.extract(1usize);
        } else {
            // Minus the sum over the columns further left.
            let older = sum_from_the_right(through, behind, eight);
            #[unroll]
            for one in 0..2usize {
                let gate = scored.gates.extract(one);
                let bias = biases.extract(one);
                if comptime![config.sticks()] {
                    let left = scored.positions.extract(one) < f32::new(NOTHING_LEFT);
                    let passed_on = select(left, gate * older.extract(one), f32::new(0.0));
                    content.insert(one, fma(-gate, bias, bias) + passed_on);
                } else {
                    let mut of_gate = through.extract(one) - older.extract(one);
                    let mut rise = fma(-gate, gate, gate);
                    if comptime![config.along == AlongRow::StepPrices] {
                        of_gate = -older.extract(one);
                        rise =
                            1.0 - power_of_two(gate * comptime![LOG2_E], comptime![config.native]);
                    }
                    let of_gate = of_gate * (place.gate_scale / place.scale);
                    if comptime![config.second_dim > 0] {
                        content.insert(one, bias);
                        second.insert(one, of_gate * rise);
                    } else {
                        content.insert(one, fma(of_gate, rise, bias));
                    }
                }
            }
        }
    }
    PairGradients { weights, biases, content, second }
}

/// Replaces the products of a block near the diagonal by logits, from its last column to its first one.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block, and where it is")]
pub(super) fn score_block(
    scores: &mut Results,
    seconds: &Results,
    carried: &mut Carried,
    table: &RowTable,
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
    column: usize,
    #[comptime] columns: usize,
    #[comptime] config: MmaConfig,
) {
    #[unroll]
    for i in 0..comptime![columns / ACROSS] {
        let n = comptime![columns / ACROSS - 1 - i];
        #[unroll]
        for eight in 0..2usize {
            let at = pair_place(walk.plane, walk.of_plane, walk.own, column, n, eight);
            let products = scores.index(n)[eight];
            let mut second = products;
            if comptime![config.second_dim > 0] {
                second = seconds.index(n)[eight];
            }
            let passed = &mut carried.passed;
            let scored = score(products, second, passed, table, inputs, place, &at, eight, config);
            scores.index_mut(n)[eight] = scored.logits;
        }
    }
}
