//! Forward kernel: a cube owns 64 rows and walks over blocks of columns from the diagonal to the left.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::biases::{ColumnBiases, LOWEST, difference, mask_rows};
use super::blocks::{Blocks, OwnedRows};
use super::config::{ACROSS, MmaConfig, OWNED, ROWS};
use super::inputs::{Inputs, LaunchSizes};
use super::tile::{Results, SumPair, add_mix, row_max, row_sum, write_rows, zeros};

/// Where a cube is in its walk.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Walk {
    pub(super) plane: usize,
    /// Index of the cube's first row among the columns.
    pub(super) own: usize,
    /// First row of this unit's plane in the cube.
    pub(super) of_plane: usize,
    /// First of the columns that the cube walks over, of all columns of all planes.
    pub(super) begin: usize,
}

/// Sums of the rows so far, relative to their largest logits.
#[derive(CubeType)]
struct Softmax {
    sums: Results,
    largest: Array<f32>,
    total: Array<f32>,
}

/// Computes `out`, `[B, T, H, E]`, and `log`, `[plane, padded T]`, the logarithm of the softmax's denominator.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn forward_kernel(
    inputs: &Inputs,
    place: &LaunchSizes,
    out: &mut Box<[SumPair]>,
    log: &mut Box<[f32]>,
    #[comptime] config: MmaConfig,
) {
    let lane = UNIT_POS_PLANE as usize;
    let plane = CUBE_POS_Y as usize;
    // The last rows see the most columns and take longest, so they start first.
    let row = ((place.rows - 1) / OWNED - CUBE_POS_X as usize) * OWNED;
    let first = plane * place.rows.div_ceil(OWNED) * OWNED + row;
    let walk = Walk {
        plane,
        own: place.first_row + row,
        of_plane: UNIT_POS as usize / 32 * ROWS,
        begin: plane * place.columns.div_ceil(OWNED) * OWNED,
    };
    let mut queries = OwnedRows::new(&inputs.q, first, OWNED, comptime![config.width()]);
    let mut keys = Blocks::new(2usize, OWNED, comptime![config.width()]);
    let mut values = Blocks::new(2usize, OWNED, comptime![config.value_width()]);
    let mut biases = ColumnBiases::new(OWNED, config);
    let mut softmax = Softmax {
        sums: zeros(comptime![config.value_width() / ACROSS]),
        largest: Array::new(2usize),
        total: Array::new(2usize),
    };
    #[unroll]
    for half in 0..2usize {
        softmax.largest[half] = f32::new(LOWEST);
        softmax.total[half] = f32::new(0.0);
    }
    let mut left = min(walk.own + comptime![OWNED - 1], place.columns - 1) / OWNED + 1;
    let unmasked = (walk.own + 1) / OWNED;
    fetch(inputs, place, &walk, left - 1, &mut keys, &mut values, &mut biases, OWNED, config);
    store(left % 2, &mut keys, &mut values, &mut biases, config);
    sync_cube();
    queries.begin(walk.of_plane, true, comptime![config.width()]);
    while left > unmasked {
        step(
            inputs,
            place,
            &walk,
            left,
            &queries,
            &mut keys,
            &mut values,
            &mut biases,
            &mut softmax,
            true,
            config,
        );
        left -= 1;
    }
    while left > 0 {
        step(
            inputs,
            place,
            &walk,
            left,
            &queries,
            &mut keys,
            &mut values,
            &mut biases,
            &mut softmax,
            false,
            config,
        );
        left -= 1;
    }
    let mut shares = Array::<f32>::new(2usize);
    #[unroll]
    for half in 0..2usize {
        let total = row_sum(softmax.total[half]);
        shares[half] = 1.0 / total;
        let row = walk.of_plane + lane / 4 + half * 8;
        let mut logarithm = largest_logit(softmax.largest[half], place.scale, config) + total.ln();
        if comptime![config.differences()] {
            logarithm += difference(inputs, place, plane, walk.own + row, walk.own, config);
        }
        if lane % 4 == 0 {
            log[first + row] = logarithm;
        }
    }
    write_rows(
        &softmax.sums,
        out,
        plane,
        place.heads,
        row + walk.of_plane,
        place.rows,
        &shares,
        comptime![config.value_dim],
    );
}

/// Largest logit of a row, from the largest score: without biases, scores are logits only after the multiplication.
#[cube]
fn largest_logit(score: f32, scale: f32, #[comptime] config: MmaConfig) -> f32 {
    let mut logit = score;
    if comptime![!config.differences()] {
        logit = score * scale;
    }
    logit
}

