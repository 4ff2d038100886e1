//! Backward kernel by keys: a cube owns 64 or 128 keys and walks over blocks of queries from the diagonal to the end. Logits are
//! transposed, so that weights and their gradients are left factors without shared memory. It computes the gradients of
//! keys and values, and those of biases that belong to columns.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::{LOG2_E, power_of_two};
use super::biases::{difference, mask};
use super::blocks::{OwnedRows, add_mix};
use super::channels::{drop_near_rows, replace_near_rows};
use super::config::{ACROSS, Channels, MmaConfig};
use super::copies::sync_copies;
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::queries::QueryBlocks;
use super::tile::{Results, SumPair, row_sum, zeros};
use super::walk::{CubeWalk, exists, write_rows};

/// Gradients that belong to columns.
#[derive(CubeType, CubeLaunch)]
pub(super) struct ColumnGradients {
    /// Gradients of the keys, `[B, S, H, D]`.
    pub(super) k: Box<[SumPair]>,
    /// Gradients of the values, `[B, S, H, E]`.
    pub(super) values: Box<[SumPair]>,
    /// Gradients of the columns' running sums, `[plane, S]`.
    pub(super) decay: Box<[f32]>,
    /// Gradients of the columns' state of a pair term, `[plane, S, K]`.
    pub(super) terms: Box<[f32]>,
}

/// Sums over this unit's keys.
#[derive(CubeType)]
struct KeySums {
    k: Results,
    values: Results,
    biases: Array<f32>,
    decay: Array<f32>,
}

/// Computes the gradients that belong to columns.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn dkv_kernel(
    inputs: &MmaInputs,
    place: &MmaSizes,
    upstream: &Upstream,
    out: &mut ColumnGradients,
    #[comptime] config: MmaConfig,
) {
    let rows = comptime![config.query_block()];
    let resident = comptime![config.keys_resident()];
    let groups = comptime![config.row_groups];
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let unit_rows = comptime![config.unit_rows()];
    let (owned, transfer) = comptime![(config.owned(), config.transfer())];
    let lane = UNIT_POS_PLANE as usize;
    let walk = CubeWalk::over_rows(place, config);
    let (plane, column) = (walk.plane, walk.own);
    let mut keys = OwnedRows::new(owned, width, transfer);
    keys.load(&inputs.k, walk.packed);
    let mut values = OwnedRows::new(owned, value_width, transfer);
    values.load(&inputs.values, walk.packed);
    let mut blocks = QueryBlocks::new(config);
    let mut sums = KeySums {
        k: zeros(comptime![width / ACROSS], groups),
        values: zeros(comptime![value_width / ACROSS], groups),
        biases: Array::new(unit_rows),
        decay: Array::new(unit_rows),
    };
    #[unroll]
    for eight in 0..unit_rows {
        let key = column + walk.of_plane + lane / 4 + eight * 8;
        sums.biases[eight] = difference(inputs, place, plane, column, key, config);
        sums.decay[eight] = f32::new(0.0);
    }
    // The first row that sees the first key, and the first one that sees all keys.
    let mut block = walk.first_rows(place, rows);
    let all_keys = max(column + comptime![config.owned() - 1], place.first_row) - place.first_row;
    let end = (place.rows - 1) / rows + 1;
    let unmasked = min(all_keys.div_ceil(rows), end);
    blocks.pieces.load(inputs, place, plane, config);
    blocks.fetch_queries(inputs, place, upstream, &walk, block, config);
    blocks.store_queries(block % 2, config);
    blocks.fetch_grads(upstream, &walk, block, config);
    blocks.store_grads(block % 2);
    sync_copies(comptime![config.transfer()]);
    keys.begin(walk.of_plane, resident, groups, width);
    values.begin(walk.of_plane, false, groups, value_width);
    while block < unmasked {
        step(
            inputs,
            place,
            upstream,
            &walk,
            block,
            end,
            &keys,
            &values,
            &mut blocks,
            &mut sums,
            true,
            config,
        );
        block += 1;
    }
    while block < end {
        step(
            inputs,
            place,
            upstream,
            &walk,
            block,
            end,
            &keys,
            &values,
            &mut blocks,
            &mut sums,
            false,
            config,
        );
        block += 1;
    }
    let mut scales = Array::<f32>::new(unit_rows);
    let mut ones = Array::<f32>::new(unit_rows);
    #[unroll]
    for eight in 0..unit_rows {
        scales[eight] = place.scale;
        ones[eight] = f32::new(1.0);
        if comptime![config.decay] {
            let key = column + walk.of_plane + lane / 4;
            let sum = row_sum(sums.decay[eight]);
            if lane % 4 == 0 && exists(key, place.columns, eight) {
                out.decay[plane * place.columns + key + eight * 8] = -sum;
            }
        }
    }
    let (heads, len) = (place.heads, place.columns);
    write_rows(
        &sums.k,
        &mut out.k,
        heads,
        len,
        &walk,
        &scales,
        unit_rows,
        comptime![config.head_dim],
    );
    write_rows(
        &sums.values,
        &mut out.values,
        heads,
        len,
        &walk,
        &ones,
        unit_rows,
        comptime![config.value_dim],
    );
}

