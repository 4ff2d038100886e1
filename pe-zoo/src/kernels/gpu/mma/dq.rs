//! Backward kernel by rows: a cube owns 64 rows and walks over blocks of columns as the forward kernel does. It computes
//! the gradients of queries, and those of biases that belong to rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::biases::{ColumnBiases, difference, mask_rows};
use super::blocks::{Blocks, OwnedRows};
use super::config::{ACROSS, MmaConfig, OWNED, ROWS};
use super::forward::{Walk, fetch};
use super::inputs::{Inputs, LaunchSizes, Upstream};
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

/// What this unit keeps of its two rows.
#[derive(CubeType)]
struct RowSums {
    q: Results,
    /// Logarithms of the softmax's denominators without the rows' biases.
    log: Array<f32>,
    /// Dot products of output and gradient.
    share: Array<f32>,
    slopes: Array<f32>,
    decay: Array<f32>,
}

/// Computes the gradients that belong to rows.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn dq_kernel(
    inputs: &Inputs,
    place: &LaunchSizes,
    upstream: &Upstream,
    out: &mut RowGradients,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.backward_block()];
    let resident = comptime![config.resident()];
    let lane = UNIT_POS_PLANE as usize;
    let plane = CUBE_POS_Y as usize;
    let row = ((place.rows - 1) / OWNED - CUBE_POS_X as usize) * OWNED;
    let first = plane * place.rows.div_ceil(OWNED) * OWNED + row;
    let walk = Walk {
        plane,
        own: place.first_row + row,
        of_plane: UNIT_POS as usize / 32 * ROWS,
        begin: plane * place.columns.div_ceil(OWNED) * OWNED,
    };
    let mut queries = OwnedRows::new(&inputs.q, first, OWNED, comptime![config.width()]);
    let mut grads = OwnedRows::new(&upstream.grad, first, OWNED, comptime![config.value_width()]);
    let mut keys = Blocks::new(2usize, columns, comptime![config.width()]);
    let mut values = Blocks::new(2usize, columns, comptime![config.value_width()]);
    let mut biases = ColumnBiases::new(columns, config);
    let mut sums = RowSums {
        q: zeros(comptime![config.width() / ACROSS]),
        log: Array::new(2usize),
        share: Array::new(2usize),
        slopes: Array::new(2usize),
        decay: Array::new(2usize),
    };
    #[unroll]
    for half in 0..2usize {
        let row = walk.of_plane + lane / 4 + half * 8;
        let statistics = upstream.statistics[first + row];
        let mut log = statistics.extract(0usize);
        if comptime![config.differences()] {
            log -= difference(inputs, place, plane, walk.own + row, walk.own, config);
        }
        sums.log[half] = log;
        sums.share[half] = statistics.extract(1usize);
        sums.slopes[half] = f32::new(0.0);
        sums.decay[half] = f32::new(0.0);
    }
    let mut left = min(walk.own + comptime![OWNED - 1], place.columns - 1) / columns + 1;
    let unmasked = (walk.own + 1) / columns;
    fetch(inputs, place, &walk, left - 1, &mut keys, &mut values, &mut biases, columns, config);
    store(left % 2, &mut keys, &mut values, &mut biases, config);
    sync_cube();
    queries.begin(walk.of_plane, resident, comptime![config.width()]);
    grads.begin(walk.of_plane, resident, comptime![config.value_width()]);
    while left > unmasked {
        step(
            inputs,
            place,
            &walk,
            left,
            &queries,
            &grads,
            &mut keys,
            &mut values,
            &mut biases,
            &mut sums,
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
            &grads,
            &mut keys,
            &mut values,
            &mut biases,
            &mut sums,
            false,
            config,
        );
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

#[cube]
fn store(
    stage: usize,
    keys: &mut Blocks,
    values: &mut Blocks,
    biases: &mut ColumnBiases,
    #[comptime] config: MmaConfig,
) {
    keys.store(stage, comptime![config.backward_block()], comptime![config.width()]);
    values.store(stage, comptime![config.backward_block()], comptime![config.value_width()]);
    biases.store(stage, comptime![config.backward_block()], config);
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
    grads: &OwnedRows,
    keys: &mut Blocks,
    values: &mut Blocks,
    biases: &mut ColumnBiases,
    sums: &mut RowSums,
    #[comptime] masked: bool,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.backward_block()];
    let resident = comptime![config.resident()];
    let width = comptime![config.width()];
    let value_width = comptime![config.value_width()];
    let lane = UNIT_POS_PLANE as usize;
    let stage = left % 2;
    if left > 1 {
        fetch(inputs, place, walk, left - 2, keys, values, biases, columns, config);
    }
    let mut logits = zeros(comptime![columns / ACROSS]);
    let mut of_weights = zeros(comptime![columns / ACROSS]);
    queries.add_dots(walk.of_plane, &keys.tile, stage, &mut logits, resident, columns, width);
    grads.add_dots(
        walk.of_plane,
        &values.tile,
        stage,
        &mut of_weights,
        resident,
        columns,
        value_width,
    );
    let column = (left - 1) * columns + lane % 4 * 2;
    let own = walk.own + walk.of_plane + lane / 4;
    if comptime![masked] {
        mask_rows(&mut logits, own, column, columns);
    }
    let mut all = Array::<f32>::new(2usize);
    let mut by_column = Array::<f32>::new(2usize);
    #[unroll]
    for half in 0..2usize {
        all[half] = f32::new(0.0);
        by_column[half] = f32::new(0.0);
    }
    #[unroll]
    for n in 0..comptime![columns / ACROSS] {
        let bias = biases.of(stage, n, columns, config);
        #[unroll]
        for half in 0..2usize {
            let (logit, of_weight) = (logits.index(n)[half], of_weights.index(n)[half]);
            let mut gradients = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                let mut without = -sums.log[half];
                if comptime![config.differences()] {
                    without = bias.extract(one) - sums.log[half];
                }
                let weight = f32::exp(fma(logit.extract(one), place.scale, without));
                let gradient = weight * (of_weight.extract(one) - sums.share[half]);
                gradients.insert(one, gradient);
                if comptime![config.slopes || config.decay] {
                    all[half] += gradient;
                }
                if comptime![config.slopes] {
                    let further = f32::cast_from(comptime![(n * 8 + one) as f32]);
                    by_column[half] = fma(gradient, further, by_column[half]);
                }
            }
            of_weights.index_mut(n)[half] = gradients;
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
        &keys.tile,
        stage * comptime![columns * width / 8],
        &mut sums.q,
        columns,
        width,
    );
    if left > 1 {
        store((left - 1) % 2, keys, values, biases, config);
    }
    sync_cube();
}
