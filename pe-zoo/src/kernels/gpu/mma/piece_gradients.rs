//! Gradients of a piecewise linear function of the distance over the row's position.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::columns::{ColumnBlocks, ColumnBlocksExpand};
use super::config::{ACROSS, MmaConfig, OWNED, UNITS};
use super::tile::{Results, SumPair};

#[cube]
impl ColumnBlocks {
    /// Adds the gradients by the numbers of this unit's rows, times `log2(e)`, from those of a block's logits.
    pub(super) fn add_factor_gradients(
        &self,
        gradients: &Results,
        sums: &mut Array<f32>,
        stage: usize,
        of_plane: usize,
        #[comptime] config: MmaConfig,
    ) {
        let columns = comptime![config.gradient_block()];
        #[unroll]
        for n in 0..comptime![columns / ACROSS] {
            #[unroll]
            for eight in 0..comptime![config.unit_rows()] {
                let numbers = self.by_distance(stage, of_plane, n, eight, columns, config);
                #[unroll]
                for one in 0..2usize {
                    let number = numbers.extract(one);
                    let rows = &self.pieces;
                    let piece = rows.pieces.piece(number * rows.factors[eight], config);
                    let slope = rows.pieces.slope(piece);
                    let gradient = gradients.index(n)[eight].extract(one);
                    sums[eight] = fma(gradient * slope, number, sums[eight]);
                }
            }
        }
    }
}

/// Gradients of the lines of all pieces, of which each unit has its own.
#[derive(CubeType)]
pub(super) struct LineSums {
    /// Gradients of slope and value at 0, `[piece, unit]`.
    sums: Shared<[SumPair]>,
}

#[cube]
impl LineSums {
    pub(super) fn new(#[comptime] config: MmaConfig) -> LineSums {
        let numbers = comptime![config.pieces * UNITS];
        let mut sums = LineSums {
            sums: Shared::new_slice(comptime![if config.pieces > 0 { numbers } else { 1 }]),
        };
        let mut at = UNIT_POS as usize;
        while at < numbers {
            sums.sums[at] = SumPair::new(0.0);
            at += UNITS;
        }
        sums
    }

    /// Adds the gradients of a block's logits, and replaces them by those of the numbers of their distances.
    pub(super) fn add(
        &mut self,
        gradients: &mut Results,
        blocks: &ColumnBlocks,
        stage: usize,
        of_plane: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.pieces > 0] {
            let rows = &blocks.pieces;
            #[unroll]
            for n in 0..comptime![OWNED / ACROSS] {
                #[unroll]
                for eight in 0..2usize {
                    let numbers = blocks.by_distance(stage, of_plane, n, eight, OWNED, config);
                    let of_logits = gradients.index(n)[eight];
                    let mut of_numbers = SumPair::empty();
                    #[unroll]
                    for one in 0..2usize {
                        let gradient = of_logits.extract(one);
                        let factor = rows.factors[eight];
                        let input = numbers.extract(one) * factor;
                        let piece = rows.pieces.piece(input, config);
                        let own = piece * UNITS + UNIT_POS as usize;
                        let mut of_line = SumPair::empty();
                        of_line.insert(0usize, gradient * input);
                        of_line.insert(1usize, gradient);
                        self.sums[own] += of_line;
                        let slope = rows.pieces.slope(piece);
                        of_numbers.insert(
                            one,
                            gradient * slope * factor * comptime![std::f32::consts::LN_2],
                        );
                    }
                    gradients.index_mut(n)[eight] = of_numbers;
                }
            }
        }
    }

    /// Writes the sums over all units to the `pieces` pairs from `first` on.
    pub(super) fn write(
        &self,
        out: &mut Box<[SumPair]>,
        first: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.pieces > 0] {
            sync_cube();
            let unit = UNIT_POS as usize;
            if unit < comptime![config.pieces] {
                let mut sum = SumPair::new(0.0);
                // Adjacent units read from different banks.
                let mut i = 0usize;
                while i < UNITS {
                    sum += self.sums[unit * UNITS + (unit + i) % UNITS];
                    i += 1;
                }
                out[first + unit] = sum;
            }
        }
    }
}