/// Reads a block of columns and their biases into registers.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and what part of them")]
pub(super) fn fetch(
    inputs: &Inputs,
    place: &LaunchSizes,
    walk: &Walk,
    block: usize,
    keys: &mut Blocks,
    values: &mut Blocks,
    biases: &mut ColumnBiases,
    #[comptime] columns: usize,
    #[comptime] config: MmaConfig,
) {
    let column = block * columns;
    let at = walk.begin + column;
    keys.fetch(&inputs.k, at, columns, comptime![config.width()]);
    values.fetch(&inputs.values, at, columns, comptime![config.value_width()]);
    biases.fetch(inputs, place, walk.plane, walk.own, column, columns, config);
}

#[cube]
fn store(
    stage: usize,
    keys: &mut Blocks,
    values: &mut Blocks,
    biases: &mut ColumnBiases,
    #[comptime] config: MmaConfig,
) {
    keys.store(stage, OWNED, comptime![config.width()]);
    values.store(stage, OWNED, comptime![config.value_width()]);
    biases.store(stage, OWNED, config);
}

/// One block of columns; `left` counts the blocks that are left with it.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and the state of the walk")]
fn step(
    inputs: &Inputs,
    place: &LaunchSizes,
    walk: &Walk,
    left: usize,
    queries: &OwnedRows,
    keys: &mut Blocks,
    values: &mut Blocks,
    biases: &mut ColumnBiases,
    softmax: &mut Softmax,
    #[comptime] masked: bool,
    #[comptime] config: MmaConfig,
) {
    let lane = UNIT_POS_PLANE as usize;
    let stage = left % 2;
    if left > 1 {
        fetch(inputs, place, walk, left - 2, keys, values, biases, OWNED, config);
    }
    let mut scores = zeros(comptime![OWNED / ACROSS]);
    queries.add_dots(
        walk.of_plane,
        &keys.tile,
        stage,
        &mut scores,
        true,
        OWNED,
        comptime![config.width()],
    );
    if comptime![config.differences()] {
        #[unroll]
        for n in 0..comptime![OWNED / ACROSS] {
            let bias = biases.of(stage, n, OWNED, config);
            #[unroll]
            for half in 0..2usize {
                let pair = scores.index(n)[half];
                scores.index_mut(n)[half] = fma(pair, SumPair::new(place.scale), bias);
            }
        }
    }
    if comptime![masked] {
        let column = (left - 1) * OWNED + lane % 4 * 2;
        mask_rows(&mut scores, walk.own + walk.of_plane + lane / 4, column, OWNED);
    }
    soften(&mut scores, softmax, place.scale, config);
    let begin = stage * comptime![OWNED * config.value_width() / 8];
    add_mix(
        &scores,
        &values.tile,
        begin,
        &mut softmax.sums,
        OWNED,
        comptime![config.value_width()],
    );
    if left > 1 {
        store((left - 1) % 2, keys, values, biases, config);
    }
    sync_cube();
}

/// Converts scores to weights relative to the largest logits so far.
#[cube]
fn soften(scores: &mut Results, softmax: &mut Softmax, scale: f32, #[comptime] config: MmaConfig) {
    #[unroll]
    for half in 0..2usize {
        let mut most = softmax.largest[half];
        #[unroll]
        for n in 0..comptime![OWNED / ACROSS] {
            let pair = scores.index(n)[half];
            most = max(most, max(pair.extract(0usize), pair.extract(1usize)));
        }
        most = row_max(most);
        let logit = largest_logit(most, scale, config);
        let shrink = f32::exp(largest_logit(softmax.largest[half], scale, config) - logit);
        softmax.largest[half] = most;
        let mut sum = f32::new(0.0);
        #[unroll]
        for n in 0..comptime![OWNED / ACROSS] {
            let pair = scores.index(n)[half];
            let mut weights = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                let mut below = pair.extract(one) - logit;
                if comptime![!config.differences()] {
                    below = fma(pair.extract(one), scale, -logit);
                }
                let weight = f32::exp(below);
                weights.insert(one, weight);
                sum += weight;
            }
            scores.index_mut(n)[half] = weights;
        }
        softmax.total[half] = softmax.total[half] * shrink + sum;
        #[unroll]
        for n in 0..comptime![config.value_width() / ACROSS] {
            let old = softmax.sums.index(n)[half];
            softmax.sums.index_mut(n)[half] = old * SumPair::new(shrink);
        }
    }
}
