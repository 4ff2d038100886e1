//! Compile-time configuration of the kernels.

use super::cores::{self, Rounded};

/// Division of a block of logits among the units of a cube.
///
/// A unit processes `rows_each` rows and `columns_each` adjacent columns of each; `units_x` units
/// share a row, so that sums along a row involve few units.
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

    /// Number of channels of a row that one unit processes, every `units_x`-th.
    pub(super) const fn channels_each(&self, width: usize) -> usize {
        width.div_ceil(self.units_x)
    }
}

/// Available tiles, largest first; the last one fits on every device.
const TILES: [Tile; 3] = [
    Tile { units_x: 16, units_y: 16, rows_each: 4, columns_each: 4 },
    Tile { units_x: 8, units_y: 16, rows_each: 2, columns_each: 4 },
    Tile { units_x: 4, units_y: 8, rows_each: 2, columns_each: 4 },
];

/// Smallest tile, which fits on every device.
pub(super) const SMALLEST: Tile = TILES[TILES.len() - 1];

/// Function of the contextual position that gives the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Function {
    /// The modifier has no contextual positions.
    Absent,
    /// Linear interpolation between the entries of a table.
    Table,
    /// Product with a slope per head.
    Slope,
    /// Perceptron with the activation `max(x, 0)`.
    Relu,
    /// Perceptron with the activation `x Phi(x)`.
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

/// Everything that is fixed when a kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each of them leaves code out of the kernel")]
pub(super) struct KernelConfig {
    pub(super) tile: Tile,
    pub(super) head_dim: usize,
    pub(super) value_dim: usize,
    /// Whether products of queries and keys are part of the logits.
    pub(super) content: bool,
    pub(super) slopes: bool,
    pub(super) distance: bool,
    pub(super) query_distance: bool,
    /// Whether positions count up by one.
    pub(super) contiguous: bool,
    pub(super) decay: bool,
    pub(super) decay_residual: bool,
    pub(super) dense: bool,
    pub(super) function: Function,
    /// Whether gates do not come from the content.
    pub(super) own_gates: bool,
    /// Number of products of a query with the table, or with a perceptron's second layer.
    pub(super) entries: usize,
    /// Whether weights come from stick-breaking and not from a softmax.
    pub(super) sticks: bool,
    /// Whether a token does not attend to itself.
    pub(super) strict: bool,
    /// Whether the row's own token receives the remainder of the stick.
    pub(super) own_token: bool,
    /// Format to which factors are rounded for tensor cores; `None` without tensor cores.
    pub(super) rounded: Option<Rounded>,
}

impl KernelConfig {
    /// Whether tensor cores compute the products.
    pub(super) const fn cores(&self) -> bool {
        self.rounded.is_some()
    }

    /// Inner dimension of one step of the tensor cores.
    pub(super) const fn step(&self) -> usize {
        match self.rounded {
            Some(rounded) => rounded.inner,
            None => cores::FRAGMENT,
        }
    }

    /// Number of hidden units of the perceptron.
    pub(super) const fn hidden(&self) -> usize {
        if self.function.perceptron() { self.entries - 1 } else { 0 }
    }

    /// Whether products with a table are kept in shared memory.
    pub(super) const fn has_products(&self) -> bool {
        matches!(self.function, Function::Table) || self.function.perceptron()
    }

    /// Whether gradients of logits are also summed elementwise, not only used in products.
    pub(super) const fn exact_grads(&self) -> bool {
        !self.cores() || self.distance || self.query_distance || self.decay || self.has_products()
    }

    /// Whether the backward pass recomputes the sums that it subtracts from. With rounded factors,
    /// the output does not reproduce them with enough digits.
    pub(super) const fn own_whole(&self) -> bool {
        self.sticks && self.cores()
    }

    /// Size in bytes of a block of rows that is a factor of a product.
    const fn tile_bytes(&self, rows: usize, width: usize) -> usize {
        match self.rounded {
            Some(Rounded { bytes, .. }) => rows * cores::stride(width) * bytes + cores::ALIGNMENT,
            None => rows * (width + 1) * size_of::<f32>(),
        }
    }

