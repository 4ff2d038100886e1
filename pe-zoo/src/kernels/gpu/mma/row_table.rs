//! Tables of rows: the products of each query with vectors by contextual position or by distance.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::LOG2_E;
use super::config::{AlongRow, MmaConfig, OWNED, UNITS};
use super::inputs::{MmaInputs, MmaSizes};
use super::pair::PairPlace;
use super::pieces::PieceEnds;

/// Tables of a cube's rows in shared memory.
#[derive(CubeType)]
pub(super) struct RowTable {
    entries: Shared<[f32]>,
    /// Ends of the pieces, if the tables are those of piecewise linear functions.
    ends: PieceEnds,
}

/// First entry of the table of a row among all rows of a plane, of which rows past the end have that of the last one.
#[cube]
fn first_entry(place: &MmaSizes, plane: usize, row: usize, #[comptime] entries: usize) -> usize {
    (plane * place.rows + min(row, place.rows - 1)) * entries
}

#[cube]
impl RowTable {
    pub(super) fn new(#[comptime] config: MmaConfig) -> RowTable {
        let numbers = comptime![if config.tables() { OWNED * config.table_stride() } else { 1 }];
        RowTable { entries: Shared::new_slice(numbers), ends: PieceEnds::new(config) }
    }

    /// Copies the tables of 64 rows from `row` on. A barrier must follow.
    pub(super) fn load(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        plane: usize,
        row: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.along == AlongRow::ContextualPieces] {
            self.ends.load(inputs, config);
        }
        if comptime![config.tables()] {
            let entries = comptime![config.entries];
            let mut at = UNIT_POS as usize;
            while at < comptime![OWNED * config.entries] {
                let (of_cube, entry) = (at / entries, at % entries);
                let first = first_entry(place, plane, row + of_cube, entries);
                self.entries[of_cube * comptime![config.table_stride()] + entry] =
                    inputs.tables[first + entry];
                at += UNITS;
            }
        }
    }

    /// Interpolates the table of a row of the cube at a contextual position; returns the bias and its derivative.
    pub(super) fn interpolate(
        &self,
        row: usize,
        position: f32,
        #[comptime] config: MmaConfig,
    ) -> (f32, f32) {
        let whole = position.floor();
        let fraction = position - whole;
        let last = comptime![config.entries - 1];
        let start = row * comptime![config.table_stride()];
        let entry = min(u32::cast_from(whole) as usize, last);
        let low = self.entries[start + entry];
        let rise = self.entries[start + min(entry + 1, last)] - low;
        // At an integer position the derivative is defined as 0, as in the tensor code.
        (fma(rise, fraction, low), select(fraction > f32::new(0.0), rise, f32::new(0.0)))
    }

    /// Index of the piece of a contextual position.
    pub(super) fn piece(&self, position: f32, #[comptime] config: MmaConfig) -> usize {
        self.ends.piece(position, config)
    }

    /// Bias at a contextual position in a piece, and its derivative.
    pub(super) fn on_piece(
        &self,
        row: usize,
        piece: usize,
        position: f32,
        #[comptime] config: MmaConfig,
    ) -> (f32, f32) {
        let line = row * comptime![config.table_stride()] + piece;
        let rise = self.entries[line];
        (fma(rise, position, self.entries[line + comptime![config.entries / 2]]), rise)
    }

    /// Bias at the distance of a column from its row, 0 where the row does not see the column.
    pub(super) fn at_distance(
        &self,
        at: &PairPlace,
        #[comptime] one: usize,
        #[comptime] config: MmaConfig,
    ) -> f32 {
        let away = max(at.own, at.column + one) - (at.column + one);
        let entry = min(away, comptime![config.entries - 1]);
        self.entries[at.row * comptime![config.table_stride()] + entry]
    }
}

/// Bias in base 2 of a row's far columns: at the largest position, or of the last entry.
#[cube]
pub(super) fn far_bias(
    inputs: &MmaInputs,
    place: &MmaSizes,
    plane: usize,
    row: usize,
    #[comptime] config: MmaConfig,
) -> f32 {
    let mut bias = f32::new(0.0);
    if comptime![config.tables()] {
        let last = comptime![config.entries - 1];
        let first = first_entry(place, plane, row, comptime![config.entries]);
        if comptime![config.along == AlongRow::Contextual] {
            let whole = place.max_position.floor();
            let entry = min(u32::cast_from(whole) as usize, last);
            let low = inputs.tables[first + entry];
            let rise = inputs.tables[first + min(entry + 1, last)] - low;
            bias = fma(rise, place.max_position - whole, low);
        } else if comptime![config.along == AlongRow::ContextualPieces] {
            let pieces = comptime![config.entries / 2];
            let mut piece = first;
            for end in 0..comptime![config.entries / 2 - 1] {
                if inputs.piece_ends[end] < place.max_position {
                    piece += 1;
                }
            }
            bias = fma(inputs.tables[piece], place.max_position, inputs.tables[piece + pieces]);
        } else {
            bias = inputs.tables[first + last];
        }
    }
    bias * comptime![LOG2_E]
}
