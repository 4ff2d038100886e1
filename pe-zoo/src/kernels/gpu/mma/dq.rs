//! Backward kernel by rows: a cube owns 64 or 128 rows and walks over blocks of columns as the forward kernel does. It computes
//! the gradients of queries, and those of biases that belong to rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::along::{Carried, differentiate, score};
use super::approximate::LOG2_E;
use super::biases::mask;
use super::blocks::{OwnedRows, add_mix};
use super::channels::{replace_near, take_near};
use super::columns::ColumnBlocks;
use super::config::{ACROSS, Channels, MmaConfig, OWNED};
use super::copies::sync_copies;
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::pair::pair_place;
use super::row_sums::{OwnRowSums, RowGradients};
use super::row_table::RowTable;
use super::rows::RowStatistics;
use super::tile::{Results, SumPair, row_sum, zeros};
use super::walk::{CubeWalk, padded_columns, padded_rows};

/// Rows of a cube.
#[derive(CubeType)]
struct OwnRows {
    queries: OwnedRows,
    grads: OwnedRows,
    rows: RowStatistics,
    table: RowTable,
    carried: Carried,
}

/// Kind of a step, which is fixed when the kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WalkStep {
    /// Only adds up what a form along the row needs of whole rows.
    Whole,
    /// Near the diagonal.
    Near,
    /// Further left.
    Far,
}

/// Computes the gradients that belong to rows.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn dq_kernel(
    inputs: &MmaInputs,
    place: &MmaSizes,
    upstream: &Upstream,
    out: &mut RowGradients,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.gradient_block()];
    let resident = comptime![config.rows_resident()];
    let groups = comptime![config.row_groups];
    let (owned, transfer) = comptime![(config.owned(), config.transfer())];
    let walk = CubeWalk::over_columns(place, config);
    let mut own = OwnRows {
        queries: OwnedRows::new(owned, comptime![config.width()], transfer),
        grads: OwnedRows::new(owned, comptime![config.value_width()], transfer),
        rows: RowStatistics::new(config),
        table: RowTable::new(config),
        carried: Carried::new(),
    };
    own.queries.load(&inputs.q, walk.packed);
    own.grads.load(&upstream.grad, walk.packed);
    own.table.load(inputs, place, walk.plane, walk.first, config);
    own.rows.read(inputs, place, upstream, &walk, walk.packed, config);
    let mut blocks = ColumnBlocks::new(columns, config);
    let mut sums = OwnRowSums::new(config);
    let mut left = walk.seen_blocks(place, columns, config);
    let mut far = walk.most_far(columns, config);
    blocks.begin(inputs, place, &walk, left - 1, columns, config);
    sync_copies(comptime![config.transfer()]);
    own.queries.begin(walk.of_plane, resident, groups, comptime![config.width()]);
    own.grads.begin(walk.of_plane, resident, groups, comptime![config.value_width()]);
    if comptime![config.carries()] {
        far = upstream.far_blocks[walk.packed / OWNED] as usize;
        let mut ahead = left;
        while ahead > far {
            step(
                inputs,
                place,
                &walk,
                ahead,
                &mut own,
                &mut blocks,
                &mut sums,
                out,
                WalkStep::Whole,
                config,
            );
            ahead -= 1;
        }
        #[unroll]
        for eight in 0..2usize {
            own.carried.behind[eight] = -row_sum(own.carried.behind[eight]);
            own.carried.passed[eight] = f32::new(0.0);
        }
        blocks.begin(inputs, place, &walk, left - 1, columns, config);
        sync_copies(comptime![config.transfer()]);
    }
    while left > far {
        step(
            inputs,
            place,
            &walk,
            left,
            &mut own,
            &mut blocks,
            &mut sums,
            out,
            WalkStep::Near,
            config,
        );
        left -= 1;
    }
    if comptime![config.has_far()] {
        if comptime![config.tables()] {
            own.carried.read_far(inputs, place, &walk, config);
            #[unroll]
            for eight in 0..2usize {
                own.rows.log[eight] -= own.carried.far[eight];
            }
        }
        while left > 0 {
            step(
                inputs,
                place,
                &walk,
                left,
                &mut own,
                &mut blocks,
                &mut sums,
                out,
                WalkStep::Far,
                config,
            );
            left -= 1;
        }
    }
    sums.write(place, &walk, &own.table, out, config);
}

