//! Queries that change from block to block: the maps of a block subtract from a query its products with the block's directions, times the
//! block's updates.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::blocks::{Blocks, add_mix};
use super::config::{ACROSS, Channels, MmaConfig, OWNED, STEP};
use super::inputs::{MmaInputs, MmaSizes};
use super::tile::{
    FactorPair, LeftFactors, Piece, Results, SumPair, add_dot, left_factors, mix_factors, place,
    zeros,
};
use super::walk::{CubeWalk, exists};

/// Index of the directions in [`MapBlocks`].
pub(super) const DIRECTIONS: usize = 0;
/// Index of the updates.
pub(super) const UPDATES: usize = 1;

/// Directions and updates of blocks of columns; none if queries do not change.
#[derive(CubeType)]
pub(super) struct MapBlocks {
    pub(super) blocks: Sequence<Blocks>,
}

#[cube]
impl MapBlocks {
    pub(super) fn new(#[comptime] stages: usize, #[comptime] config: MmaConfig) -> MapBlocks {
        let mut blocks = Sequence::new();
        if comptime![config.reflects()] {
            let (width, transfer) = comptime![(config.width(), config.transfer_of_planes())];
            #[unroll]
            for _ in 0..2usize {
                blocks.push(Blocks::new(stages, OWNED, width, transfer));
            }
        }
        MapBlocks { blocks }
    }

    /// Begins to read the block whose first column is `column` of all columns of all planes.
    pub(super) fn fetch(
        &mut self,
        from: &Box<[Piece]>,
        column: usize,
        stage: usize,
        #[comptime] which: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.reflects()] {
            self.blocks.index_mut(which).fetch(from, column, stage);
        }
    }

    /// Writes the block that [`fetch`](Self::fetch) has read to shared memory.
    pub(super) fn store(
        &mut self,
        stage: usize,
        #[comptime] which: usize,
        #[comptime] config: MmaConfig,
    ) {
        if comptime![config.reflects()] {
            self.blocks.index_mut(which).store(stage);
        }
    }
}

/// Sums over channels of this plane's 16 rows, as they are between two blocks: queries, or their gradients.
#[derive(CubeType)]
pub(super) struct MovingRows {
    pub(super) rows: Results,
    #[cube(comptime)]
    width: usize,
}

#[cube]
impl MovingRows {
    /// Rows of zeros.
    pub(super) fn new(#[comptime] config: MmaConfig) -> MovingRows {
        let width = comptime![if config.reflects() { config.width() } else { 0 }];
        MovingRows { rows: zeros(comptime![width / ACROSS], 1usize), width }
    }

    /// Reads the rows of a block in shared memory, from `first_row` on.
    pub(super) fn read(&mut self, tile: &Shared<[Piece]>, first_row: usize) {
        let width = comptime![self.width];
        #[unroll]
        for step in 0..comptime![width / STEP] {
            let mut factors = LeftFactors::new();
            left_factors(tile, first_row, &mut factors, step, 1usize, width);
            let factor = factors.index(0usize);
            #[unroll]
            for quarter in 0..4usize {
                self.rows.index_mut(step * 2 + quarter / 2)[quarter % 2] =
                    SumPair::cast_from(factor[quarter]);
            }
        }
    }

    /// Adds the products with the rows of a block, whose first piece is `right[begin]`.
    pub(super) fn add_dots(&self, right: &Shared<[Piece]>, begin: usize, results: &mut Results) {
        let width = comptime![self.width];
        #[unroll]
        for step in 0..comptime![width / STEP] {
            let mut left = LeftFactors::new();
            mix_factors(&self.rows, &mut left, step, 1usize);
            add_dot(&left, right, begin, results, 0usize, step, OWNED, 1usize, width);
        }
    }

    /// Returns the negative products with the rows of a block.
    pub(super) fn negative_products(&self, right: &Shared<[Piece]>, begin: usize) -> Results {
        let mut products = zeros(comptime![OWNED / ACROSS], 1usize);
        self.add_dots(right, begin, &mut products);
        #[unroll]
        for n in 0..comptime![OWNED / ACROSS] {
            #[unroll]
            for eight in 0..2usize {
                let pair = products.index(n)[eight];
                products.index_mut(n)[eight] = pair * SumPair::new(-1.0);
            }
        }
        products
    }

