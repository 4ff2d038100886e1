//! Products whose channels decay: `sum over c of q_ic k_jc exp(P_ic - P_jc)`, with `P` the running sums of the channels.
//!
//! Queries are packed relative to the first of their 16 rows, `q_i exp(P_i - P_a)`, and keys relative to the last of their 16
//! keys, `k_j exp(P_e - P_j)`. Between two such groups one factor is left for each channel, `exp(P_a - P_e)`, by which the right
//! factor of a product is multiplied after it is read from shared memory. All three are at most 1 where row `a` sees key `e`. The
//! pairs of other groups are near: their products are in the tables of the rows, see [`near`](super::near).

use burn::tensor::bf16;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::cmma::{MatrixIdent, MmaDefinition};
use burn_cubecl::cubecl::prelude::*;

use super::approximate::{LOG2_E, power_of_two};
use super::blocks::{self, OwnedRows};
use super::config::{ACROSS, Channels, MmaConfig, NEAR, PLANES, ROWS, STEP, UNITS};
use super::copies::Transfer;
use super::inputs::{MmaInputs, MmaSizes};
use super::tile::{
    FactorPair, LeftFactors, Piece, Results, SumPair, add_two, further, left_factors, mix_factors,
    place,
};
use super::walk::{CubeWalk, exists};

/// Factors of the channels between the groups that a cube's planes own and those of two blocks that it walks over, that of the
/// current step and the next one.
#[derive(CubeType)]
pub(super) struct ChannelFactors {
    /// `[stage, group of the block, plane of the cube, width]`.
    pairs: Shared<[FactorPair]>,
    #[cube(comptime)]
    rows: usize,
    #[cube(comptime)]
    width: usize,
    #[cube(comptime)]
    decays: bool,
}

#[cube]
impl ChannelFactors {
    /// Factors for blocks of `rows` rows or keys.
    pub(super) fn new(#[comptime] rows: usize, #[comptime] config: MmaConfig) -> ChannelFactors {
        let decays = comptime![config.decays_channels()];
        let width = comptime![config.width()];
        let pairs = comptime![if decays { 2 * rows / ROWS * PLANES * width / 2 } else { 1 }];
        ChannelFactors { pairs: Shared::new_slice(pairs), rows, width, decays }
    }

