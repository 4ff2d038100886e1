//! Gradients of the tables of rows.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::along::{PairGradients, ScoredPair};
use super::config::{AlongRow, MmaConfig};
use super::inputs::MmaSizes;
use super::pair::PairPlace;
use super::row_table::RowTable;
use super::tile::row_sum;
use super::walk::CubeWalk;

/// Gradients of the tables of this unit's two rows. No two lanes write to the same entry, and each entry is written once.
///
/// Contextual positions grow from the diagonal to the left. Entry `e` gets the gradients of the positions between `e - 1` and
/// `e + 1`, which follow one another, so a lane has the sum of one entry at a time: of those whose index is the lane's
/// quarter more than a multiple of four. Each distance below the last occurs once in a row. The pieces of a piecewise linear
/// function are distributed to the lanes like entries; a piece may have no position in it.
#[derive(CubeType)]
pub(super) struct EntryGradients {
    /// Entry whose sum this lane has.
    entry: Array<f32>,
    sums: Array<f32>,
    /// Sums of the values at 0 of pieces, whose slopes have the other sums.
    starts: Array<f32>,
    /// Sums over far columns and, by distance, over those at the last entry.
    far: Array<f32>,
}

/// Table of a row in the gradient.
#[derive(CubeType, Clone, Copy)]
struct RowEntries {
    first: usize,
    exists: bool,
}

#[cube]
fn row_entries(
    place: &MmaSizes,
    walk: &CubeWalk,
    #[comptime] eight: usize,
    #[comptime] config: MmaConfig,
) -> RowEntries {
    let row = walk.first + walk.of_plane + UNIT_POS_PLANE as usize / 4 + comptime![eight * 8];
    let line = walk.plane * place.rows + row;
    RowEntries { first: line * comptime![config.entries], exists: row < place.rows }
}

#[cube]
impl EntryGradients {
    pub(super) fn new() -> EntryGradients {
        let mut gradients = EntryGradients {
            entry: Array::new(2usize),
            sums: Array::new(2usize),
            starts: Array::new(2usize),
            far: Array::new(2usize),
        };
        #[unroll]
        for eight in 0..2usize {
            gradients.entry[eight] = f32::cast_from(UNIT_POS_PLANE % 4);
            gradients.sums[eight] = f32::new(0.0);
            gradients.starts[eight] = f32::new(0.0);
            gradients.far[eight] = f32::new(0.0);
        }
        gradients
    }

    /// Adds the gradients of two adjacent columns near the diagonal; all lanes of a plane must call it.
    #[expect(clippy::too_many_arguments, reason = "the numbers of one pair, and where it is")]
    pub(super) fn add(
        &mut self,
        out: &mut Box<[f32]>,
        scored: &ScoredPair,
        gradients: &PairGradients,
        place: &MmaSizes,
        walk: &CubeWalk,
        at: &PairPlace,
        #[comptime] eight: usize,
        #[comptime] config: MmaConfig,
    ) {
        let row = row_entries(place, walk, eight, config);
        if comptime![config.contextual()] {
            let right = UNIT_POS_PLANE / 4 * 4 + 3;
            #[unroll]
            for i in 0..8usize {
                let one = comptime![1 - i % 2];
                let lane = right - comptime![i as u32 / 2];
                let position = plane_shuffle(scored.positions.extract(one), lane);
                let gradient = plane_shuffle(gradients.biases.extract(one), lane);
                if comptime![config.along == AlongRow::ContextualPieces] {
                    let piece = plane_shuffle(scored.pieces.extract(one), lane);
                    self.move_to_piece(out, &row, piece, eight, config);
                    self.add_on_piece(piece, position, gradient, eight);
                } else {
                    self.move_to(out, &row, position, eight, config);
                    self.add_at(position, gradient, eight);
                }
            }
        } else {
            let last = comptime![config.entries - 1];
            #[unroll]
            for one in 0..2usize {
                let column = at.column + one;
                let gradient = gradients.biases.extract(one);
                if column <= at.own {
                    let away = at.own - column;
                    if away < last {
                        if row.exists {
                            out[row.first + away] = gradient;
                        }
                    } else {
                        self.far[eight] += gradient;
                    }
                }
            }
        }
    }

