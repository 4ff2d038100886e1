//! Backward kernel of queries that change from block to block. A cube owns every `n`th block of 64 rows of a plane, one after the other.
//! For each it first walks to the left and keeps the queries as they meet each block of columns, then it walks back to the diagonal
//! with their gradients. What belongs to columns is added to sums of the cube, which nobody else writes.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::{LOG2_E, power_of_two};
use super::biases::{difference, mask};
use super::blocks::{Blocks, add_mix};
use super::config::{ACROSS, Channels, MmaConfig, OWNED, PLANES, STEP};
use super::copies::sync_copies;
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::moving::{DIRECTIONS, MapBlocks, MovingRows, UPDATES, read_products, write_products};
use super::rows::RowStatistics;
use super::tile::{
    FactorPair, LeftFactors, Piece, Results, SumPair, add_dot, add_transposed_mix, left_factors,
    row_sum, store_result, zeros,
};
use super::walk::{CubeWalk, exists, first_of_plane, padded_columns, padded_rows, write_rows};

/// Gradients, and memory of the cubes.
#[derive(CubeType, CubeLaunch)]
pub(super) struct ReflectedGradients {
    /// Gradients of the queries, `[B, T, H, D]`.
    pub(super) q: Box<[SumPair]>,
    /// Sums of the gradients of keys, `[cube of the plane, plane, padded S, padded D]`; zeros before the launch, as those that follow.
    pub(super) k: Box<[SumPair]>,
    /// The same of values, `[cube of the plane, plane, padded S, padded E]`.
    pub(super) values: Box<[SumPair]>,
    /// The same of directions.
    pub(super) directions: Box<[SumPair]>,
    /// The same of updates.
    pub(super) updates: Box<[SumPair]>,
    /// The same of the columns' running sums, negated, `[cube of the plane, plane, padded S]`.
    pub(super) column_decay: Box<[f32]>,
    /// Gradients of the rows' running sums, `[plane, T]`.
    pub(super) row_decay: Box<[f32]>,
    /// Gradients of the products with the columns of the rows' blocks, `[plane, T, 64]`.
    pub(super) products: Box<[f32]>,
    /// Queries as they meet each block of columns, `[cube of the plane, plane, padded S, padded D]`.
    pub(super) met: Box<[FactorPair]>,
}

/// Blocks in shared memory.
#[derive(CubeType)]
struct ReflectedTiles {
    keys: Blocks,
    values: Blocks,
    maps: MapBlocks,
    /// Queries of the rows, as they meet the columns.
    queries: Blocks,
    /// Gradients of the output.
    grads: Blocks,
    /// Gradients of the queries behind the columns.
    behind: Shared<[Piece]>,
    /// Weights of a block, gradients of its logits, and negative products of queries with directions and of their gradients with updates,
    /// `[64, 64]`.
    weights: Shared<[Piece]>,
    gradients: Shared<[Piece]>,
    with_directions: Shared<[Piece]>,
    with_updates: Shared<[Piece]>,
    /// Sums over the rows of each plane, `[plane of the cube, 64]`.
    column_sums: Shared<[f32]>,
}

/// Numbers of a block of rows.
#[derive(CubeType)]
struct ReflectedRows {
    rows: RowStatistics,
    /// Gradients of the queries.
    gradients: MovingRows,
    decay: Array<f32>,
}

/// Computes all gradients.
#[cube(launch_unchecked, create_dummy_kernel)]
pub(super) fn reflected_kernel(
    inputs: &MmaInputs,
    sizes: &MmaSizes,
    upstream: &Upstream,
    out: &mut ReflectedGradients,
    #[comptime] config: MmaConfig,
) {
    let (width, value_width) = comptime![(config.width(), config.value_width())];
    let transfer = comptime![config.transfer_of_planes()];
    let square = comptime![OWNED * OWNED / 8];
    let mut tiles = ReflectedTiles {
        keys: Blocks::new(1usize, OWNED, width, transfer),
        values: Blocks::new(1usize, OWNED, value_width, transfer),
        maps: MapBlocks::new(1usize, config),
        queries: Blocks::new(1usize, OWNED, width, transfer),
        grads: Blocks::new(1usize, OWNED, value_width, transfer),
        behind: Shared::new_slice(comptime![OWNED * width / 8]),
        weights: Shared::new_slice(square),
        gradients: Shared::new_slice(square),
        with_directions: Shared::new_slice(square),
        with_updates: Shared::new_slice(square),
        column_sums: Shared::new_slice(comptime![if config.decay { PLANES * OWNED } else { 1 }]),
    };
    let plane = CUBE_POS_Y as usize;
    let mut block = CUBE_POS_X as usize;
    while block < sizes.rows.div_ceil(OWNED) {
        let first = block * OWNED;
        let walk = CubeWalk {
            plane,
            first,
            packed: plane * padded_rows(sizes) + first,
            own: first,
            of_plane: first_of_plane(config),
            begin: plane * padded_columns(sizes),
        };
        of_block(inputs, sizes, upstream, out, &mut tiles, &walk, block, config);
        block += CUBE_COUNT_X as usize;
    }
}