    /// Computes the factors of a block for the given stage, which nobody reads any more. `walked` is the index of the block's
    /// first row or key among the columns; `of_keys` tells whether the cube owns keys.
    #[expect(clippy::too_many_arguments, reason = "the operands, and what part of them")]
    pub(super) fn write(
        &mut self,
        inputs: &MmaInputs,
        sizes: &MmaSizes,
        walk: &CubeWalk,
        walked: usize,
        stage: usize,
        #[comptime] of_keys: bool,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![self.decays] {
            let pairs = comptime![self.width / 2];
            let of_block = comptime![self.rows / ROWS * PLANES * self.width / 2];
            let last = sizes.columns - 1;
            let first_sum = walk.plane * sizes.columns;
            let dim = comptime![config.head_dim];
            #[unroll]
            for copy in 0..comptime![of_block / UNITS] {
                let at = UNIT_POS as usize + copy * UNITS;
                // Channels past the last one are zeros.
                let channel = min(at % pairs * 2, dim - 2);
                let owned = walk.own + at / pairs % PLANES * ROWS;
                let other = walked + at / pairs / PLANES * ROWS;
                let row = if comptime![of_keys] { other } else { owned };
                let key = if comptime![of_keys] { owned } else { other };
                let row = first_sum + min(row, last);
                let key = first_sum + min(key + comptime![ROWS - 1], last);
                let apart = inputs.channel_sums[(row * dim + channel) / 2]
                    - inputs.channel_sums[(key * dim + channel) / 2];
                let mut factors = SumPair::empty();
                #[unroll]
                for one in 0..2usize {
                    let exponent = min(apart.extract(one), f32::new(0.0)) * comptime![LOG2_E];
                    factors.insert(one, power_of_two(exponent, comptime![config.native]));
                }
                self.pairs[stage * of_block + at] = FactorPair::cast_from(factors);
            }
        }
    }

    /// Index of the first pair for this unit's plane and a group of a block.
    fn first(&self, stage: usize, #[comptime] group: usize) -> usize {
        let pairs = comptime![self.width / 2];
        let groups = stage * comptime![self.rows / ROWS] + group;
        (groups * PLANES + UNIT_POS as usize / 32) * pairs
    }

    /// Adds the products of this plane's rows, from `first_row` on, with the rows of a stage of blocks, as
    /// [`OwnedRows::add_dots`] does.
    #[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
    pub(super) fn add_dots(
        &self,
        own: &OwnedRows,
        first_row: usize,
        right: &Shared<[Piece]>,
        stage: usize,
        results: &mut Results,
        #[comptime] resident: bool,
        #[comptime] columns: usize,
        #[comptime] groups: usize,
        #[comptime] channels: Channels,
    ) {
        if comptime![self.decays] {
            #[unroll]
            for step in 0..comptime![channels.steps()] {
                if comptime![resident] {
                    self.add_dot(&own.factors, right, stage, results, step, step);
                } else {
                    let (tile, width) = (&own.blocks.tile, comptime![channels.width]);
                    let mut left = LeftFactors::new();
                    left_factors(tile, first_row, &mut left, step, 1usize, width);
                    self.add_dot(&left, right, stage, results, 0usize, step);
                }
            }
        } else {
            own.add_dots(first_row, right, stage, results, resident, columns, groups, channels);
        }
    }

    /// Adds products over the channels of one step.
    fn add_dot(
        &self,
        left: &LeftFactors,
        tile: &Shared<[Piece]>,
        stage: usize,
        results: &mut Results,
        #[comptime] first: usize,
        #[comptime] step: usize,
    ) {
        let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
        let (rows, width) = comptime![(self.rows, self.width)];
        let lane = UNIT_POS_PLANE as usize;
        let begin = stage * comptime![rows * width / 8];
        let row = lane % 8 + lane / 16 * 8;
        let at = further(begin + place(row, lane / 8 % 2, width), comptime![step * 2], width);
        let lines = &tile[at..];
        #[unroll]
        for two in 0..comptime![rows / ROWS] {
            let pieces = &lines[comptime![two * 16 * width / 8]..];
            let mut both =
                multiply.load_matrix::<Piece, Const<2>>(pieces, MatrixIdent::B, 4usize, false);
            // Channels `2 (lane % 4)` and the next of this step, and those eight further.
            let of_lane = self.first(stage, two) + comptime![step * 8] + lane % 4;
            #[unroll]
            for quarter in 0..4usize {
                both[quarter] *= self.pairs[of_lane + comptime![quarter % 2 * 4]];
            }
            add_two(left, &both, results, first, two, 1usize);
        }
    }

    /// Adds the products of results with the rows of a stage of blocks, as [`add_mix`](blocks::add_mix) does.
    #[expect(clippy::too_many_arguments, reason = "two factors, and their sizes")]
    pub(super) fn add_mix(
        &self,
        weights: &Results,
        tile: &Shared<[Piece]>,
        stage: usize,
        results: &mut Results,
        #[comptime] groups: usize,
        #[comptime] channels: Channels,
        #[comptime] transfer: Transfer,
    ) {
        let (rows, width) = comptime![(self.rows, self.width)];
        let begin = stage * comptime![rows * width / 8];
        if comptime![self.decays] {
            let multiply = MmaDefinition::<bf16, bf16, f32>::new(ROWS, ACROSS, STEP);
            let lane = UNIT_POS_PLANE as usize;
            let first = begin + place(lane % 8 + lane / 8 % 2 * 8, lane / 16, width);
            #[unroll]
            for step in 0..comptime![rows / STEP] {
                let mut left = LeftFactors::new();
                mix_factors(weights, &mut left, step, 1usize);
                #[unroll]
                for two in 0..comptime![width / STEP] {
                    let lines = &tile[further(first, comptime![two * 2], width)..];
                    let pieces = &lines[comptime![step * 16 * width / 8]..];
                    let mut both = multiply.load_matrix::<Piece, Const<2>>(
                        pieces,
                        MatrixIdent::B,
                        4usize,
                        true,
                    );
                    // Channel `lane / 4` of these 16, and that eight further.
                    let of_lane = self.first(stage, step) + comptime![two * 8] + lane / 8;
                    #[unroll]
                    for quarter in 0..4usize {
                        let pair = self.pairs[of_lane + comptime![quarter / 2 * 4]];
                        let is_second = lane / 4 % 2 == 1;
                        let factor = select(is_second, pair.extract(1usize), pair.extract(0usize));
                        let mut factors = FactorPair::empty();
                        factors.insert(0usize, factor);
                        factors.insert(1usize, factor);
                        both[quarter] *= factors;
                    }
                    add_two(&left, &both, results, 0usize, two, 1usize);
                }
            }
        } else {
            blocks::add_mix(weights, tile, begin, results, rows, groups, channels, transfer);
        }
    }
}

