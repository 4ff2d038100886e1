//! Forward kernel: a cube owns 64 or 128 rows and walks over blocks of columns from the diagonal to the left.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::along::{Carried, NOTHING_LEFT, score_block};
use super::approximate::LOG2_E;
use super::biases::{LOWEST, difference, mask};
use super::blocks::{OwnedRows, add_mix};
use super::channels::replace_near;
use super::columns::ColumnBlocks;
use super::config::{ACROSS, Channels, MmaConfig, OWNED};
use super::copies::sync_copies;
use super::inputs::{MmaInputs, MmaSizes};
use super::moving::{DIRECTIONS, MovingRows, UPDATES, read_products};
use super::row_table::RowTable;
use super::softmax::{Softmax, largest_logit, soften, weigh};
use super::tile::{SumPair, row_sum, zeros};
use super::votes::RowVotes;
use super::walk::{CubeWalk, write_rows};

/// Results of the forward pass.
#[derive(CubeType, CubeLaunch)]
pub(super) struct ForwardOutputs {
    /// Output, `[B, T, H, E]`.
    pub(super) out: Box<[SumPair]>,
    /// Binary logarithm of the softmax's denominator, `[plane, padded T]`; 0 for sticks.
    pub(super) log: Box<[f32]>,
    /// Number of blocks of columns on the left that are far for a block of rows, `[plane, padded T / 64]`; only for sums
    /// along rows.
    pub(super) far_blocks: Box<[u32]>,
}

/// Rows of a cube.
#[derive(CubeType)]
struct OwnQueries {
    queries: OwnedRows,
    /// The queries, if they change.
    moving: MovingRows,
    table: RowTable,
    carried: Carried,
}

/// Computes the output, and what the backward kernels need.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn forward_kernel(
    inputs: &MmaInputs,
    place: &MmaSizes,
    out: &mut ForwardOutputs,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.block()];
    let groups = comptime![config.row_groups];
    let unit_rows = comptime![config.unit_rows()];
    let (owned, transfer) = comptime![(config.owned(), config.transfer())];
    let lane = UNIT_POS_PLANE as usize;
    let walk = CubeWalk::over_columns(place, config);
    let mut own = OwnQueries {
        queries: OwnedRows::new(owned, comptime![config.width()], transfer),
        moving: MovingRows::new(config),
        table: RowTable::new(config),
        carried: Carried::new(),
    };
    own.queries.load(&inputs.q, walk.packed);
    own.table.load(inputs, place, walk.plane, walk.first, config);
    let mut blocks = ColumnBlocks::new(columns, config);
    let mut votes = RowVotes::new(config);
    let mut softmax = Softmax {
        sums: zeros(comptime![config.value_width() / ACROSS], groups),
        largest: Array::new(unit_rows),
        total: Array::new(unit_rows),
    };
    #[unroll]
    for eight in 0..unit_rows {
        softmax.largest[eight] = f32::new(LOWEST);
        softmax.total[eight] = f32::new(0.0);
    }
    let mut left = walk.seen_blocks(place, columns, config);
    let most_far = walk.most_far(columns, config);
    blocks.begin(inputs, place, &walk, left - 1, columns, config);
    sync_copies(comptime![config.transfer()]);
    own.queries.begin(
        walk.of_plane,
        comptime![config.resident() && !config.reflects()],
        groups,
        comptime![config.width()],
    );
    own.moving.read(&own.queries.blocks.tile, walk.of_plane);
    let mut far = most_far;
    if comptime![config.carries()] {
        far = 0usize;
    }
    while left > far {
        step(
            inputs,
            place,
            &walk,
            left,
            &mut own,
            &mut blocks,
            &mut votes,
            &mut softmax,
            true,
            config,
        );
        left -= 1;
        if comptime![config.carries()] {
            let limit = if comptime![config.sticks()] {
                f32::new(NOTHING_LEFT)
            } else {
                place.max_position
            };
            if comptime![!config.all_near()] {
                if votes.least(left) > limit {
                    far = most_far;
                }
            }
        }
    }
    if comptime![config.carries()] {
        if UNIT_POS == 0 {
            out.far_blocks[walk.packed / OWNED] = left as u32;
        }
    }
    if comptime![config.has_far()] {
        own.carried.read_far(inputs, place, &walk, config);
        while left > 0 {
            step(
                inputs,
                place,
                &walk,
                left,
                &mut own,
                &mut blocks,
                &mut votes,
                &mut softmax,
                false,
                config,
            );
            left -= 1;
        }
    }
    let mut shares = Array::<f32>::new(unit_rows);
    #[unroll]
    for eight in 0..unit_rows {
        let mut logarithm = f32::new(0.0);
        shares[eight] = f32::new(1.0);
        let row = walk.of_plane + lane / 4 + eight * 8;
        if comptime![!config.sticks()] {
            let total = row_sum(softmax.total[eight]);
            shares[eight] = 1.0 / total;
            logarithm =
                largest_logit(softmax.largest[eight], place.scale * comptime![LOG2_E], config)
                    + total.ln() * comptime![LOG2_E];
        }
        if comptime![config.differences()] {
            logarithm += difference(inputs, place, walk.plane, walk.own + row, walk.own, config);
        }
        if lane % 4 == 0 {
            out.log[walk.packed + row] = logarithm;
        }
    }
    let (heads, rows) = (place.heads, place.rows);
    write_rows(
        &softmax.sums,
        &mut out.out,
        heads,
        rows,
        &walk,
        &shares,
        unit_rows,
        comptime![config.value_dim],
    );
}

