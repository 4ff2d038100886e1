//! Gradients of a block's logits, for kernels that own rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::power_of_two;
use super::biases::difference;
use super::columns::{ColumnBlocks, ColumnBlocksExpand};
use super::config::{ACROSS, MmaConfig};
use super::inputs::{MmaInputs, MmaSizes, Upstream};
use super::tile::{Results, SumPair};
use super::walk::CubeWalk;

/// Results of the forward pass for this unit's rows.
#[derive(CubeType)]
pub(super) struct RowStatistics {
    /// Binary logarithms of the softmax's denominators without the rows' biases.
    pub(super) log: Array<f32>,
    /// Dot products of output and gradient.
    pub(super) share: Array<f32>,
}

#[cube]
impl RowStatistics {
    pub(super) fn new(#[comptime] config: MmaConfig) -> RowStatistics {
        let unit_rows = comptime![config.unit_rows()];
        RowStatistics { log: Array::new(unit_rows), share: Array::new(unit_rows) }
    }

    /// Reads the statistics of the cube's rows, from `first` of all padded rows of all planes on.
    pub(super) fn read(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        upstream: &Upstream,
        walk: &CubeWalk,
        first: usize,
        #[comptime] config: MmaConfig,
    ) {
        #[unroll]
        for eight in 0..comptime![config.unit_rows()] {
            let row = walk.of_plane + UNIT_POS_PLANE as usize / 4 + eight * 8;
            let statistics = upstream.statistics[first + row];
            let mut log = statistics.extract(0usize);
            if comptime![config.differences()] {
                log -= difference(inputs, place, walk.plane, walk.own + row, walk.own, config);
            }
            self.log[eight] = log;
            self.share[eight] = statistics.extract(1usize);
        }
    }
}

#[cube]
impl ColumnBlocks {
    /// Replaces the gradients of weights by those of logits.
    #[expect(clippy::too_many_arguments, reason = "the numbers of one block, and where it is")]
    pub(super) fn logit_gradients(
        &self,
        logits: &Results,
        gradients: &mut Results,
        rows: &RowStatistics,
        stage: usize,
        of_plane: usize,
        scale: f32,
        #[comptime] columns: usize,
        #[comptime] config: MmaConfig,
    ) {
        #[unroll]
        for n in 0..comptime![columns / ACROSS] {
            #[unroll]
            for eight in 0..comptime![config.unit_rows()] {
                let bias = self.bias(stage, of_plane, n, eight, columns, config);
                let (logit, of_weight) = (logits.index(n)[eight], gradients.index(n)[eight]);
                let mut pair = SumPair::empty();
                #[unroll]
                for one in 0..2usize {
                    let mut without = -rows.log[eight];
                    if comptime![config.biased()] {
                        without = bias.extract(one) - rows.log[eight];
                    }
                    let logit = fma(logit.extract(one), scale, without);
                    let weight = power_of_two(logit, comptime![config.native]);
                    pair.insert(one, weight * (of_weight.extract(one) - rows.share[eight]));
                }
                gradients.index_mut(n)[eight] = pair;
            }
        }
    }
}
