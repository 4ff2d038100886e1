//! Blocks of columns that a cube walks over, for kernels that own rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::biases::{ColumnBiases, DistanceNumbers};
use super::blocks::Blocks;
use super::channels::ChannelFactors;
use super::config::{ACROSS, MmaConfig};
use super::inputs::{MmaInputs, MmaSizes};
use super::moving::{DIRECTIONS, MapBlocks, UPDATES};
use super::pieces::RowPieces;
use super::tile::{Results, SumPair};
use super::walk::CubeWalk;

/// Keys, values and biases of the columns. Of the next block, keys are read from the beginning of a step on and values from
/// its middle, so that only one of them takes registers, if they do.
#[derive(CubeType)]
pub(super) struct ColumnBlocks {
    pub(super) keys: Blocks,
    pub(super) values: Blocks,
    pub(super) channels: ChannelFactors,
    pub(super) maps: MapBlocks,
    biases: ColumnBiases,
    distances: DistanceNumbers,
    pub(super) pieces: RowPieces,
}

/// Stage of a block of columns.
#[cube]
fn stage_of(block: usize) -> usize {
    (block + 1) % 2
}

#[cube]
impl ColumnBlocks {
    pub(super) fn new(#[comptime] columns: usize, #[comptime] config: MmaConfig) -> ColumnBlocks {
        let transfer = comptime![config.transfer()];
        ColumnBlocks {
            keys: Blocks::new(2usize, columns, comptime![config.width()], transfer),
            values: Blocks::new(2usize, columns, comptime![config.value_width()], transfer),
            channels: ChannelFactors::new(columns, config),
            maps: MapBlocks::new(2usize, config),
            biases: ColumnBiases::new(columns, config),
            distances: DistanceNumbers::new(config),
            pieces: RowPieces::new(config),
        }
    }

    /// Copies the first block of a walk to shared memory, and reads what belongs to its rows.
    /// [`sync_copies`](super::copies::sync_copies) must follow.
    pub(super) fn begin(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        walk: &CubeWalk,
        block: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        self.pieces.load(inputs, place, walk, config);
        let stage = stage_of(block);
        self.fetch_keys(inputs, place, walk, block, columns, config);
        self.store_keys(stage, columns, config);
        self.fetch_values(inputs, walk, block, columns, config);
        self.store_values(stage, config);
    }

    /// Begins to read keys and biases of a block.
    pub(super) fn fetch_keys(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        walk: &CubeWalk,
        block: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        let column = block * columns;
        let stage = stage_of(block);
        self.keys.fetch(&inputs.k, walk.begin + column, stage);
        self.maps.fetch(&inputs.directions, walk.begin + column, stage, DIRECTIONS, config);
        self.channels.write(inputs, place, walk, column, stage, false, config);
        self.biases.fetch(inputs, place, walk.plane, walk.own, column, columns, config);
        self.distances.fetch(inputs, place, walk.plane, walk.own, column, columns, config);
    }

    /// Writes keys and biases to shared memory.
    pub(super) fn store_keys(
        &mut self,
        stage: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        self.keys.store(stage);
        self.maps.store(stage, DIRECTIONS, config);
        self.biases.store(stage, columns, config);
        self.distances.store(stage, config);
    }

    /// Begins to read values of a block.
    pub(super) fn fetch_values(
        &mut self,
        inputs: &MmaInputs,
        walk: &CubeWalk,
        block: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        let row = walk.begin + block * columns;
        self.values.fetch(&inputs.values, row, stage_of(block));
        self.maps.fetch(&inputs.updates, row, stage_of(block), UPDATES, config);
    }

    /// Writes values to shared memory.
    pub(super) fn store_values(&mut self, stage: usize, #[comptime] config: MmaConfig) {
        self.values.store(stage);
        self.maps.store(stage, UPDATES, config);
    }

    /// Numbers by distance of this lane's columns `8 n + 2 (lane % 4)` and the next in one of its rows.
    pub(super) fn by_distance(
        &self,
        stage: usize,
        of_plane: usize,
        #[comptime] n: usize,
        #[comptime] eight: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) -> SumPair {
        let lane = UNIT_POS_PLANE as usize;
        let row = of_plane + lane / 4 + comptime![eight * 8 + columns - 1];
        let index = row - (lane % 4 * 2 + comptime![n * 8]);
        let mut numbers = SumPair::empty();
        numbers.insert(0usize, self.distances.of(stage, index, config));
        numbers.insert(1usize, self.distances.of(stage, index - 1, config));
        numbers
    }

    /// Biases in base 2, without the row's number, of this lane's columns `8 n + 2 (lane % 4)` and the next in one of its
    /// rows.
    pub(super) fn bias(
        &self,
        stage: usize,
        of_plane: usize,
        #[comptime] n: usize,
        #[comptime] eight: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) -> SumPair {
        let mut pair = self.biases.of(stage, n, columns, config);
        if comptime![config.tiles_by_distance()] {
            let mut numbers = self.by_distance(stage, of_plane, n, eight, columns, config);
            if comptime![config.pieces > 0] {
                #[unroll]
                for one in 0..2usize {
                    let value = self.pieces.value(numbers.extract(one), eight, config);
                    numbers.insert(one, value);
                }
            }
            pair += numbers;
        }
        pair
    }

    /// Converts products to logits in base 2, if they have biases; those of rows' tables are `far`.
    pub(super) fn add_biases(
        &self,
        scores: &mut Results,
        far: &Array<f32>,
        stage: usize,
        of_plane: usize,
        scale: f32,
        #[comptime] config: MmaConfig,
    ) {
        let columns = comptime![config.block()];
        if comptime![config.has_logits()] {
            #[unroll]
            for n in 0..comptime![columns / ACROSS] {
                #[unroll]
                for eight in 0..comptime![config.unit_rows()] {
                    let bias = if comptime![config.biased()] {
                        self.bias(stage, of_plane, n, eight, columns, config)
                    } else {
                        SumPair::new(far[eight])
                    };
                    let pair = scores.index(n)[eight];
                    scores.index_mut(n)[eight] = fma(pair, SumPair::new(scale), bias);
                }
            }
        }
    }
}
