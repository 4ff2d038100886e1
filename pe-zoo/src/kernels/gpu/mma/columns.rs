//! Blocks of columns that a cube walks over, for kernels that own rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::biases::{ColumnBiases, DistanceBiases};
use super::blocks::Blocks;
use super::config::{ACROSS, MmaConfig};
use super::inputs::{MmaInputs, MmaSizes};
use super::tile::{Results, SumPair};
use super::walk::CubeWalk;

/// Keys, values and biases of the columns. Of the next block, keys are read during the first half of a step and values
/// during the second, so that only one of them takes registers.
#[derive(CubeType)]
pub(super) struct ColumnBlocks {
    pub(super) keys: Blocks,
    pub(super) values: Blocks,
    biases: ColumnBiases,
    distances: DistanceBiases,
}

#[cube]
impl ColumnBlocks {
    pub(super) fn new(#[comptime] columns: usize, #[comptime] config: MmaConfig) -> ColumnBlocks {
        ColumnBlocks {
            keys: Blocks::new(2usize, columns, comptime![config.width()]),
            values: Blocks::new(2usize, columns, comptime![config.value_width()]),
            biases: ColumnBiases::new(columns, config),
            distances: DistanceBiases::new(config),
        }
    }

    /// Copies the first block to shared memory. A barrier must follow.
    pub(super) fn begin(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        walk: &CubeWalk,
        block: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        let stage = (block + 1) % 2;
        self.fetch_keys(inputs, place, walk, block, columns, config);
        self.store_keys(stage, columns, config);
        self.fetch_values(inputs, walk, block, columns, config);
        self.store_values(stage, columns, config);
    }

    /// Reads keys and biases of a block into registers.
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
        self.keys.fetch(&inputs.k, walk.begin + column, columns, comptime![config.width()]);
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
        self.keys.store(stage, columns, comptime![config.width()]);
        self.biases.store(stage, columns, config);
        self.distances.store(stage, config);
    }

    /// Reads values of a block into registers.
    pub(super) fn fetch_values(
        &mut self,
        inputs: &MmaInputs,
        walk: &CubeWalk,
        block: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        let row = walk.begin + block * columns;
        self.values.fetch(&inputs.values, row, columns, comptime![config.value_width()]);
    }

    /// Writes values to shared memory.
    pub(super) fn store_values(
        &mut self,
        stage: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        self.values.store(stage, columns, comptime![config.value_width()]);
    }

    /// Biases in base 2, without the row's number, of this lane's columns `8 n + 2 (lane % 4)` and the next in one of its
    /// two rows.
    pub(super) fn bias(
        &self,
        stage: usize,
        of_plane: usize,
        #[comptime] n: usize,
        #[comptime] half: usize,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) -> SumPair {
        let mut pair = self.biases.of(stage, n, columns, config);
        if comptime![config.distance] {
            let lane = UNIT_POS_PLANE as usize;
            let row = of_plane + lane / 4 + comptime![half * 8 + columns - 1];
            let index = row - (lane % 4 * 2 + comptime![n * 8]);
            let mut by_distance = SumPair::empty();
            by_distance.insert(0usize, self.distances.of(stage, index, config));
            by_distance.insert(1usize, self.distances.of(stage, index - 1, config));
            pair += by_distance;
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
                for half in 0..2usize {
                    let mut bias = SumPair::new(far[half]);
                    if comptime![config.biased()] {
                        bias = self.bias(stage, of_plane, n, half, columns, config);
                    }
                    let pair = scores.index(n)[half];
                    scores.index_mut(n)[half] = fma(pair, SumPair::new(scale), bias);
                }
            }
        }
    }
}
