//! A piecewise linear function of the distance over the row's position: the bias of a perceptron of one input (FIRE).
//!
//! The input of the function is a number of the distance times a number of the row. All rows of a head have the same pieces.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::LOG2_E;
use super::config::MmaConfig;
use super::inputs::{MmaInputs, MmaSizes};
use super::tile::SumPair;
use super::walk::CubeWalk;

/// Ends of all pieces but the last, ascending, and infinity after them, in shared memory.
#[derive(CubeType)]
pub(super) struct PieceEnds {
    ends: Shared<[f32]>,
}

#[cube]
impl PieceEnds {
    pub(super) fn new(#[comptime] config: MmaConfig) -> PieceEnds {
        PieceEnds { ends: Shared::new_slice(comptime![config.piece_places()]) }
    }

    /// Copies the ends. A barrier must follow.
    pub(super) fn load(&mut self, inputs: &MmaInputs, #[comptime] config: MmaConfig) {
        let unit = UNIT_POS as usize;
        if unit < comptime![config.piece_places()] {
            let mut end = f32::new(f32::INFINITY);
            if unit + 1 < comptime![config.all_pieces()] {
                end = inputs.piece_ends[unit];
            }
            self.ends[unit] = end;
        }
    }

    /// Index of the piece of an input: the number of ends below it.
    pub(super) fn piece(&self, input: f32, #[comptime] config: MmaConfig) -> usize {
        let mut piece = 0usize.runtime();
        let halvings = comptime![config.piece_places().ilog2() as usize];
        #[unroll]
        for i in 0..halvings {
            let half = comptime![config.piece_places() >> (i + 1)];
            if self.ends[piece + comptime![half - 1]] < input {
                piece += half;
            }
        }
        piece
    }
}

/// The function of a head, in shared memory.
#[derive(CubeType)]
pub(super) struct Pieces {
    ends: PieceEnds,
    /// Slope and value at 0 of each piece, in base 2.
    lines: Shared<[SumPair]>,
}

#[cube]
impl Pieces {
    pub(super) fn new(#[comptime] config: MmaConfig) -> Pieces {
        let places = comptime![config.piece_places()];
        Pieces { ends: PieceEnds::new(config), lines: Shared::new_slice(places) }
    }

    /// Copies the function of a head. A barrier must follow.
    pub(super) fn load(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        plane: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.pieces > 0] {
            let pieces = comptime![config.pieces];
            let unit = UNIT_POS as usize;
            self.ends.load(inputs, config);
            if unit < pieces {
                let slope = plane % place.heads * comptime![2 * config.pieces] + unit;
                let mut line = SumPair::empty();
                line.insert(0usize, inputs.piece_lines[slope] * comptime![LOG2_E]);
                line.insert(1usize, inputs.piece_lines[slope + pieces] * comptime![LOG2_E]);
                self.lines[unit] = line;
            }
        }
    }

    /// Index of the piece of an input.
    pub(super) fn piece(&self, input: f32, #[comptime] config: MmaConfig) -> usize {
        self.ends.piece(input, config)
    }

    /// Slope of a piece in base 2.
    pub(super) fn slope(&self, piece: usize) -> f32 {
        self.lines[piece].extract(0usize)
    }

    /// Value at an input in base 2.
    pub(super) fn value(&self, input: f32, #[comptime] config: MmaConfig) -> f32 {
        let line = self.lines[self.piece(input, config)];
        fma(line.extract(0usize), input, line.extract(1usize))
    }
}

/// The function for this unit's rows.
#[derive(CubeType)]
pub(super) struct RowPieces {
    pub(super) pieces: Pieces,
    /// Numbers of the rows, by which those of distances are multiplied.
    pub(super) factors: Array<f32>,
}

/// Number of a row, or of the last one for rows past the end.
#[cube]
pub(super) fn row_factor(inputs: &MmaInputs, place: &MmaSizes, row: usize) -> f32 {
    inputs.row_factors[min(row, place.rows - 1)]
}

#[cube]
impl RowPieces {
    pub(super) fn new(#[comptime] config: MmaConfig) -> RowPieces {
        RowPieces {
            pieces: Pieces::new(config),
            factors: Array::new(comptime![config.unit_rows()]),
        }
    }

    /// Reads the function and the numbers of the rows. A barrier must follow.
    pub(super) fn load(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        walk: &CubeWalk,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.pieces > 0] {
            self.pieces.load(inputs, place, walk.plane, config);
            let row = walk.first + walk.of_plane + UNIT_POS_PLANE as usize / 4;
            #[unroll]
            for eight in 0..comptime![config.unit_rows()] {
                self.factors[eight] = row_factor(inputs, place, row + eight * 8);
            }
        }
    }

    /// Value in base 2 at a number of the distance.
    pub(super) fn value(
        &self,
        number: f32,
        #[comptime] eight: usize,
        #[comptime] config: MmaConfig,
    ) -> f32 {
        self.pieces.value(number * self.factors[eight], config)
    }
}
