//! Backward kernel by rows: a cube owns 64 rows and walks over blocks of columns as the forward kernel does. It computes
//! the gradients of queries, and those of biases that belong to rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::biases::mask_rows;
use super::blocks::OwnedRows;
use super::columns::{ColumnBlocks, CubeWalk};
use super::config::{ACROSS, MmaConfig, OWNED, ROWS};
use super::exponential::LOG2_E;
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::rows::RowStatistics;
use super::tile::{Results, SumPair, add_mix, row_sum, write_rows, zeros};

/// Gradients that belong to rows.
#[derive(CubeType, CubeLaunch)]
pub(super) struct RowGradients {
    /// Gradients of the queries, `[B, T, H, D]`.
    pub(super) q: Box<[SumPair]>,
    /// Gradients of the slopes, `[plane, T]`.
    pub(super) slopes: Box<[f32]>,
    /// Gradients of the rows' running sums, `[plane, T]`.
    pub(super) decay: Box<[f32]>,
}

/// Sums over this unit's two rows.
#[derive(CubeType)]
struct OwnRowSums {
    q: Results,
    rows: RowStatistics,
    slopes: Array<f32>,
    decay: Array<f32>,
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
    let columns = comptime![config.block()];
    let resident = comptime![config.resident()];
    let lane = UNIT_POS_PLANE as usize;
    let plane = CUBE_POS_Y as usize;
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
    let mut grads = OwnedRows::new(OWNED, comptime![config.value_width()]);
    grads.load(&upstream.grad, first, OWNED, comptime![config.value_width()]);
    let mut blocks = ColumnBlocks::new(columns, config);
    let mut sums = OwnRowSums {
        q: zeros(comptime![config.width() / ACROSS]),
        rows: RowStatistics::new(),
        slopes: Array::new(2usize),
        decay: Array::new(2usize),
    };
    sums.rows.read(inputs, place, upstream, &walk, first, config);
    #[unroll]
    for half in 0..2usize {
        sums.slopes[half] = f32::new(0.0);
        sums.decay[half] = f32::new(0.0);
    }
    let mut left = min(walk.own + comptime![OWNED - 1], place.columns - 1) / columns + 1;
    let unmasked = (walk.own + 1) / columns;
    blocks.begin(inputs, place, &walk, left - 1, columns, config);
    sync_cube();
    queries.begin(walk.of_plane, resident, comptime![config.width()]);
    grads.begin(walk.of_plane, resident, comptime![config.value_width()]);
    while left > unmasked {
        step(inputs, place, &walk, left, &queries, &grads, &mut blocks, &mut sums, true, config);
        left -= 1;
    }
    while left > 0 {
        step(inputs, place, &walk, left, &queries, &grads, &mut blocks, &mut sums, false, config);
        left -= 1;
    }
    let mut scales = Array::<f32>::new(2usize);
    #[unroll]
    for half in 0..2usize {
        scales[half] = place.scale;
        let of_cube = walk.of_plane + lane / 4 + half * 8;
        let at = plane * place.rows + row + of_cube;
        let ends = lane % 4 == 0 && row + of_cube < place.rows;
        if comptime![config.slopes] {
            let sum = row_sum(sums.slopes[half]);
            if ends {
                out.slopes[at] = sum;
            }
        }
        if comptime![config.decay] {
            let sum = row_sum(sums.decay[half]);
            if ends {
                out.decay[at] = sum;
            }
        }
    }
    write_rows(
        &sums.q,
        &mut out.q,
        plane,
        place.heads,
        row + walk.of_plane,
        place.rows,
        &scales,
        comptime![config.head_dim],
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
    queries: &OwnedRows,
    grads: &OwnedRows,
    blocks: &mut ColumnBlocks,
    sums: &mut OwnRowSums,
    #[comptime] masked: bool,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.block()];
    let resident = comptime![config.resident()];
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let lane = UNIT_POS_PLANE as usize;
    let stage = left % 2;
    let scale = place.scale * comptime![LOG2_E];
    if left > 1 {
        blocks.fetch_keys(inputs, place, walk, left - 2, columns, config);
    }
    let mut logits = zeros(comptime![columns / ACROSS]);
    let mut of_weights = zeros(comptime![columns / ACROSS]);
    queries.add_dots(
        walk.of_plane,
        &blocks.keys.tile,
        stage,
        &mut logits,
        resident,
        columns,
        width,
    );
    grads.add_dots(
        walk.of_plane,
        &blocks.values.tile,
        stage,
        &mut of_weights,
        resident,
        columns,
        value_width,
    );
    if left > 1 {
        blocks.store_keys((left - 1) % 2, columns, config);
        blocks.fetch_values(inputs, walk, left - 2, columns, config);
    }
    let column = (left - 1) * columns + lane % 4 * 2;
    let own = walk.own + walk.of_plane + lane / 4;
    if comptime![masked] {
        mask_rows(&mut logits, own, column, columns);
    }
    blocks.logit_gradients(
        &logits,
        &mut of_weights,
        &sums.rows,
        stage,
        walk.of_plane,
        scale,
        columns,
        config,
    );
    let mut all = Array::<f32>::new(2usize);
    let mut by_column = Array::<f32>::new(2usize);
    #[unroll]
    for half in 0..2usize {
        all[half] = f32::new(0.0);
        by_column[half] = f32::new(0.0);
        if comptime![config.slopes || config.decay] {
            #[unroll]
            for n in 0..comptime![columns / ACROSS] {
                #[unroll]
                for one in 0..2usize {
                    let gradient = of_weights.index(n)[half].extract(one);
                    all[half] += gradient;
                    if comptime![config.slopes] {
                        let further = f32::cast_from(comptime![(n * 8 + one) as f32]);
                        by_column[half] = fma(gradient, further, by_column[half]);
                    }
                }
            }
        }
    }
    #[unroll]
    for half in 0..2usize {
        if comptime![config.slopes] {
            // The slope is multiplied by the negative distance.
            let distance = (own + half * 8) as f32 - column as f32;
            sums.slopes[half] += by_column[half] - distance * all[half];
        }
        if comptime![config.decay] {
            sums.decay[half] += all[half];
        }
    }
    add_mix(
        &of_weights,
        &blocks.keys.tile,
        stage * comptime![columns * width / 8],
        &mut sums.q,
        columns,
        width,
    );
    if left > 1 {
        blocks.store_values((left - 1) % 2, columns, config);
    }
    sync_cube();
}