/// One block of queries, of which `end` is the first that does not exist.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and the state of the walk")]
fn step(
    inputs: &MmaInputs,
    place: &MmaSizes,
    upstream: &Upstream,
    walk: &CubeWalk,
    block: usize,
    end: usize,
    keys: &OwnedRows,
    values: &OwnedRows,
    blocks: &mut QueryBlocks,
    sums: &mut KeySums,
    #[comptime] masked: bool,
    #[comptime] config: MmaConfig,
) {
    let rows = comptime![config.query_block()];
    let resident = comptime![config.keys_resident()];
    let groups = comptime![config.row_groups];
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let lane = UNIT_POS_PLANE as usize;
    let stage = block % 2;
    let scale = place.scale * comptime![LOG2_E];
    if block + 1 < end {
        blocks.fetch_queries(inputs, place, upstream, walk, block + 1, config);
    }
    let mut weights = zeros(comptime![rows / ACROSS], groups);
    let mut gradients = zeros(comptime![rows / ACROSS], groups);
    blocks.channels.add_dots(
        keys,
        walk.of_plane,
        &blocks.queries.tile,
        stage,
        &mut weights,
        resident,
        rows,
        groups,
        comptime![Channels::all(width)],
    );
    values.add_dots(
        walk.of_plane,
        &blocks.grads.tile,
        stage,
        &mut gradients,
        false,
        rows,
        groups,
        comptime![Channels::all(value_width)],
    );
    if block + 1 < end {
        blocks.store_queries((block + 1) % 2, config);
        blocks.fetch_grads(upstream, walk, block + 1, config);
    }
    if comptime![masked && config.decays_channels()] {
        replace_near_rows(&mut weights, inputs, place, walk, block * rows, rows);
    }
    if comptime![masked] {
        let own = place.first_row + block * rows + lane % 4 * 2;
        mask(
            &mut weights,
            walk.own + walk.of_plane + lane / 4,
            own,
            true,
            rows,
            comptime![config.unit_rows()],
        );
    }
    #[unroll]
    for n in 0..comptime![rows / ACROSS] {
        let statistics = blocks.statistics[stage * comptime![rows / 2] + n * 4 + lane % 4];
        #[unroll]
        for eight in 0..comptime![config.unit_rows()] {
            let (logit, of_weight) = (weights.index(n)[eight], gradients.index(n)[eight]);
            let mut two_weights = SumPair::empty();
            let mut two_gradients = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                let mut without = -statistics.extract(one * 2);
                if comptime![config.differences()] {
                    without = sums.biases[eight] - statistics.extract(one * 2);
                }
                if comptime![config.by_distance()] {
                    let key = walk.of_plane + lane / 4 + comptime![eight * 8];
                    let index = lane % 4 * 2 + comptime![n * 8 + one + config.owned() - 1] - key;
                    without += blocks.bias(stage, index, lane % 4 + comptime![n * 4], one, config);
                }
                let weight =
                    power_of_two(fma(logit.extract(one), scale, without), comptime![config.native]);
                let gradient = weight * (of_weight.extract(one) - statistics.extract(one * 2 + 1));
                two_weights.insert(one, weight);
                two_gradients.insert(one, gradient);
                if comptime![config.decay] {
                    sums.decay[eight] += gradient;
                }
            }
            weights.index_mut(n)[eight] = two_weights;
            gradients.index_mut(n)[eight] = two_gradients;
        }
    }
    let begin = stage * comptime![rows * value_width / 8];
    let transfer = comptime![config.transfer()];
    let (grads, queries) = (&blocks.grads.tile, &blocks.queries.tile);
    let channels = comptime![Channels::all(value_width)];
    add_mix(&weights, grads, begin, &mut sums.values, rows, groups, channels, transfer);
    if comptime![masked && config.decays_channels()] {
        drop_near_rows(&mut gradients, place, walk, block * rows, rows);
    }
    let channels = comptime![Channels::all(width)];
    blocks.channels.add_mix(&gradients, queries, stage, &mut sums.k, groups, channels, transfer);
    if block + 1 < end {
        blocks.store_grads((block + 1) % 2);
    }
    sync_copies(comptime![config.transfer()]);
}