/// First of the cube's columns, among those of all cubes.
#[cube]
fn first_column(sizes: &MmaSizes, walk: &CubeWalk) -> usize {
    CUBE_POS_X as usize * CUBE_COUNT_Y as usize * padded_columns(sizes) + walk.begin
}

/// Place of this plane's queries as they meet a block of columns.
#[cube]
fn meeting(
    sizes: &MmaSizes,
    walk: &CubeWalk,
    columns: usize,
    #[comptime] config: MmaConfig,
) -> usize {
    let first = first_column(sizes, walk) + columns * OWNED + walk.of_plane;
    first * comptime![config.width() / 2]
}

/// Computes the gradients of a block of rows.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and where the rows are")]
fn of_block(
    inputs: &MmaInputs,
    sizes: &MmaSizes,
    upstream: &Upstream,
    out: &mut ReflectedGradients,
    tiles: &mut ReflectedTiles,
    walk: &CubeWalk,
    block: usize,
    #[comptime] config: MmaConfig,
) {
    let transfer = comptime![config.transfer_of_planes()];
    let mut own = ReflectedRows {
        rows: RowStatistics::new(config),
        gradients: MovingRows::new(config),
        decay: Array::new(2usize),
    };
    own.rows.read(inputs, sizes, upstream, walk, walk.packed, config);
    tiles.queries.fetch(&inputs.q, walk.packed, 0usize);
    tiles.queries.store(0usize);
    tiles.grads.fetch(&upstream.grad, walk.packed, 0usize);
    tiles.grads.store(0usize);
    sync_copies(transfer);
    meet_columns(inputs, sizes, out, tiles, walk, block, config);
    #[unroll]
    for eight in 0..2usize {
        own.decay[eight] = f32::new(0.0);
    }
    let mut columns = 0usize.runtime();
    while columns < block {
        step(inputs, sizes, out, tiles, &mut own, walk, columns, false, config);
        columns += 1;
    }
    step(inputs, sizes, out, tiles, &mut own, walk, block, true, config);
    let mut scales = Array::<f32>::new(2usize);
    let row = walk.first + walk.of_plane + UNIT_POS_PLANE as usize / 4;
    #[unroll]
    for eight in 0..2usize {
        scales[eight] = sizes.scale;
        if comptime![config.decay] {
            let sum = row_sum(own.decay[eight]);
            if UNIT_POS_PLANE % 4 == 0 && exists(row, sizes.rows, eight) {
                out.row_decay[walk.plane * sizes.rows + row + eight * 8] = sum;
            }
        }
    }
    let (heads, rows, width) = (sizes.heads, sizes.rows, comptime![config.head_dim]);
    let gradients = &own.gradients.rows;
    write_rows(gradients, &mut out.q, heads, rows, walk, &scales, 2usize, width);
}

/// Keeps the queries of a block of rows as they meet each block of columns on the left.
#[cube]
fn meet_columns(
    inputs: &MmaInputs,
    sizes: &MmaSizes,
    out: &mut ReflectedGradients,
    tiles: &mut ReflectedTiles,
    walk: &CubeWalk,
    block: usize,
    #[comptime] config: MmaConfig,
) {
    let transfer = comptime![config.transfer_of_planes()];
    let mut queries = MovingRows::new(config);
    queries.read(&tiles.queries.tile, walk.of_plane);
    let mut left = block;
    while left > 0 {
        let columns = left - 1;
        queries.save(&mut out.met, meeting(sizes, walk, columns, config));
        if columns > 0 {
            tiles.fetch_maps(inputs, walk, columns, config);
            sync_copies(transfer);
            let maps = &tiles.maps.blocks;
            queries.subtract(
                &maps.index(DIRECTIONS).tile,
                &maps.index(UPDATES).tile,
                0usize,
                config,
            );
            sync_cube();
        }
        left -= 1;
    }
}

#[cube]
impl ReflectedTiles {
    /// Begins to copy directions and updates of a block of columns.
    fn fetch_maps(
        &mut self,
        inputs: &MmaInputs,
        walk: &CubeWalk,
        columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        let column = walk.begin + columns * OWNED;
        self.maps.fetch(&inputs.directions, column, 0usize, DIRECTIONS, config);
        self.maps.store(0usize, DIRECTIONS, config);
        self.maps.fetch(&inputs.updates, column, 0usize, UPDATES, config);
        self.maps.store(0usize, UPDATES, config);
    }
}

