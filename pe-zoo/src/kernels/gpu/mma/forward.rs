//! Forward kernel: a cube owns 64 rows and walks over blocks of columns from the diagonal to the left.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::biases::{LOWEST, difference, mask_rows};
use super::blocks::OwnedRows;
use super::columns::{ColumnBlocks, CubeWalk};
use super::config::{ACROSS, MmaConfig, OWNED, ROWS};
use super::exponential::{LOG2_E, power_of_two};
use super::inputs::{MmaInputs, MmaSizes};
use super::tile::{Results, SumPair, add_mix, row_max, row_sum, write_rows, zeros};

/// Sums of the rows so far, relative to their largest logits.
#[derive(CubeType)]
struct Softmax {
    sums: Results,
    largest: Array<f32>,
    total: Array<f32>,
}

/// Computes `out`, `[B, T, H, E]`, and `log`, `[plane, padded T]`, the binary logarithm of the softmax's
/// denominator.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn forward_kernel(
    inputs: &MmaInputs,
    place: &MmaSizes,
    out: &mut Box<[SumPair]>,
    log: &mut Box<[f32]>,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.block()];
    let lane = UNIT_POS_PLANE as usize;
    let plane = CUBE_POS_Y as usize;
    // The last rows see the most columns and take longest, so they start first.
    let row = ((place.rows - 1) / OWNED - CUBE_POS_X as usize) * OWNED;
    let first = plane * place.rows.div_ceil(OWNED) * OWNED + row;
    let walk = CubeWalk {
        plane,
        own: place.first_row + row,
        of_plane: UNIT_POS as usize / 32 * ROWS,
        begin: plane * place.columns.div_ceil(OWNED) * OWNED,
    };
    let mut queries = OwnedRows::new(OWNED, comptime![config.width()]);
    queries.load(&inputs.q, first, OWNED, comptime![config.width()]);
    let mut blocks = ColumnBlocks::new(columns, config);
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
    let mut left = min(walk.own + comptime![OWNED - 1], place.columns - 1) / columns + 1;
    let unmasked = (walk.own + 1) / columns;
    blocks.begin(inputs, place, &walk, left - 1, columns, config);
    sync_cube();
    queries.begin(walk.of_plane, comptime![config.resident()], comptime![config.width()]);
    while left > unmasked {
        step(inputs, place, &walk, left, &queries, &mut blocks, &mut softmax, true, config);
        left -= 1;
    }
    while left > 0 {
        step(inputs, place, &walk, left, &queries, &mut blocks, &mut softmax, false, config);
        left -= 1;
    }
    let mut shares = Array::<f32>::new(2usize);
    #[unroll]
    for half in 0..2usize {
        let total = row_sum(softmax.total[half]);
        shares[half] = 1.0 / total;
        let row = walk.of_plane + lane / 4 + half * 8;
        let mut logarithm =
            largest_logit(softmax.largest[half], place.scale * comptime![LOG2_E], config)
                + total.ln() * comptime![LOG2_E];
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
    if comptime![!config.biased()] {
        logit = score * scale;
    }
    logit
}

/// One block of columns; `left` counts the blocks that are left with it.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and the state of the walk")]
fn step(
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
    left: usize,
    queries: &OwnedRows,
    blocks: &mut ColumnBlocks,
    softmax: &mut Softmax,
    #[comptime] masked: bool,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.block()];
    let lane = UNIT_POS_PLANE as usize;
    let stage = left % 2;
    let scale = place.scale * comptime![LOG2_E];
    if left > 1 {
        blocks.fetch_keys(inputs, place, walk, left - 2, columns, config);
    }
    let mut scores = zeros(comptime![columns / ACROSS]);
    queries.add_dots(
        walk.of_plane,
        &blocks.keys.tile,
        stage,
        &mut scores,
        comptime![config.resident()],
        columns,
        comptime![config.width()],
    );
    if left > 1 {
        blocks.store_keys((left - 1) % 2, columns, config);
        blocks.fetch_values(inputs, walk, left - 2, columns, config);
    }
    if comptime![config.biased()] {
        #[unroll]
        for n in 0..comptime![columns / ACROSS] {
            #[unroll]
            for half in 0..2usize {
                let bias = blocks.bias(stage, walk.of_plane, n, half, columns, config);
                let pair = scores.index(n)[half];
                scores.index_mut(n)[half] = fma(pair, SumPair::new(scale), bias);
            }
        }
    }
    if comptime![masked] {
        let column = (left - 1) * columns + lane % 4 * 2;
        mask_rows(&mut scores, walk.own + walk.of_plane + lane / 4, column, columns);
    }
    soften(&mut scores, softmax, scale, config);
    let begin = stage * comptime![columns * config.value_width() / 8];
    add_mix(
        &scores,
        &blocks.values.tile,
        begin,
        &mut softmax.sums,
        columns,
        comptime![config.value_width()],
    );
    if left > 1 {
        blocks.store_values((left - 1) % 2, columns, config);
    }
    sync_cube();
}

/// Converts scores to weights relative to the largest logits so far.
#[cube]
fn soften(scores: &mut Results, softmax: &mut Softmax, scale: f32, #[comptime] config: MmaConfig) {
    let columns = comptime![config.block()];
    #[unroll]
    for half in 0..2usize {
        let mut most = softmax.largest[half];
        #[unroll]
        for n in 0..comptime![columns / ACROSS] {
            let pair = scores.index(n)[half];
            most = max(most, max(pair.extract(0usize), pair.extract(1usize)));
        }
        most = row_max(most);
        let logit = largest_logit(most, scale, config);
        let shrink = power_of_two(
            largest_logit(softmax.largest[half], scale, config) - logit,
            comptime![config.native],
        );
        softmax.largest[half] = most;
        let mut sum = f32::new(0.0);
        #[unroll]
        for n in 0..comptime![columns / ACROSS] {
            let pair = scores.index(n)[half];
            let mut weights = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                let mut below = pair.extract(one) - logit;
                if comptime![!config.biased()] {
                    below = fma(pair.extract(one), scale, -logit);
                }
                let weight = power_of_two(below, comptime![config.native]);
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
