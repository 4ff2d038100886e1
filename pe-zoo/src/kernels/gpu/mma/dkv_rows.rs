//! Backward kernel by keys for forms along the row: a cube owns 64 keys and walks over blocks of queries from the diagonal
//! to the end. A plane computes 16 rows of logits, as in the kernel by rows; weights and their gradients go through shared
//! memory to the planes that own the keys.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::along::{Carried, differentiate, score, weights_of};
use super::approximate::{LOG2_E, power_of_two};
use super::blocks::Blocks;
use super::config::{ACROSS, Channels, MmaConfig, OWNED, OfKeys, STEP};
use super::copies::sync_copies;
use super::dkv::ColumnGradients;
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::pair::pair_place;
use super::row_table::{RowTable, far_bias};
use super::rows::RowStatistics;
use super::terms::TermSums;
use super::tile::{
    LeftFactors, Piece, Results, SumPair, add_dot, add_transposed_mix, left_factors, store_result,
    zeros,
};
use super::walk::{CubeWalk, padded_rows, write_rows};

/// Keys and values of the cube, blocks of queries and gradients, and what planes exchange.
#[derive(CubeType)]
struct Tiles {
    keys: Blocks,
    values: Blocks,
    queries: Blocks,
    grads: Blocks,
    table: RowTable,
    /// Weights of a block, and gradients of its logits and of its second products, `[64, 64]`.
    weights: Shared<[Piece]>,
    gradients: Shared<[Piece]>,
    seconds: Shared<[Piece]>,
}

/// This unit's two rows of a block.
#[derive(CubeType)]
struct BlockRows {
    rows: RowStatistics,
    carried: Carried,
}

/// Sums over the keys of this unit's plane.
#[derive(CubeType)]
struct OwnKeySums {
    k: Results,
    values: Results,
    terms: TermSums,
}

/// Computes the gradients of keys and values.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn dkv_rows_kernel(
    inputs: &MmaInputs,
    place: &MmaSizes,
    upstream: &Upstream,
    edges: &Box<[SumPair]>,
    out: &mut ColumnGradients,
    #[comptime] of: OfKeys,
    #[comptime] config: MmaConfig,
) {
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let transfer = comptime![config.transfer_of_planes()];
    let walk = CubeWalk::over_rows(place, config);
    let mut tiles = Tiles {
        keys: Blocks::new(1usize, OWNED, width, transfer),
        values: Blocks::new(1usize, OWNED, value_width, transfer),
        queries: Blocks::new(2usize, OWNED, width, transfer),
        grads: Blocks::new(2usize, OWNED, value_width, transfer),
        table: RowTable::new(config),
        weights: Shared::new_slice(comptime![OWNED * OWNED / 8]),
        gradients: Shared::new_slice(comptime![OWNED * OWNED / 8]),
        seconds: Shared::new_slice(comptime![if config.second_dim > 0 {
            OWNED * OWNED / 8
        } else {
            1
        }]),
    };
    tiles.keys.fetch(&inputs.k, walk.packed, 0usize);
    tiles.keys.store(0usize);
    tiles.values.fetch(&inputs.values, walk.packed, 0usize);
    tiles.values.store(0usize);
    let mut sums = OwnKeySums {
        k: zeros(comptime![if of.keys() { width / ACROSS } else { 0 }], 1usize),
        values: zeros(comptime![if of.values() { value_width / ACROSS } else { 0 }], 1usize),
        terms: TermSums::new(false, config),
    };
    let mut block = walk.first_rows(place, OWNED);
    let end = place.rows.div_ceil(OWNED);
    let first = walk.begin + block * OWNED;
    tiles.queries.fetch(&inputs.q, first, block % 2);
    tiles.queries.store(block % 2);
    tiles.grads.fetch(&upstream.grad, first, block % 2);
    tiles.grads.store(block % 2);
    tiles.table.load(inputs, place, walk.plane, block * OWNED, config);
    sync_copies(comptime![config.transfer_of_planes()]);
    while block < end {
        step(inputs, place, upstream, edges, &walk, block, end, &mut tiles, &mut sums, of, config);
        block += 1;
    }
    let mut scales = Array::<f32>::new(2usize);
    let mut ones = Array::<f32>::new(2usize);
    #[unroll]
    for eight in 0..2usize {
        scales[eight] = place.scale;
        ones[eight] = f32::new(1.0);
    }
    if comptime![of.keys() && config.term_numbers(false) > 0] {
        sums.terms.write_columns(&mut out.terms, place, walk.plane, walk.first, config);
    }
    let (heads, len) = (place.heads, place.columns);
    if comptime![of.keys()] {
        let width = comptime![config.head_dim];
        write_rows(&sums.k, &mut out.k, heads, len, &walk, &scales, 2usize, width);
    }
    if comptime![of.values()] {
        write_rows(
            &sums.values,
            &mut out.values,
            heads,
            len,
            &walk,
            &ones,
            2usize,
            comptime![config.value_dim],
        );
    }
}