/// Computes the gradients of a block of rows and a block of columns, which is that of the rows themselves (`diagonal`) or one on the left.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the operands, and where the block is")]
fn step(
    inputs: &MmaInputs,
    sizes: &MmaSizes,
    out: &mut ReflectedGradients,
    tiles: &mut ReflectedTiles,
    own: &mut ReflectedRows,
    walk: &CubeWalk,
    columns: usize,
    #[comptime] diagonal: bool,
    #[comptime] config: MmaConfig,
) {
    let (width, value_width) = comptime![(config.width(), config.value_width())];
    let transfer = comptime![config.transfer_of_planes()];
    let column = columns * OWNED;
    tiles.values.fetch(&inputs.values, walk.begin + column, 0usize);
    tiles.values.store(0usize);
    if comptime![!diagonal] {
        tiles.keys.fetch(&inputs.k, walk.begin + column, 0usize);
        tiles.keys.store(0usize);
        tiles.fetch_maps(inputs, walk, columns, config);
        let mut queries = MovingRows::new(config);
        queries.load(&out.met, meeting(sizes, walk, columns, config));
        queries.store(&mut tiles.queries.tile, walk.of_plane);
    }
    sync_copies(transfer);
    let mut products = zeros(comptime![OWNED / ACROSS], 1usize);
    let mut gradients = zeros(comptime![OWNED / ACROSS], 1usize);
    if comptime![diagonal] {
        read_products(&mut products, inputs, sizes, walk);
        let lane = UNIT_POS_PLANE as usize;
        let (row, first) = (walk.own + walk.of_plane + lane / 4, column + lane % 4 * 2);
        mask(&mut products, row, first, false, OWNED, 2usize);
    } else {
        add_rows_dots(&tiles.queries.tile, &tiles.keys.tile, walk, &mut products, width);
    }
    add_rows_dots(&tiles.grads.tile, &tiles.values.tile, walk, &mut gradients, value_width);
    differentiate(inputs, sizes, &mut products, &mut gradients, &own.rows, walk, column, config);
    store_square(&products, &mut tiles.weights, walk.of_plane);
    if comptime![config.decay] {
        add_columns(&gradients, own, tiles, walk.of_plane);
    }
    if comptime![diagonal] {
        write_products(&gradients, &mut out.products, sizes, walk, sizes.scale);
    } else {
        store_square(&gradients, &mut tiles.gradients, walk.of_plane);
        if columns > 0 {
            let mut queries = MovingRows::new(config);
            queries.read(&tiles.queries.tile, walk.of_plane);
            let maps = &tiles.maps.blocks;
            let with = queries.negative_products(&maps.index(DIRECTIONS).tile, 0usize);
            store_square(&with, &mut tiles.with_directions, walk.of_plane);
            own.gradients.store(&mut tiles.behind, walk.of_plane);
            let with = own.gradients.subtract(
                &maps.index(UPDATES).tile,
                &maps.index(DIRECTIONS).tile,
                0usize,
                config,
            );
            store_square(&with, &mut tiles.with_updates, walk.of_plane);
        }
        let channels = comptime![Channels::all(width)];
        let (keys, to) = (&tiles.keys.tile, &mut own.gradients.rows);
        add_mix(&gradients, keys, 0usize, to, OWNED, 1usize, channels, transfer);
    }
    sync_cube();
    let first = first_column(sizes, walk) + column;
    let one = f32::new(1.0);
    let of_plane = walk.of_plane;
    let (square, rows) = (&tiles.weights, &tiles.grads.tile);
    add_products(square, rows, &mut out.values, first, of_plane, one, value_width);
    if comptime![config.decay] {
        write_column_sums(&tiles.column_sums, &mut out.column_decay, first);
    }
    if comptime![!diagonal] {
        let scale = sizes.scale;
        let (square, rows) = (&tiles.gradients, &tiles.queries.tile);
        add_products(square, rows, &mut out.k, first, of_plane, scale, width);
        if columns > 0 {
            let (square, rows) = (&tiles.with_updates, &tiles.queries.tile);
            add_products(square, rows, &mut out.directions, first, of_plane, scale, width);
            let (square, rows) = (&tiles.with_directions, &tiles.behind);
            add_products(square, rows, &mut out.updates, first, of_plane, scale, width);
        }
    }
    sync_cube();
}

