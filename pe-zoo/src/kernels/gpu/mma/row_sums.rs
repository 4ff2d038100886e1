//! Sums over the columns that belong to rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::along::{PairGradients, ScoredPair};
use super::config::{ACROSS, MmaConfig};
use super::entries::EntryGradients;
use super::inputs::MmaSizes;
use super::row_table::RowTable;
use super::terms::TermSums;
use super::tile::{Results, SumPair, row_sum, zeros};
use super::walk::{CubeWalk, exists, write_rows};

/// Gradients that belong to rows.
#[derive(CubeType, CubeLaunch)]
pub(super) struct RowGradients {
    /// Gradients of the queries, `[B, T, H, D]`.
    pub(super) q: Box<[SumPair]>,
    /// Gradients of the slopes, `[plane, T]`.
    pub(super) slopes: Box<[f32]>,
    /// Gradients of the numbers of rows in a piecewise linear function, `[plane, T]`.
    pub(super) factors: Box<[f32]>,
    /// Gradients of the rows' running sums, `[plane, T]`.
    pub(super) decay: Box<[f32]>,
    /// Gradients of the tables of rows, `[plane, T, entries]`.
    pub(super) tables: Box<[f32]>,
    /// Gradients of a pair term's parameters and of the rows' state, `[plane, T, P + K]`.
    pub(super) terms: Box<[f32]>,
    /// Numbers of [`Carried`] at the right edges of blocks of 64 keys that are not far, `[plane, padded S / 64, padded T, 2]`.
    pub(super) edges: Box<[SumPair]>,
}

/// Sums over this unit's rows.
#[derive(CubeType)]
pub(super) struct OwnRowSums {
    pub(super) q: Results,
    slopes: Array<f32>,
    /// Times [`LOG2_E`](super::approximate::LOG2_E).
    pub(super) factors: Array<f32>,
    decay: Array<f32>,
    pub(super) entries: EntryGradients,
    pub(super) terms: TermSums,
}

#[cube]
impl OwnRowSums {
    pub(super) fn new(#[comptime] config: MmaConfig) -> OwnRowSums {
        let unit_rows = comptime![config.unit_rows()];
        let mut sums = OwnRowSums {
            q: zeros(comptime![config.width() / ACROSS], comptime![config.row_groups]),
            slopes: Array::new(unit_rows),
            factors: Array::new(unit_rows),
            decay: Array::new(unit_rows),
            entries: EntryGradients::new(),
            terms: TermSums::new(true, config),
        };
        #[unroll]
        for eight in 0..unit_rows {
            sums.slopes[eight] = f32::new(0.0);
            sums.factors[eight] = f32::new(0.0);
            sums.decay[eight] = f32::new(0.0);
        }
        sums
    }

    /// Adds up the gradients of logits by row. `row` is the index of this lane's first row among the columns, `column` that of
    /// its first column.
    pub(super) fn add_up(
        &mut self,
        gradients: &Results,
        row: usize,
        column: usize,
        #[comptime] config: MmaConfig,
    ) {
        let unit_rows = comptime![config.unit_rows()];
        let mut all = Array::<f32>::new(unit_rows);
        let mut by_column = Array::<f32>::new(unit_rows);
        #[unroll]
        for eight in 0..unit_rows {
            all[eight] = f32::new(0.0);
            by_column[eight] = f32::new(0.0);
            if comptime![config.slopes || config.decay || config.tables()] {
                #[unroll]
                for n in 0..comptime![config.gradient_block() / ACROSS] {
                    #[unroll]
                    for one in 0..2usize {
                        let gradient = gradients.index(n)[eight].extract(one);
                        all[eight] += gradient;
                        if comptime![config.slopes] {
                            let further = f32::cast_from(comptime![(n * 8 + one) as f32]);
                            by_column[eight] = fma(gradient, further, by_column[eight]);
                        }
                    }
                }
            }
        }
        #[unroll]
        for eight in 0..unit_rows {
            if comptime![config.slopes] {
                // The slope is multiplied by the negative distance.
                let distance = (row + eight * 8) as f32 - column as f32;
                self.slopes[eight] += by_column[eight] - distance * all[eight];
            }
            if comptime![config.decay] {
                self.decay[eight] += all[eight];
            }
            if comptime![config.tables()] {
                self.entries.add_far(all[eight], eight);
            }
        }
    }

    /// Adds the gradients of a slope of contextual positions at two adjacent columns.
    pub(super) fn add_positions(
        &mut self,
        scored: &ScoredPair,
        gradients: &PairGradients,
        #[comptime] eight: usize,
    ) {
        let products = scored.positions * gradients.biases;
        self.slopes[eight] += products.extract(0usize) + products.extract(1usize);
    }

    /// Writes the sums over all columns.
    pub(super) fn write(
        &mut self,
        place: &MmaSizes,
        walk: &CubeWalk,
        table: &RowTable,
        out: &mut RowGradients,
        #[comptime] config: MmaConfig,
    ) {
        let unit_rows = comptime![config.unit_rows()];
        let lane = UNIT_POS_PLANE as usize;
        let mut scales = Array::<f32>::new(unit_rows);
        let row = walk.first + walk.of_plane + lane / 4;
        let first = walk.plane * place.rows + row;
        #[unroll]
        for eight in 0..unit_rows {
            scales[eight] = place.scale;
            let at = first + eight * 8;
            let ends = lane % 4 == 0 && exists(row, place.rows, eight);
            if comptime![config.has_slopes()] {
                let sum = row_sum(self.slopes[eight]);
                if ends {
                    out.slopes[at] = sum;
                }
            }
            if comptime![config.pieces > 0] {
                let sum = row_sum(self.factors[eight]);
                if ends {
                    out.factors[at] = sum * comptime![std::f32::consts::LN_2];
                }
            }
            if comptime![config.decay] {
                let sum = row_sum(self.decay[eight]);
                if ends {
                    out.decay[at] = sum;
                }
            }
        }
        if comptime![config.term().is_some()] {
            let first_row = walk.first + walk.of_plane;
            self.terms.write_rows(&mut out.terms, place, walk.plane, first_row, config);
        }
        if comptime![config.tables()] {
            self.entries.finish(&mut out.tables, place, walk, table, config);
        }
        let (heads, rows) = (place.heads, place.rows);
        let width = comptime![config.head_dim];
        write_rows(&self.q, &mut out.q, heads, rows, walk, &scales, unit_rows, width);
    }
}
