//! Biases of a block's logits, and its causal mask.
//!
//! The bias of slopes and running sums is the number of the row minus that of the column. Both are taken relative to one
//! row or column of the block, so that they keep their digits; the softmax does not need the row's number at all.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::LOG2_E;
use super::config::{ACROSS, MmaConfig, UNITS};
use super::inputs::{MmaInputs, MmaSizes};
use super::tile::{Results, SumPair};

/// Number less than every logit, a power of two: products with it are exact, so that its difference from itself is zero.
pub(super) const LOWEST: f32 = -((1_u128 << 100) as f32);

/// Bias in base 2 between two tokens by slopes and running sums; negated if `newer` is the older one.
#[cube]
pub(super) fn difference(
    inputs: &MmaInputs,
    place: &MmaSizes,
    plane: usize,
    newer: usize,
    older: usize,
    #[comptime] config: MmaConfig,
) -> f32 {
    let mut bias = f32::new(0.0);
    if comptime![config.slopes] {
        bias -= inputs.slopes[plane % place.heads] * (newer as f32 - older as f32);
    }
    // Tokens past the end repeat the last one; their results are discarded.
    let sums = plane * place.columns;
    let (newer, older) =
        (sums + min(newer, place.columns - 1), sums + min(older, place.columns - 1));
    if comptime![config.decay] {
        bias += inputs.decay[newer] - inputs.decay[older];
    }
    if comptime![config.decay_residual] {
        bias += inputs.decay_residual[newer] - inputs.decay_residual[older];
    }
    bias * comptime![LOG2_E]
}

/// Biases of the columns of two blocks, that of a walk's current step and the next one.
#[derive(CubeType)]
pub(super) struct ColumnBiases {
    tile: Shared<[SumPair]>,
    next: Array<SumPair>,
}

#[cube]
impl ColumnBiases {
    pub(super) fn new(#[comptime] columns: usize, #[comptime] config: MmaConfig) -> ColumnBiases {
        let pairs = comptime![if config.differences() { columns } else { 1 }];
        ColumnBiases { tile: Shared::new_slice(pairs), next: Array::new(1usize) }
    }

    /// Reads the biases of the columns from `column` on, relative to the token `own`.
    #[expect(clippy::too_many_arguments, reason = "the operands, and what part of them")]
    pub(super) fn fetch(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        plane: usize,
        own: usize,
        column: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.differences()] {
            let unit = UNIT_POS as usize;
            if unit < comptime![columns / 2] {
                let older = column + unit * 2;
                let mut pair = SumPair::empty();
                pair.insert(0usize, difference(inputs, place, plane, own, older, config));
                pair.insert(1usize, difference(inputs, place, plane, own, older + 1, config));
                self.next[0] = pair;
            }
        }
    }

    /// Writes the biases that [`fetch`](Self::fetch) has read to shared memory, for the given stage.
    pub(super) fn store(
        &mut self,
        stage: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.differences()] {
            let unit = UNIT_POS as usize;
            if unit < comptime![columns / 2] {
                self.tile[stage * comptime![columns / 2] + unit] = self.next[0];
            }
        }
    }

    /// Biases of this lane's columns `8 n + 2 (lane % 4)` and the next.
    pub(super) fn of(
        &self,
        stage: usize,
        #[comptime] n: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) -> SumPair {
        let mut pair = SumPair::new(0.0);
        if comptime![config.differences()] {
            let quarter = UNIT_POS_PLANE as usize % 4;
            pair = self.tile[stage * comptime![columns / 2] + comptime![n * 4] + quarter];
        }
        pair
    }
}

/// Numbers by distance within two blocks, that of a walk's current step and the next one: biases in base 2, or what the input
/// of a piecewise linear function has of the distance.
#[derive(CubeType)]
pub(super) struct DistanceNumbers {
    tile: Shared<[f32]>,
    next: Array<f32>,
}

#[cube]
impl DistanceNumbers {
    pub(super) fn new(#[comptime] config: MmaConfig) -> DistanceNumbers {
        let numbers =
            comptime![if config.tiles_by_distance() { 2 * config.distances() } else { 1 }];
        let each = comptime![config.distances() / UNITS];
        DistanceNumbers { tile: Shared::new_slice(numbers), next: Array::new(each) }
    }

    /// Reads the numbers of all distances between the rows from the token `own` on and `columns` columns from
    /// `column` on, ascending.
    #[expect(clippy::too_many_arguments, reason = "the operands, and what part of them")]
    pub(super) fn fetch(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        plane: usize,
        own: usize,
        column: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.tiles_by_distance()] {
            let last = column + comptime![columns - 1];
            #[unroll]
            for copy in 0..comptime![config.distances() / UNITS] {
                let away = max(own + UNIT_POS as usize + copy * UNITS, last) - last;
                let entry = min(away, place.distance_entries - 1);
                if comptime![config.pieces > 0] {
                    self.next[copy] = inputs.distance[entry];
                } else {
                    let first = plane % place.heads * place.distance_entries;
                    self.next[copy] = inputs.distance[first + entry] * comptime![LOG2_E];
                }
            }
        }
    }

    /// Writes the numbers that [`fetch`](Self::fetch) has read to shared memory, for the given stage.
    pub(super) fn store(&mut self, stage: usize, #[comptime] config: MmaConfig) {
        if comptime![config.tiles_by_distance()] {
            let begin = stage * comptime![config.distances()] + UNIT_POS as usize;
            #[unroll]
            for copy in 0..comptime![config.distances() / UNITS] {
                self.tile[begin + copy * UNITS] = self.next[copy];
            }
        }
    }

    /// Number of the distance with this index.
    pub(super) fn of(&self, stage: usize, index: usize, #[comptime] config: MmaConfig) -> f32 {
        let mut number = f32::new(0.0);
        if comptime![config.tiles_by_distance()] {
            number = self.tile[stage * comptime![config.distances()] + index];
        }
        number
    }
}

/// Replaces the logits of columns that rows do not see. `first` is the index among the columns of the first of this lane's
/// rows of results, `across` that of its first column of results; with `keys`, the rows of results are keys and their
/// columns queries.
#[cube]
pub(super) fn mask(
    logits: &mut Results,
    first: usize,
    across: usize,
    #[comptime] keys: bool,
    #[comptime] width: usize,
    #[comptime] unit_rows: usize,
) {
    let behind = i32::cast_from(first) - i32::cast_from(across);
    #[unroll]
    for n in 0..comptime![width / ACROSS] {
        #[unroll]
        for eight in 0..unit_rows {
            let pair = logits.index(n)[eight];
            let mut visible = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                // The index of the column minus that of the row, without what is the same for all.
                let apart = comptime![(n * 8 + one) as i32 - (eight * 8) as i32];
                let unseen = if comptime![keys] { behind > apart } else { behind < apart };
                visible.insert(one, select(unseen, f32::new(LOWEST), pair.extract(one)));
            }
            logits.index_mut(n)[eight] = visible;
        }
    }
}