    /// Subtracts the products with one block, times the rows of another, and returns the negative products.
    pub(super) fn subtract(
        &mut self,
        right: &Shared<[Piece]>,
        times: &Shared<[Piece]>,
        begin: usize,
        #[comptime] config: MmaConfig,
    ) -> Results {
        let products = self.negative_products(right, begin);
        let channels = comptime![Channels::all(config.width())];
        let transfer = comptime![config.transfer_of_planes()];
        add_mix(&products, times, begin, &mut self.rows, OWNED, 1usize, channels, transfer);
        products
    }

    /// Writes the rounded rows to memory that only this unit reads, from `first` on.
    pub(super) fn save(&self, to: &mut Box<[FactorPair]>, first: usize) {
        #[unroll]
        for n in 0..comptime![self.width / ACROSS] {
            #[unroll]
            for eight in 0..2usize {
                let at = first + UNIT_POS_PLANE as usize + comptime![(n * 2 + eight) * 32];
                to[at] = FactorPair::cast_from(self.rows.index(n)[eight]);
            }
        }
    }

    /// Reads the rows that [`save`](Self::save) has written.
    pub(super) fn load(&mut self, from: &Box<[FactorPair]>, first: usize) {
        #[unroll]
        for n in 0..comptime![self.width / ACROSS] {
            #[unroll]
            for eight in 0..2usize {
                let at = first + UNIT_POS_PLANE as usize + comptime![(n * 2 + eight) * 32];
                self.rows.index_mut(n)[eight] = SumPair::cast_from(from[at]);
            }
        }
    }

    /// Writes the rounded rows to a block in shared memory, from `first_row` on.
    pub(super) fn store(&self, tile: &mut Shared<[Piece]>, first_row: usize) {
        let lane = UNIT_POS_PLANE as usize;
        let width = comptime![self.width];
        let pairs = tile.with_vector_size_mut::<Const<2>>();
        #[unroll]
        for n in 0..comptime![width / ACROSS] {
            #[unroll]
            for eight in 0..2usize {
                let row = first_row + lane / 4 + comptime![eight * 8];
                pairs[place(row, comptime![n].runtime(), width) * 4 + lane % 4] =
                    FactorPair::cast_from(self.rows.index(n)[eight]);
            }
        }
    }
}

/// Index of this lane's product with the first of 64 columns, in the tables of the rows. Rows past the end have the table of the last
/// one.
#[cube]
fn table_of(place: &MmaSizes, plane: usize, row: usize) -> usize {
    (plane * place.rows + min(row, place.rows - 1)) * OWNED
}

/// Reads the products of this plane's rows with the columns of their block.
#[cube]
pub(super) fn read_products(
    products: &mut Results,
    inputs: &MmaInputs,
    place: &MmaSizes,
    walk: &CubeWalk,
) {
    let lane = UNIT_POS_PLANE as usize;
    #[unroll]
    for eight in 0..2usize {
        let row = walk.first + walk.of_plane + lane / 4 + eight * 8;
        let table = table_of(place, walk.plane, row) + lane % 4 * 2;
        #[unroll]
        for n in 0..comptime![OWNED / ACROSS] {
            let at = table + comptime![n * 8];
            let mut pair = SumPair::empty();
            pair.insert(0usize, inputs.tables[at]);
            pair.insert(1usize, inputs.tables[at + 1]);
            products.index_mut(n)[eight] = pair;
        }
    }
}

/// Writes gradients of these products times a factor.
#[cube]
pub(super) fn write_products(
    gradients: &Results,
    to: &mut Box<[f32]>,
    place: &MmaSizes,
    walk: &CubeWalk,
    factor: f32,
) {
    let lane = UNIT_POS_PLANE as usize;
    let row = walk.first + walk.of_plane + lane / 4;
    #[unroll]
    for eight in 0..2usize {
        if exists(row, place.rows, eight) {
            let table = table_of(place, walk.plane, row + eight * 8) + lane % 4 * 2;
            #[unroll]
            for n in 0..comptime![OWNED / ACROSS] {
                let pair = gradients.index(n)[eight];
                to[table + comptime![n * 8]] = pair.extract(0usize) * factor;
                to[table + comptime![n * 8 + 1]] = pair.extract(1usize) * factor;
            }
        }
    }
}