/// One block of columns; `left` counts the blocks that are left with it.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and the state of the walk")]
fn step(
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
    left: usize,
    own: &mut OwnRows,
    blocks: &mut ColumnBlocks,
    sums: &mut OwnRowSums,
    out: &mut RowGradients,
    #[comptime] kind: WalkStep,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.gradient_block()];
    let resident = comptime![config.rows_resident()];
    let groups = comptime![config.row_groups];
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let stage = left % 2;
    if left > 1 {
        blocks.fetch_keys(inputs, place, walk, left - 2, columns, config);
    }
    let mut logits = zeros(comptime![columns / ACROSS], groups);
    let mut of_weights = zeros(comptime![columns / ACROSS], groups);
    let (keys, values) = (&blocks.keys.tile, &blocks.values.tile);
    let content = comptime![config.content()];
    blocks.channels.add_dots(
        &own.queries,
        walk.of_plane,
        keys,
        stage,
        &mut logits,
        resident,
        columns,
        groups,
        content,
    );
    let has_seconds = comptime![config.second_dim > 0 && kind != WalkStep::Far];
    let mut seconds =
        zeros(comptime![if has_seconds { config.second_results(columns) } else { 0 }], groups);
    if comptime![has_seconds] {
        own.queries.add_dots(
            walk.of_plane,
            keys,
            stage,
            &mut seconds,
            resident,
            columns,
            groups,
            comptime![config.second()],
        );
    }
    own.grads.add_dots(
        walk.of_plane,
        values,
        stage,
        &mut of_weights,
        resident,
        columns,
        groups,
        comptime![Channels::all(value_width)],
    );
    if left > 1 {
        blocks.store_keys((left - 1) % 2, columns, config);
    }
    let by_pairs = comptime![config.by_rows() && kind != WalkStep::Far];
    // Sums along rows need the registers.
    if comptime![!by_pairs] {
        if left > 1 {
            blocks.fetch_values(inputs, walk, left - 2, columns, config);
        }
    }
    if comptime![by_pairs] {
        if comptime![config.carries() && kind == WalkStep::Near] {
            write_edges(place, walk, left, &own.carried, &mut out.edges, config);
        }
        differentiate_block(
            inputs,
            place,
            walk,
            left,
            own,
            &logits,
            &mut of_weights,
            &mut seconds,
            sums,
            out,
            kind,
            config,
        );
    } else {
        let lane = UNIT_POS_PLANE as usize;
        let column = (left - 1) * columns + lane % 4 * 2;
        let row = walk.own + walk.of_plane + lane / 4;
        let first = (left - 1) * columns;
        let near = comptime![kind == WalkStep::Near && config.decays_channels()];
        if comptime![near] {
            replace_near(&mut logits, inputs, place, walk, first, columns);
        }
        if comptime![kind == WalkStep::Near] {
            mask(&mut logits, row, column, false, columns, comptime![config.unit_rows()]);
        }
        let scale = place.scale * comptime![LOG2_E];
        blocks.logit_gradients(
            &logits,
            &mut of_weights,
            &own.rows,
            stage,
            walk.of_plane,
            scale,
            columns,
            config,
        );
        sums.add_up(&of_weights, row, column, config);
        if comptime![config.pieces > 0] {
            let factors = &mut sums.factors;
            blocks.add_factor_gradients(&of_weights, factors, stage, walk.of_plane, config);
        }
        if comptime![near] {
            take_near(&mut of_weights, &mut out.tables, place, walk, first, columns);
        }
    }
    if comptime![by_pairs] {
        if left > 1 {
            blocks.fetch_values(inputs, walk, left - 2, columns, config);
        }
    }
    if comptime![kind != WalkStep::Whole] {
        let begin = stage * comptime![columns * width / 8];
        let transfer = comptime![config.transfer()];
        let (keys, to) = (&blocks.keys.tile, &mut sums.q);
        let channels = &blocks.channels;
        channels.add_mix(&of_weights, keys, stage, to, groups, content, transfer);
        if comptime![has_seconds] {
            let second = comptime![config.second()];
            add_mix(&seconds, keys, begin, to, columns, groups, second, transfer);
        }
    }
    if left > 1 {
        blocks.store_values((left - 1) % 2, config);
    }
    sync_copies(comptime![config.transfer()]);
}