    /// Adds the gradients of far columns.
    pub(super) fn add_far(&mut self, gradient: f32, #[comptime] eight: usize) {
        self.far[eight] += gradient;
    }

    /// Writes the sum of this lane's entry if no further position reaches it.
    fn move_to(
        &mut self,
        out: &mut Box<[f32]>,
        row: &RowEntries,
        position: f32,
        #[comptime] eight: usize,
        #[comptime] config: MmaConfig,
    ) {
        if position >= self.entry[eight] + 1.0 {
            let entry = u32::cast_from(self.entry[eight]) as usize;
            if row.exists && entry < comptime![config.entries] {
                out[row.first + entry] = self.sums[eight];
            }
            self.sums[eight] = f32::new(0.0);
            self.entry[eight] += 4.0;
        }
    }

    fn add_at(&mut self, position: f32, gradient: f32, #[comptime] eight: usize) {
        let weight = max(f32::new(1.0) - (position - self.entry[eight]).abs(), f32::new(0.0));
        self.sums[eight] = fma(gradient, weight, self.sums[eight]);
    }

    /// Writes the sums of this lane's pieces before `piece`.
    fn move_to_piece(
        &mut self,
        out: &mut Box<[f32]>,
        row: &RowEntries,
        piece: f32,
        #[comptime] eight: usize,
        #[comptime] config: MmaConfig,
    ) {
        while self.entry[eight] < piece {
            let line = row.first + u32::cast_from(self.entry[eight]) as usize;
            if row.exists {
                out[line] = self.sums[eight];
                out[line + comptime![config.entries / 2]] = self.starts[eight];
            }
            self.sums[eight] = f32::new(0.0);
            self.starts[eight] = f32::new(0.0);
            self.entry[eight] += 4.0;
        }
    }

    #[allow(clippy::float_cmp, reason = "both are whole numbers")]
    fn add_on_piece(&mut self, piece: f32, position: f32, gradient: f32, #[comptime] eight: usize) {
        let own = select(piece == self.entry[eight], gradient, f32::new(0.0));
        self.sums[eight] = fma(own, position, self.sums[eight]);
        self.starts[eight] += own;
    }

    /// Writes the entries that are left. The table has the ends of pieces.
    pub(super) fn finish(
        &mut self,
        out: &mut Box<[f32]>,
        place: &MmaSizes,
        walk: &CubeWalk,
        table: &RowTable,
        #[comptime] config: MmaConfig,
    ) {
        let quarter = UNIT_POS_PLANE as usize % 4;
        #[unroll]
        for eight in 0..2usize {
            let row = row_entries(place, walk, eight, config);
            let far = row_sum(self.far[eight]);
            let entries = comptime![config.entries];
            let mut entry = quarter;
            let mut sum = f32::new(0.0);
            if comptime![config.along == AlongRow::ContextualPieces] {
                let last = table.piece(place.max_position, config);
                let last = f32::cast_from(u32::cast_from(last));
                self.move_to_piece(out, &row, last, eight, config);
                self.add_on_piece(last, place.max_position, far, eight);
                let end = f32::cast_from(comptime![config.entries as f32 / 2.0]);
                self.move_to_piece(out, &row, end, eight, config);
                entry = entries;
            } else if comptime![config.along == AlongRow::Contextual] {
                self.move_to(out, &row, place.max_position, eight, config);
                self.add_at(place.max_position, far, eight);
                entry = u32::cast_from(self.entry[eight]) as usize;
                sum = self.sums[eight];
            } else {
                // Distances that the row is too early for.
                let own = walk.own + walk.of_plane + UNIT_POS_PLANE as usize / 4 + eight * 8;
                entry += min(own + 1, comptime![config.entries - 1]);
            }
            while entry < entries {
                let mut gradient = sum;
                if comptime![config.along == AlongRow::QueryDistance] {
                    gradient = select(entry == comptime![config.entries - 1], far, sum);
                }
                if row.exists {
                    out[row.first + entry] = gradient;
                }
                sum = f32::new(0.0);
                entry += 4;
            }
        }
    }
}