    /// Size of the result buffer of the tensor cores, in numbers.
    pub(super) fn stage(&self) -> usize {
        if !self.cores() {
            return 1;
        }
        let widest = self.tile.columns().max(self.head_dim).max(self.value_dim);
        self.tile.rows().max(self.tile.columns()) * cores::stride(widest)
    }

    /// Bytes of shared memory that the forward kernel needs.
    fn forward_bytes(&self) -> usize {
        let rows = self.tile.rows();
        self.tile_bytes(rows, self.head_dim)
            + self.tile_bytes(rows, self.tile.columns())
            + self.common_bytes()
    }

    /// Bytes of shared memory that the backward kernel needs.
    fn backward_bytes(&self) -> usize {
        let (rows, columns) = (self.tile.rows(), self.tile.columns());
        let exact = rows * (columns + 1) * size_of::<f32>();
        self.tile_bytes(rows, self.head_dim)
            + self.tile_bytes(rows, self.value_dim)
            + 2 * self.tile_bytes(rows, columns)
            + if self.cores() && self.exact_grads() { exact } else { 0 }
            + if self.has_products() { exact } else { 0 }
            + self.common_bytes()
    }

    /// Bytes needed by both kernels: keys, values and gate keys, results of tensor cores, sums
    /// along rows, products, and dummies for absent ones.
    fn common_bytes(&self) -> usize {
        let columns = self.tile.columns();
        let key_kinds = if self.own_gates { 2 } else { 1 };
        let products = if self.has_products() { self.entries } else { 1 };
        let numbers = self.stage() + self.tile.rows() * (2 * self.tile.units_x + 1 + products) + 16;
        key_kinds * self.tile_bytes(columns, self.head_dim)
            + self.tile_bytes(columns, self.value_dim)
            + numbers * size_of::<f32>()
    }

    fn fitting(self, rows: usize, limits: DeviceLimits, bytes: fn(&Self) -> usize) -> Option<Self> {
        let smallest = TILES.len() - 1;
        #[cfg(feature = "lab")]
        let only = super::lab::choices().tile;
        #[cfg(not(feature = "lab"))]
        let only = None::<usize>;
        let tiles = TILES.into_iter().enumerate();
        tiles.filter(|(at, _)| only.is_none_or(|only| *at == only)).find_map(|(at, tile)| {
            let config = Self { tile, ..self };
            let fits = bytes(&config) <= limits.shared_bytes && tile.units() <= limits.units;
            let useful = at == smallest || rows > tile.rows() / 2;
            (fits && useful).then_some(config)
        })
    }

    /// Sets the largest tile of the forward kernel that fits the device limits; `None` if none
    /// fits.
    pub(super) fn forward(self, rows: usize, limits: DeviceLimits) -> Option<Self> {
        self.fitting(rows, limits, Self::forward_bytes)
    }

    /// Sets the largest tile of the backward kernel that fits the device limits; `None` if none
    /// fits.
    pub(super) fn backward(self, rows: usize, limits: DeviceLimits) -> Option<Self> {
        self.fitting(rows, limits, Self::backward_bytes)
    }

    /// Number of values per row in the buffer of gradients that belong to rows.
    pub(super) const fn row_grads(&self, query_entries: usize) -> usize {
        FIXED + 2 * self.hidden() + self.entries + query_entries
    }
}

/// Number of leading values per row in that buffer: slope, contextual slope, decay, entries past a
/// table's end. The gradients of the hidden layer, of the products with the table and of those with
/// the distance table follow.
pub(super) const FIXED: usize = 4;
pub(super) const SLOPE: usize = 0;
pub(super) const CONTEXTUAL_SLOPE: usize = 1;
pub(super) const DECAY: usize = 2;
pub(super) const FAR: usize = 3;

/// Limits of a device for one cube.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceLimits {
    pub(super) shared_bytes: usize,
    pub(super) units: usize,
}