/// One block of columns; `left` counts the blocks that are left with it.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and the state of the walk")]
fn step(
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
    left: usize,
    own: &mut OwnQueries,
    blocks: &mut ColumnBlocks,
    votes: &mut RowVotes,
    softmax: &mut Softmax,
    #[comptime] near: bool,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.block()];
    let groups = comptime![config.row_groups];
    let stage = left % 2;
    let scale = place.scale * comptime![LOG2_E];
    if left > 1 {
        blocks.fetch_keys(inputs, place, walk, left - 2, columns, config);
    }
    let mut scores = zeros(comptime![columns / ACROSS], groups);
    if comptime![config.reflects()] {
        if comptime![near] {
            read_products(&mut scores, inputs, place, walk);
        } else {
            let begin = stage * comptime![columns * config.width() / 8];
            own.moving.add_dots(&blocks.keys.tile, begin, &mut scores);
        }
    } else {
        blocks.channels.add_dots(
            &own.queries,
            walk.of_plane,
            &blocks.keys.tile,
            stage,
            &mut scores,
            comptime![config.resident()],
            columns,
            groups,
            comptime![config.content()],
        );
    }
    let mut seconds =
        zeros(comptime![if near { config.second_results(columns) } else { 0 }], groups);
    if comptime![near && config.second_dim > 0] {
        own.queries.add_dots(
            walk.of_plane,
            &blocks.keys.tile,
            stage,
            &mut seconds,
            comptime![config.resident()],
            columns,
            groups,
            comptime![config.second()],
        );
    }
    if left > 1 {
        blocks.store_keys((left - 1) % 2, columns, config);
    }
    let by_pairs = comptime![near && config.by_rows()];
    // Sums along rows need the registers.
    if comptime![!by_pairs] {
        if left > 1 {
            blocks.fetch_values(inputs, walk, left - 2, columns, config);
        }
    }
    let column = (left - 1) * columns;
    if comptime![by_pairs] {
        score_block(
            &mut scores,
            &seconds,
            &mut own.carried,
            &own.table,
            inputs,
            place,
            walk,
            column,
            columns,
            config,
        );
        votes.cast(&own.carried.passed, left, config);
    } else {
        if comptime![near && config.decays_channels()] {
            replace_near(&mut scores, inputs, place, walk, column, columns);
        }
        blocks.add_biases(&mut scores, &own.carried.far, stage, walk.of_plane, scale, config);
        if comptime![near] {
            let lane = UNIT_POS_PLANE as usize;
            let row = walk.own + walk.of_plane + lane / 4;
            mask(
                &mut scores,
                row,
                column + lane % 4 * 2,
                false,
                columns,
                comptime![config.unit_rows()],
            );
        }
    }
    if comptime![config.sticks()] {
        weigh(&mut scores, config);
    } else {
        soften(&mut scores, softmax, scale, config);
    }
    if comptime![by_pairs] {
        if left > 1 {
            blocks.fetch_values(inputs, walk, left - 2, columns, config);
        }
    }
    let begin = stage * comptime![columns * config.value_width() / 8];
    add_mix(
        &scores,
        &blocks.values.tile,
        begin,
        &mut softmax.sums,
        columns,
        groups,
        comptime![Channels::all(config.value_width())],
        comptime![config.transfer()],
    );
    if comptime![config.reflects() && !near] {
        if left > 1 {
            let begin = stage * comptime![columns * config.width() / 8];
            let maps = &blocks.maps.blocks;
            own.moving.subtract(
                &maps.index(DIRECTIONS).tile,
                &maps.index(UPDATES).tile,
                begin,
                config,
            );
        }
    }
    if left > 1 {
        blocks.store_values((left - 1) % 2, config);
    }
    sync_copies(comptime![config.transfer()]);
}