/// First column of the near products of a group whose first row has the index `group` among the columns.
#[cube]
pub(super) fn first_near(group: usize) -> usize {
    (group + 1) / ROWS * ROWS
}

/// Whether pairs of 16 rows from `row` and 16 keys from `key` on are near; no row sees a key of a group further right.
#[cube]
fn is_near(row: usize, key: usize) -> bool {
    key + comptime![ROWS - 1] > row && key < row + ROWS
}

/// Index of this lane's near product, in the tables of the rows. Rows past the end have the table of the last one.
#[cube]
fn entry(sizes: &MmaSizes, plane: usize, row: usize, group: usize, key: usize) -> usize {
    (plane * sizes.rows + min(row, sizes.rows - 1)) * NEAR + key - first_near(group)
}

/// Replaces the products of the pairs that are near, of rows that the cube owns and columns from `column` on.
#[cube]
pub(super) fn replace_near(
    products: &mut Results,
    inputs: &MmaInputs,
    sizes: &MmaSizes,
    walk: &CubeWalk,
    column: usize,
    #[comptime] columns: usize,
) {
    let lane = UNIT_POS_PLANE as usize;
    let group = walk.own + walk.of_plane;
    #[unroll]
    for n in 0..comptime![columns / ACROSS] {
        if is_near(group, column + comptime![n / 2 * 16]) {
            #[unroll]
            for eight in 0..2usize {
                let row = walk.first + walk.of_plane + lane / 4 + eight * 8;
                let key = column + lane % 4 * 2 + comptime![n * 8];
                let at = entry(sizes, walk.plane, row, group, key);
                let mut pair = SumPair::empty();
                pair.insert(0usize, inputs.tables[at]);
                pair.insert(1usize, inputs.tables[at + 1]);
                products.index_mut(n)[eight] = pair;
            }
        }
    }
}

/// Writes the gradients of the products that are near to `out`, and leaves zeros in their place.
#[cube]
pub(super) fn take_near(
    gradients: &mut Results,
    out: &mut Box<[f32]>,
    sizes: &MmaSizes,
    walk: &CubeWalk,
    column: usize,
    #[comptime] columns: usize,
) {
    let lane = UNIT_POS_PLANE as usize;
    let group = walk.own + walk.of_plane;
    #[unroll]
    for n in 0..comptime![columns / ACROSS] {
        if is_near(group, column + comptime![n / 2 * 16]) {
            let row = walk.first + walk.of_plane + lane / 4;
            let key = column + lane % 4 * 2 + comptime![n * 8];
            #[unroll]
            for eight in 0..2usize {
                let pair = gradients.index(n)[eight];
                if exists(row, sizes.rows, eight) {
                    let at = entry(sizes, walk.plane, row + eight * 8, group, key);
                    out[at] = pair.extract(0usize);
                    out[at + 1] = pair.extract(1usize);
                }
                gradients.index_mut(n)[eight] = SumPair::new(0.0);
            }
        }
    }
}

/// Replaces the products of the pairs that are near, of keys that the cube owns and rows from `first` on.
#[cube]
pub(super) fn replace_near_rows(
    products: &mut Results,
    inputs: &MmaInputs,
    sizes: &MmaSizes,
    walk: &CubeWalk,
    first: usize,
    #[comptime] rows: usize,
) {
    let lane = UNIT_POS_PLANE as usize;
    let keys = walk.own + walk.of_plane;
    #[unroll]
    for n in 0..comptime![rows / ACROSS] {
        let group = sizes.first_row + first + comptime![n / 2 * 16];
        if is_near(group, keys) {
            #[unroll]
            for eight in 0..2usize {
                let key = keys + lane / 4 + eight * 8;
                let mut pair = SumPair::empty();
                #[unroll]
                for one in 0..2usize {
                    let row = first + lane % 4 * 2 + comptime![n * 8 + one];
                    pair.insert(one, inputs.tables[entry(sizes, walk.plane, row, group, key)]);
                }
                products.index_mut(n)[eight] = pair;
            }
        }
    }
}

/// Leaves zeros in place of the gradients of the products that are near, whose keys get theirs from the tables of the rows.
#[cube]
pub(super) fn drop_near_rows(
    gradients: &mut Results,
    sizes: &MmaSizes,
    walk: &CubeWalk,
    first: usize,
    #[comptime] rows: usize,
) {
    #[unroll]
    for n in 0..comptime![rows / ACROSS] {
        let group = sizes.first_row + first + comptime![n / 2 * 16];
        if is_near(group, walk.own + walk.of_plane) {
            #[unroll]
            for eight in 0..2usize {
                gradients.index_mut(n)[eight] = SumPair::new(0.0);
            }
        }
    }
}