/// Whether the keys of the cube are far for a block of rows.
#[cube]
fn is_far(
    place: &MmaSizes,
    upstream: &Upstream,
    walk: &CubeWalk,
    block: usize,
    #[comptime] config: MmaConfig,
) -> bool {
    let end = walk.own + OWNED;
    if comptime![config.all_near()] {
        false.runtime()
    } else if comptime![config.carries()] {
        let far = upstream.far_blocks[walk.begin / OWNED + block] as usize;
        end <= far * comptime![config.block()]
    } else {
        // The first row sees the last key at the last distance.
        place.first_row + block * OWNED + 2 >= end + config.entries
    }
}

/// One block of queries, of which `end` is the first that does not exist.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and the state of the walk")]
fn step(
    inputs: &MmaInputs,
    place: &MmaSizes,
    upstream: &Upstream,
    edges: &Box<[SumPair]>,
    walk: &CubeWalk,
    block: usize,
    end: usize,
    tiles: &mut Tiles,
    sums: &mut OwnKeySums,
    #[comptime] of: OfKeys,
    #[comptime] config: MmaConfig,
) {
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let columns = comptime![config.part()];
    let stage = block % 2;
    let far = is_far(place, upstream, walk, block, config);
    // Far blocks of sticks have no weight.
    let mut weightless = false;
    if comptime![config.sticks()] {
        weightless = far;
    }
    let next = walk.begin + (block + 1) * OWNED;
    if !weightless {
        let mut own = BlockRows { rows: RowStatistics::new(config), carried: Carried::new() };
        own.read(inputs, place, upstream, edges, walk, block, far, config);
        #[unroll]
        for i in 0..comptime![OWNED / columns] {
            let part = comptime![OWNED / columns - 1 - i];
            weigh_part(inputs, place, walk, block, far, tiles, sums, &mut own, part, of, config);
        }
    }
    sync_copies(comptime![config.transfer_of_planes()]);
    // Of the next block, queries are read during one product and gradients during the other, so that only one of them takes
    // registers, if they do, and none while logits do.
    if block + 1 < end {
        tiles.queries.fetch(&inputs.q, next, (block + 1) % 2);
    }
    if comptime![of.values()] {
        if !weightless {
            let begin = stage * comptime![OWNED * value_width / 8];
            let (weights, grads) = (&tiles.weights, &tiles.grads.tile);
            let (to, channels) = (&mut sums.values, comptime![Channels::all(value_width)]);
            add_transposed_mix(weights, walk.of_plane, grads, begin, to, channels);
        }
    }
    if block + 1 < end {
        tiles.queries.store((block + 1) % 2);
        tiles.grads.fetch(&upstream.grad, next, (block + 1) % 2);
    }
    if comptime![of.keys()] {
        if !weightless {
            let begin = stage * comptime![OWNED * width / 8];
            let (gradients, queries) = (&tiles.gradients, &tiles.queries.tile);
            let (to, channels) = (&mut sums.k, comptime![config.content()]);
            add_transposed_mix(gradients, walk.of_plane, queries, begin, to, channels);
            if comptime![config.second_dim > 0] {
                let channels = comptime![config.second()];
                add_transposed_mix(&tiles.seconds, walk.of_plane, queries, begin, to, channels);
            }
        }
    }
    if block + 1 < end {
        tiles.grads.store((block + 1) % 2);
        tiles.table.load(inputs, place, walk.plane, (block + 1) * OWNED, config);
    }
    sync_copies(comptime![config.transfer_of_planes()]);
}

