//! What a kernel is compiled for.

/// How a block of logits is dealt out to the units of a cube.
///
/// A unit owns `rows_each` rows and `columns_each` neighbouring columns of each; `units_x` units share
/// a row, so that sums along a row cross few units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Tile {
    pub(super) units_x: usize,
    pub(super) units_y: usize,
    pub(super) rows_each: usize,
    pub(super) columns_each: usize,
}

impl Tile {
    pub(super) const fn rows(&self) -> usize {
        self.units_y * self.rows_each
    }

    pub(super) const fn columns(&self) -> usize {
        self.units_x * self.columns_each
    }

    pub(super) const fn units(&self) -> usize {
        self.units_x * self.units_y
    }

    /// Channels of a row that one unit has, every `units_x`-th.
    pub(super) const fn channels_each(&self, width: usize) -> usize {
        width.div_ceil(self.units_x)
    }
}

/// Largest first; the last one fits everywhere.
const TILES: [Tile; 3] = [
    Tile { units_x: 16, units_y: 16, rows_each: 4, columns_each: 4 },
    Tile { units_x: 8, units_y: 16, rows_each: 2, columns_each: 4 },
    Tile { units_x: 4, units_y: 8, rows_each: 2, columns_each: 4 },
];

/// What fits everywhere.
pub(super) const SMALLEST: Tile = TILES[TILES.len() - 1];

/// What a contextual position is handed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Function {
    /// There are no contextual positions.
    Absent,
    /// Linear between the entries of a table.
    Table,
    /// A multiple of it.
    Slope,
    /// A perceptron with `max(x, 0)`.
    Relu,
    /// A perceptron with `x Phi(x)`.
    Gelu,
}

impl Function {
    pub(super) const fn present(self) -> bool {
        !matches!(self, Self::Absent)
    }

    pub(super) const fn perceptron(self) -> bool {
        matches!(self, Self::Relu | Self::Gelu)
    }
}

/// Everything that is known when a kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each of them leaves code out of the kernel")]
pub(super) struct Form {
    pub(super) tile: Tile,
    pub(super) head_dim: usize,
    pub(super) value_dim: usize,
    /// Products of queries and keys are part of the logits.
    pub(super) content: bool,
    pub(super) slopes: bool,
    pub(super) distance: bool,
    pub(super) query_distance: bool,
    /// Positions count up by one.
    pub(super) contiguous: bool,
    pub(super) decay: bool,
    pub(super) finer_decay: bool,
    pub(super) dense: bool,
    pub(super) function: Function,
    /// Gates do not come from the content.
    pub(super) own_gates: bool,
    /// Products of a query with the table, or with a perceptron's second layer.
    pub(super) entries: usize,
    /// Weights are shares of sticks, not a softmax.
    pub(super) sticks: bool,
    /// A token does not attend to itself.
    pub(super) strict: bool,
    /// The own token gets what is left of the stick.
    pub(super) own_token: bool,
}

impl Form {
    /// Hidden units of the perceptron.
    pub(super) const fn hidden(&self) -> usize {
        if self.function.perceptron() { self.entries - 1 } else { 0 }
    }

    /// Products with a table are kept in shared memory.
    pub(super) const fn has_products(&self) -> bool {
        matches!(self.function, Function::Table) || self.function.perceptron()
    }

    /// Numbers of shared memory that the forward kernel needs.
    fn forward_numbers(&self, tile: Tile) -> usize {
        tile.rows() * (self.head_dim + 1 + tile.columns() + 1) + self.common_numbers(tile)
    }

    /// Numbers of shared memory that the backward kernel needs.
    fn backward_numbers(&self, tile: Tile) -> usize {
        let tiles = if self.has_products() { 3 } else { 2 };
        tile.rows() * (self.head_dim + self.value_dim + 2 + tiles * (tile.columns() + 1))
            + self.common_numbers(tile)
    }

    /// Keys, values and gate keys; sums along rows; products.
    fn common_numbers(&self, tile: Tile) -> usize {
        let key_kinds = if self.own_gates { 2 } else { 1 };
        let products = if self.has_products() { self.entries } else { 1 };
        tile.columns() * (key_kinds * (self.head_dim + 1) + self.value_dim + 1)
            + tile.rows() * (2 * tile.units_x + 1 + products)
            + 2
    }

    fn fitting(
        mut self,
        rows: usize,
        room: Room,
        numbers: fn(&Self, Tile) -> usize,
    ) -> Option<Self> {
        let smallest = TILES.len() - 1;
        self.tile = TILES.into_iter().enumerate().find_map(|(at, tile)| {
            let fits = numbers(&self, tile) * size_of::<f32>() <= room.shared_bytes
                && tile.units() <= room.units;
            let useful = at == smallest || rows > tile.rows() / 2;
            (fits && useful).then_some(tile)
        })?;
        Some(self)
    }

    /// With the largest tile of the forward kernel that a device has room for; `None` if there is
    /// none.
    pub(super) fn forward(self, rows: usize, room: Room) -> Option<Self> {
        self.fitting(rows, room, Self::forward_numbers)
    }

    /// As [`forward`](Self::forward), for the backward kernel.
    pub(super) fn backward(self, rows: usize, room: Room) -> Option<Self> {
        self.fitting(rows, room, Self::backward_numbers)
    }

    /// Numbers per row in the buffer of gradients that belong to a row.
    pub(super) const fn row_grads(&self, query_entries: usize) -> usize {
        FIXED + 2 * self.hidden() + self.entries + query_entries
    }
}

/// Columns of the gradients per row: slope, contextual slope, decay, entries past a table's end;
/// then the hidden layer, the products with the table, and those with the distance table.
pub(super) const FIXED: usize = 4;
pub(super) const SLOPE: usize = 0;
pub(super) const CONTEXTUAL_SLOPE: usize = 1;
pub(super) const DECAY: usize = 2;
pub(super) const FAR: usize = 3;

/// What a device has for one cube.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) shared_bytes: usize,
    pub(super) units: usize,
}
