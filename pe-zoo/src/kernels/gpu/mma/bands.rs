//! Gradients by distance, of a table or of what the input of a piecewise linear function has of the distance: a cube owns a band of blocks along the diagonal, whose distances are the same in each block,
//! so that gradients of logits are added up in registers, and once along the diagonals of the sum.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::along::{Carried, score_block};
use super::approximate::LOG2_E;
use super::biases::mask;
use super::blocks::OwnedRows;
use super::channels::replace_near;
use super::columns::ColumnBlocks;
use super::config::{ACROSS, Channels, MmaConfig, OWNED};
use super::copies::sync_copies;
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::piece_gradients::LineSums;
use super::row_table::RowTable;
use super::rows::RowStatistics;
use super::tile::{SumPair, zeros};
use super::walk::{CubeWalk, first_of_plane, padded_columns, padded_rows};

/// Numbers that a band has: one for each distance in a block, and one that is not used.
pub(super) const BAND: usize = 2 * OWNED;

/// Computes `out`, `[plane, band, 128]`: sums of gradients of logits over the pairs of a band whose distance is
/// `64 band + first row - OWNED ceil(first row / 64) + index - 63`. The gradients of the pieces of a function go to `lines`,
/// `[plane, band, pieces, 2]`.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn bands_kernel(
    inputs: &MmaInputs,
    place: &MmaSizes,
    upstream: &Upstream,
    out: &mut Box<[f32]>,
    lines: &mut Box<[SumPair]>,
    #[comptime] config: MmaConfig,
) {
    let (width, value_width) = comptime![(config.width(), config.value_width())];
    let (all, all_of_values) = comptime![(Channels::all(width), Channels::all(value_width))];
    let transfer = comptime![config.transfer()];
    let lane = UNIT_POS_PLANE as usize;
    let plane = CUBE_POS_Y as usize;
    let band = CUBE_POS_X as usize;
    let row_blocks = place.rows.div_ceil(OWNED);
    let column_blocks = place.columns.div_ceil(OWNED);
    let mut queries = OwnedRows::new(OWNED, width, transfer);
    let mut grads = OwnedRows::new(OWNED, value_width, transfer);
    let mut blocks = ColumnBlocks::new(OWNED, config);
    let mut rows = RowStatistics::new(config);
    // Both are read only by forms that have no gradient by distance.
    let (table, mut carried) = (RowTable::new(config), Carried::new());
    let mut sums = zeros(comptime![OWNED / ACROSS], 1usize);
    let mut line_sums = LineSums::new(config);
    // The columns that a block of rows sees end with the block of this index more.
    let newest = place.first_row.div_ceil(OWNED);
    let mut block = max(band, newest) - newest;
    let end = min(row_blocks, column_blocks + band - newest);
    let of_plane = first_of_plane(config);
    while block < end {
        let of_columns = block + newest - band;
        let stage = (of_columns + 1) % 2;
        let walk = CubeWalk {
            plane,
            first: block * OWNED,
            packed: plane * padded_rows(place) + block * OWNED,
            own: place.first_row + block * OWNED,
            of_plane,
            begin: plane * padded_columns(place),
        };
        // All units must have finished reading the previous blocks.
        sync_cube();
        queries.load(&inputs.q, walk.packed);
        grads.load(&upstream.grad, walk.packed);
        blocks.begin(inputs, place, &walk, of_columns, OWNED, config);
        rows.read(inputs, place, upstream, &walk, walk.packed, config);
        sync_copies(transfer);
        let mut logits = zeros(comptime![OWNED / ACROSS], 1usize);
        let mut gradients = zeros(comptime![OWNED / ACROSS], 1usize);
        let keys = &blocks.keys.tile;
        let to = &mut logits;
        let channels = &blocks.channels;
        channels.add_dots(&queries, of_plane, keys, stage, to, false, OWNED, 1usize, all);
        let values = &blocks.values.tile;
        let to = &mut gradients;
        grads.add_dots(of_plane, values, stage, to, false, OWNED, 1usize, all_of_values);
        let column = of_columns * OWNED + lane % 4 * 2;
        let mut scale = place.scale * comptime![LOG2_E];
        if comptime![config.term().is_some()] {
            let (along, first) = (&mut carried, of_columns * OWNED);
            let seconds = zeros(0usize, 1usize);
            score_block(
                &mut logits,
                &seconds,
                along,
                &table,
                inputs,
                place,
                &walk,
                first,
                OWNED,
                config,
            );
            scale = f32::new(1.0);
        } else {
            if comptime![config.decays_channels()] {
                let first = of_columns * OWNED;
                replace_near(&mut logits, inputs, place, &walk, first, OWNED);
            }
            mask(&mut logits, walk.own + of_plane + lane / 4, column, false, OWNED, 2usize);
        }
        blocks.logit_gradients(
            &logits,
            &mut gradients,
            &rows,
            stage,
            of_plane,
            scale,
            OWNED,
            config,
        );
        line_sums.add(&mut gradients, &blocks, stage, of_plane, config);
        #[unroll]
        for n in 0..comptime![OWNED / ACROSS] {
            #[unroll]
            for eight in 0..2usize {
                let sum = sums.index(n)[eight];
                sums.index_mut(n)[eight] = sum + gradients.index(n)[eight];
            }
        }
        block += 1;
    }
    let stride = comptime![OWNED + 1];
    let mut square = Shared::<[f32]>::new_slice(comptime![OWNED * (OWNED + 1)]);
    #[unroll]
    for n in 0..comptime![OWNED / ACROSS] {
        #[unroll]
        for eight in 0..2usize {
            let row = of_plane + lane / 4 + eight * 8;
            #[unroll]
            for one in 0..2usize {
                square[row * stride + n * 8 + lane % 4 * 2 + one] =
                    sums.index(n)[eight].extract(one);
            }
        }
    }
    sync_cube();
    // The distance is that of the corner plus `row - column`; the index is that plus 63.
    let index = UNIT_POS as usize;
    let mut sum = f32::new(0.0);
    let mut row = max(index, comptime![OWNED - 1]) - comptime![OWNED - 1];
    let last = min(index + 1, OWNED);
    while row < last {
        sum += square[row * stride + row + comptime![OWNED - 1] - index];
        row += 1;
    }
    let own = plane * CUBE_COUNT_X as usize + band;
    out[own * BAND + index] = sum;
    line_sums.write(lines, own * comptime![config.pieces], config);
}

/// Adds up what bands have of each distance: `out` is `[H, entries]`.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn table_kernel(
    of_bands: &Box<[f32]>,
    out: &mut Box<[f32]>,
    planes: usize,
    heads: usize,
    bands: usize,
    entries: usize,
    first_row: usize,
) {
    let at = ABSOLUTE_POS;
    if at < heads * entries {
        let head = at / entries;
        // From the first distance of band 0, which may be negative: 63 below that of its corner.
        let from_first =
            at % entries + first_row.div_ceil(OWNED) * OWNED - first_row + comptime![OWNED - 1];
        let mut sum = f32::new(0.0);
        let mut plane = head;
        while plane < planes {
            let band = from_first / OWNED;
            let index = from_first % OWNED;
            if band < bands {
                sum += of_bands[(plane * bands + band) * BAND + index];
            }
            if band >= 1 && band <= bands {
                sum += of_bands[(plane * bands + band - 1) * BAND + index + OWNED];
            }
            plane += heads;
        }
        out[at] = sum;
    }
}