#[cube]
impl BlockRows {
    /// Reads the numbers of the rows of a block at the right edge of the cube's keys.
    #[expect(clippy::too_many_arguments, reason = "the operands, and where they are")]
    fn read(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        upstream: &Upstream,
        edges: &Box<[SumPair]>,
        walk: &CubeWalk,
        block: usize,
        far: bool,
        #[comptime] config: MmaConfig,
    ) {
        let row = block * OWNED;
        self.rows.read(inputs, place, upstream, walk, walk.begin + row, config);
        #[unroll]
        for eight in 0..2usize {
            let row = row + walk.of_plane + UNIT_POS_PLANE as usize / 4 + eight * 8;
            if far {
                self.rows.log[eight] -= far_bias(inputs, place, walk.plane, row, config);
            } else if comptime![config.carries()] {
                let pair = edges[walk.packed / OWNED * padded_rows(place) + row];
                self.carried.passed[eight] = pair.extract(0usize);
                self.carried.behind[eight] = pair.extract(1usize);
            }
        }
    }
}

/// Computes the weights and the gradients of the logits of this plane's 16 rows of a block, for a part of the keys.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block, and where it is")]
fn weigh_part(
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
    block: usize,
    far: bool,
    tiles: &mut Tiles,
    sums: &mut OwnKeySums,
    own: &mut BlockRows,
    #[comptime] part: usize,
    #[comptime] of: OfKeys,
    #[comptime] config: MmaConfig,
) {
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let columns = comptime![config.part()];
    let first_row = block % 2 * OWNED + walk.of_plane;
    let mut products = zeros(comptime![columns / ACROSS], 1usize);
    let mut of_weights = zeros(comptime![columns / ACROSS], 1usize);
    let mut seconds = zeros(comptime![config.second_results(columns)], 1usize);
    let content = comptime![config.content()];
    #[unroll]
    for step in 0..comptime![content.to / STEP] {
        let mut left = LeftFactors::new();
        left_factors(&tiles.queries.tile, first_row, &mut left, step, 1usize, width);
        let (keys, begin) = (&tiles.keys.tile, comptime![part * columns * width / 8].runtime());
        add_dot(&left, keys, begin, &mut products, 0usize, step, columns, 1usize, width);
    }
    if comptime![config.second_dim > 0] {
        let second = comptime![config.second()];
        #[unroll]
        for one in 0..comptime![second.steps()] {
            let step = comptime![second.from / STEP + one];
            let mut left = LeftFactors::new();
            left_factors(&tiles.queries.tile, first_row, &mut left, step, 1usize, width);
            let (keys, begin) = (&tiles.keys.tile, comptime![part * columns * width / 8].runtime());
            add_dot(&left, keys, begin, &mut seconds, 0usize, step, columns, 1usize, width);
        }
    }
    if comptime![of.keys()] {
        #[unroll]
        for step in 0..comptime![value_width / STEP] {
            let mut left = LeftFactors::new();
            left_factors(&tiles.grads.tile, first_row, &mut left, step, 1usize, value_width);
            let values = &tiles.values.tile;
            let begin = comptime![part * columns * value_width / 8].runtime();
            let to = &mut of_weights;
            add_dot(&left, values, begin, to, 0usize, step, columns, 1usize, value_width);
        }
    }
    if far {
        weigh_far(place, &own.rows, &mut products, &mut of_weights, &mut seconds, config);
    } else {
        weigh_near(
            inputs,
            place,
            walk,
            block,
            own,
            &tiles.table,
            &mut sums.terms,
            &mut products,
            &mut of_weights,
            &mut seconds,
            part,
            of,
            config,
        );
    }
    #[unroll]
    for n in 0..comptime![columns / ACROSS] {
        let piece = comptime![part * columns / 8 + n];
        if comptime![of.values()] {
            store_result(products.index(n), &mut tiles.weights, walk.of_plane, piece);
        }
        if comptime![of.keys()] {
            store_result(of_weights.index(n), &mut tiles.gradients, walk.of_plane, piece);
            if comptime![config.second_dim > 0] {
                store_result(seconds.index(n), &mut tiles.seconds, walk.of_plane, piece);
            }
        }
    }
}