/// Writes what the rows carry into a block, where the block is the last one of 64 keys.
#[cube]
fn write_edges(
    place: &MmaSizes,
    walk: &CubeWalk,
    left: usize,
    carried: &Carried,
    edges: &mut Box<[SumPair]>,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.gradient_block()];
    let lane = UNIT_POS_PLANE as usize;
    if left * columns % OWNED == 0 || left == walk.seen_blocks(place, columns, config) {
        let keys = walk.plane * (padded_columns(place) / OWNED) + (left - 1) * columns / OWNED;
        if lane % 4 == 0 {
            #[unroll]
            for eight in 0..2usize {
                let mut pair = SumPair::empty();
                pair.insert(0usize, carried.passed[eight]);
                pair.insert(1usize, carried.behind[eight]);
                let row = walk.first + walk.of_plane + lane / 4 + eight * 8;
                edges[keys * padded_rows(place) + row] = pair;
            }
        }
    }
}

/// Replaces the gradients of the weights of a block near the diagonal by those of logits, and the second products by their
/// gradients, from its last column to its first one.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block, and where it is")]
fn differentiate_block(
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
    left: usize,
    own: &mut OwnRows,
    products: &Results,
    gradients: &mut Results,
    seconds: &mut Results,
    sums: &mut OwnRowSums,
    out: &mut RowGradients,
    #[comptime] kind: WalkStep,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.gradient_block()];
    let column = (left - 1) * columns;
    let whole = comptime![kind == WalkStep::Whole];
    #[unroll]
    for i in 0..comptime![columns / ACROSS] {
        let n = comptime![columns / ACROSS - 1 - i];
        #[unroll]
        for eight in 0..2usize {
            let at = pair_place(walk.plane, walk.of_plane, walk.own, column, n, eight);
            let products = products.index(n)[eight];
            let of_weights = gradients.index(n)[eight];
            if comptime![config.term().is_some()] {
                let (_weights, of_products) = sums.terms.differentiate(
                    inputs, place, &own.rows, &at, products, of_weights, n, eight, true, config,
                );
                gradients.index_mut(n)[eight] = of_products;
            } else {
                let passed = &mut own.carried.passed;
                let mut second = products;
                if comptime![config.second_dim > 0] {
                    second = seconds.index(n)[eight];
                }
                let scored =
                    score(products, second, passed, &own.table, inputs, place, &at, eight, config);
                let behind = &mut own.carried.behind;
                let pair = differentiate(
                    &scored, of_weights, behind, &own.rows, place, eight, whole, config,
                );
                gradients.index_mut(n)[eight] = pair.content;
                if comptime![config.second_dim > 0] {
                    seconds.index_mut(n)[eight] = pair.second;
                }
                if comptime![config.contextual() && config.has_slopes() && !whole] {
                    sums.add_positions(&scored, &pair, eight);
                }
                if comptime![config.tables() && !whole] {
                    let out = &mut out.tables;
                    sums.entries.add(out, &scored, &pair, place, walk, &at, eight, config);
                }
            }
        }
    }
}
