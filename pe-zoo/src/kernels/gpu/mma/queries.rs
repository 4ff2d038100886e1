//! Blocks of queries that a cube walks over, for the kernel that owns keys.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::biases::{DistanceNumbers, difference};
use super::blocks::Blocks;
use super::channels::ChannelFactors;
use super::config::MmaConfig;
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::pieces::{Pieces, row_factor};
use super::tile::SumPair;
use super::walk::CubeWalk;

/// Logarithm and share of two adjacent rows.
pub(super) type TwoStatistics = Vector<f32, Const<4>>;

/// Blocks of queries that the cube walks over. Of the next block, queries are read from the beginning of a step on and
/// gradients from its middle, so that only one of them takes registers, if they do.
#[derive(CubeType)]
pub(super) struct QueryBlocks {
    pub(super) queries: Blocks,
    pub(super) grads: Blocks,
    pub(super) channels: ChannelFactors,
    pub(super) statistics: Shared<[TwoStatistics]>,
    next: Array<TwoStatistics>,
    distances: DistanceNumbers,
    pub(super) pieces: Pieces,
    /// Numbers of two adjacent rows, by which those of distances are multiplied.
    factors: Shared<[SumPair]>,
    next_factors: Array<SumPair>,
}

#[cube]
impl QueryBlocks {
    pub(super) fn new(#[comptime] config: MmaConfig) -> QueryBlocks {
        let rows = comptime![config.query_block()];
        let transfer = comptime![config.transfer()];
        QueryBlocks {
            queries: Blocks::new(2usize, rows, comptime![config.width()], transfer),
            grads: Blocks::new(2usize, rows, comptime![config.value_width()], transfer),
            channels: ChannelFactors::new(rows, config),
            statistics: Shared::new_slice(rows),
            next: Array::new(1usize),
            distances: DistanceNumbers::new(config),
            pieces: Pieces::new(config),
            factors: Shared::new_slice(comptime![if config.pieces > 0 { rows } else { 1 }]),
            next_factors: Array::new(1usize),
        }
    }

    /// Begins to read queries and statistics of a block.
    pub(super) fn fetch_queries(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        upstream: &Upstream,
        walk: &CubeWalk,
        block: usize,
        #[comptime] config: MmaConfig,
    ) {
        let rows = comptime![config.query_block()];
        let at = walk.begin + block * rows;
        self.queries.fetch(&inputs.q, at, block % 2);
        let first = place.first_row + block * rows;
        self.channels.write(inputs, place, walk, first, block % 2, true, config);
        let unit = UNIT_POS as usize;
        if unit < comptime![rows / 2] {
            let mut two = TwoStatistics::empty();
            #[unroll]
            for one in 0..2usize {
                let statistics = upstream.statistics[at + unit * 2 + one];
                let mut log = statistics.extract(0usize);
                if comptime![config.differences()] {
                    let own = place.first_row + block * rows + unit * 2 + one;
                    log -= difference(inputs, place, walk.plane, own, walk.own, config);
                }
                two.insert(one * 2, log);
                two.insert(one * 2 + 1, statistics.extract(1usize));
            }
            self.next[0] = two;
            if comptime![config.pieces > 0] {
                let row = block * rows + unit * 2;
                let mut two = SumPair::empty();
                #[unroll]
                for one in 0..2usize {
                    two.insert(one, row_factor(inputs, place, row + one));
                }
                self.next_factors[0] = two;
            }
        }
        let (own, owned) = (place.first_row + block * rows, comptime![config.owned()]);
        self.distances.fetch(inputs, place, walk.plane, own, walk.own, owned, config);
    }

    /// Writes queries and statistics to shared memory.
    pub(super) fn store_queries(&mut self, stage: usize, #[comptime] config: MmaConfig) {
        let rows = comptime![config.query_block()];
        self.queries.store(stage);
        self.distances.store(stage, config);
        let unit = UNIT_POS as usize;
        if unit < comptime![rows / 2] {
            self.statistics[stage * comptime![rows / 2] + unit] = self.next[0];
            if comptime![config.pieces > 0] {
                self.factors[stage * comptime![rows / 2] + unit] = self.next_factors[0];
            }
        }
    }

    /// Bias in base 2 by the distance with this index, for one of two adjacent rows.
    pub(super) fn bias(
        &self,
        stage: usize,
        index: usize,
        rows: usize,
        #[comptime] one: usize,
        #[comptime] config: MmaConfig,
    ) -> f32 {
        let mut bias = self.distances.of(stage, index, config);
        if comptime![config.pieces > 0] {
            let first = stage * comptime![config.query_block() / 2];
            let factor = self.factors[first + rows].extract(one);
            bias = self.pieces.value(bias * factor, config);
        }
        bias
    }

    /// Begins to read gradients of a block.
    pub(super) fn fetch_grads(
        &mut self,
        upstream: &Upstream,
        walk: &CubeWalk,
        block: usize,
        #[comptime] config: MmaConfig,
    ) {
        let rows = comptime![config.query_block()];
        let at = walk.begin + block * rows;
        self.grads.fetch(&upstream.grad, at, block % 2);
    }

    /// Writes gradients to shared memory.
    pub(super) fn store_grads(&mut self, stage: usize) {
        self.grads.store(stage);
    }
}