/// Adds the products of this plane's rows of a block with those of another block.
#[cube]
fn add_rows_dots(
    rows: &Shared<[Piece]>,
    others: &Shared<[Piece]>,
    walk: &CubeWalk,
    results: &mut Results,
    #[comptime] width: usize,
) {
    #[unroll]
    for step in 0..comptime![width / STEP] {
        let mut left = LeftFactors::new();
        left_factors(rows, walk.of_plane, &mut left, step, 1usize, width);
        add_dot(&left, others, 0usize, results, 0usize, step, OWNED, 1usize, width);
    }
}

/// Replaces products by weights, and the gradients of weights by those of logits.
#[cube]
#[expect(clippy::too_many_arguments, reason = "the numbers of one block, and where it is")]
fn differentiate(
    inputs: &MmaInputs,
    sizes: &MmaSizes,
    products: &mut Results,
    gradients: &mut Results,
    rows: &RowStatistics,
    walk: &CubeWalk,
    column: usize,
    #[comptime] config: MmaConfig,
) {
    let scale = sizes.scale * comptime![LOG2_E];
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for n in 0..comptime![OWNED / ACROSS] {
        let mut biases = SumPair::new(0.0);
        if comptime![config.differences()] {
            #[unroll]
            for one in 0..2usize {
                let older = column + lane % 4 * 2 + comptime![n * 8 + one];
                let bias = difference(inputs, sizes, walk.plane, walk.own, older, config);
                biases.insert(one, bias);
            }
        }
        #[unroll]
        for eight in 0..2usize {
            let (product, of_weight) = (products.index(n)[eight], gradients.index(n)[eight]);
            let mut weights = SumPair::empty();
            let mut of_logits = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                let without = biases.extract(one) - rows.log[eight];
                let logit = fma(product.extract(one), scale, without);
                let weight = power_of_two(logit, comptime![config.native]);
                weights.insert(one, weight);
                of_logits.insert(one, weight * (of_weight.extract(one) - rows.share[eight]));
            }
            products.index_mut(n)[eight] = weights;
            gradients.index_mut(n)[eight] = of_logits;
        }
    }
}

/// Writes this plane's rows of a block to a square in shared memory.
#[cube]
fn store_square(results: &Results, square: &mut Shared<[Piece]>, first_row: usize) {
    #[unroll]
    for n in 0..comptime![OWNED / ACROSS] {
        store_result(results.index(n), square, first_row, n);
    }
}

/// Adds the gradients of logits up by row, and by column within this plane.
#[cube]
fn add_columns(
    gradients: &Results,
    own: &mut ReflectedRows,
    tiles: &mut ReflectedTiles,
    of_plane: usize,
) {
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for n in 0..comptime![OWNED / ACROSS] {
        #[unroll]
        for one in 0..2usize {
            let mut sum = f32::new(0.0);
            #[unroll]
            for eight in 0..2usize {
                let gradient = gradients.index(n)[eight].extract(one);
                own.decay[eight] += gradient;
                sum += gradient;
            }
            sum += plane_shuffle_xor(sum, 4);
            sum += plane_shuffle_xor(sum, 8);
            sum += plane_shuffle_xor(sum, 16);
            if lane < 4 {
                let column = lane * 2 + comptime![n * 8 + one];
                tiles.column_sums[of_plane * comptime![OWNED / 16] + column] = sum;
            }
        }
    }
}

/// Adds the sums of all planes to those of the cube, from the column `first` on.
#[cube]
fn write_column_sums(sums: &Shared<[f32]>, to: &mut Box<[f32]>, first: usize) {
    let unit = UNIT_POS as usize;
    if unit < OWNED {
        let mut sum = f32::new(0.0);
        #[unroll]
        for plane in 0..PLANES {
            sum += sums[unit + comptime![plane * OWNED]];
        }
        to[first + unit] += sum;
    }
}

/// Adds the product of a transposed square with the rows of a block to the sums of the cube: rows of this plane, from `first` on.
#[cube]
fn add_products(
    square: &Shared<[Piece]>,
    rows: &Shared<[Piece]>,
    to: &mut Box<[SumPair]>,
    first: usize,
    of_plane: usize,
    factor: f32,
    #[comptime] width: usize,
) {
    let mut sums = zeros(comptime![width / ACROSS], 1usize);
    let channels = comptime![Channels::all(width)];
    add_transposed_mix(square, of_plane, rows, 0usize, &mut sums, channels);
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for eight in 0..2usize {
        let row = first + of_plane + lane / 4 + comptime![eight * 8];
        #[unroll]
        for n in 0..comptime![width / ACROSS] {
            let at = row * comptime![width / 2] + lane % 4 + comptime![n * 4];
            to[at] = fma(sums.index(n)[eight], SumPair::new(factor), to[at]);
        }
    }
}