/// Replaces products and gradients of weights by weights and gradients of logits, and second products by their gradients, where
/// one bias holds for a row.
#[cube]
fn weigh_far(
    place: &MmaSizes,
    rows: &RowStatistics,
    products: &mut Results,
    of_weights: &mut Results,
    seconds: &mut Results,
    #[comptime] config: MmaConfig,
) {
    let scale = place.scale * comptime![LOG2_E];
    #[unroll]
    for n in 0..comptime![config.part() / ACROSS] {
        #[unroll]
        for eight in 0..2usize {
            let (product, of_weight) = (products.index(n)[eight], of_weights.index(n)[eight]);
            let mut weights = SumPair::empty();
            let mut gradients = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                let logit = fma(product.extract(one), scale, -rows.log[eight]);
                let weight = power_of_two(logit, comptime![config.native]);
                weights.insert(one, weight);
                gradients.insert(one, weight * (of_weight.extract(one) - rows.share[eight]));
            }
            products.index_mut(n)[eight] = weights;
            of_weights.index_mut(n)[eight] = gradients;
            if comptime![config.second_dim > 0] {
                seconds.index_mut(n)[eight] = SumPair::new(0.0);
            }
        }
    }
}

/// As [`weigh_far`], near the diagonal, from the last column to the first one.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block, and where it is")]
fn weigh_near(
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
    block: usize,
    own: &mut BlockRows,
    table: &RowTable,
    terms: &mut TermSums,
    products: &mut Results,
    of_weights: &mut Results,
    seconds: &mut Results,
    #[comptime] part: usize,
    #[comptime] of: OfKeys,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.part()];
    let row = place.first_row + block * OWNED;
    let column = walk.own + comptime![part * columns];
    #[unroll]
    for i in 0..comptime![columns / ACROSS] {
        let n = comptime![columns / ACROSS - 1 - i];
        #[unroll]
        for eight in 0..2usize {
            let (product, of_weight) = (products.index(n)[eight], of_weights.index(n)[eight]);
            let at = pair_place(walk.plane, walk.of_plane, row, column, n, eight);
            let mut second = product;
            if comptime![config.second_dim > 0] {
                second = seconds.index(n)[eight];
            }
            if comptime![!of.keys()] {
                let passed = &mut own.carried.passed;
                let scored =
                    score(product, second, passed, table, inputs, place, &at, eight, config);
                products.index_mut(n)[eight] = weights_of(&scored, &own.rows, eight, config);
            } else if comptime![config.term().is_some()] {
                let of_cube = comptime![part * columns / ACROSS + n];
                let (weights, of_products) = terms.differentiate(
                    inputs, place, &own.rows, &at, product, of_weight, of_cube, eight, false,
                    config,
                );
                products.index_mut(n)[eight] = weights;
                of_weights.index_mut(n)[eight] = of_products;
            } else {
                let passed = &mut own.carried.passed;
                let scored =
                    score(product, second, passed, table, inputs, place, &at, eight, config);
                let (behind, rows) = (&mut own.carried.behind, &own.rows);
                let pair =
                    differentiate(&scored, of_weight, behind, rows, place, eight, false, config);
                products.index_mut(n)[eight] = pair.weights;
                of_weights.index_mut(n)[eight] = pair.content;
                if comptime![config.second_dim > 0] {
                    seconds.index_mut(n)[eight] = pair.second;
                }
            }
        }
    }
}
