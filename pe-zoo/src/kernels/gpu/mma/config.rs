//! What is fixed when the kernels are compiled.

use super::approximate::NATIVE;
use super::copies::Transfer;
use crate::kernels::operands::Sizes;
use crate::score::{FarPairs, TracedTerm};

/// Units of a plane (a warp).
pub(super) const PLANE: usize = 32;
/// Planes of a cube.
pub(super) const PLANES: usize = 4;
/// Units of a cube.
pub(super) const UNITS: usize = PLANE * PLANES;
/// Rows of one tensor instruction.
pub(super) const ROWS: usize = 16;
/// Columns of one tensor instruction.
pub(super) const ACROSS: usize = 8;
/// Inner dimension of one tensor instruction.
pub(super) const STEP: usize = 16;
/// Largest number of rows, or keys, in a block; a cube owns as many for each group of rows of a plane.
pub(in crate::kernels::gpu) const OWNED: usize = ROWS * PLANES;
/// Largest number of groups of 16 rows that a plane owns.
pub(super) const MOST_GROUPS: usize = 2;
/// Packed tensors are padded to multiples of it, the largest number of rows that a cube owns.
pub(super) const PADDED: usize = OWNED * MOST_GROUPS;
/// Widths of packed rows are multiples of it.
const WIDTHS: usize = 32;
/// Largest width of a head: the results of a wider one would not fit into registers.
pub(super) const WIDEST: usize = 128;
/// Numbers of a row of a block that the tensor instructions of a group of planes read.
pub(super) const WIDTH: usize = 64;
/// Entries of a row's table of near products: two groups of keys.
pub(super) const NEAR: usize = 2 * ROWS;
/// Largest width at which the factors that a plane owns stay in registers through a walk.
const RESIDENT: usize = 64;

/// Form along a row: it depends on all columns from the diagonal to the left, on a table of the row, or on a function of
/// the pair. Blocks near the diagonal are computed in another way than those further left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AlongRow {
    /// Nothing.
    Nothing,
    /// Contextual positions: biases by sums of gates, which are those of the content or of the second products.
    Contextual,
    /// The same with a slope of the head in place of a table.
    ContextualSlope,
    /// The same with a piecewise linear function, whose table has the slopes of the pieces and then their values at 0.
    ContextualPieces,
    /// Sums of the logarithms of gates, which are those of the second products, times a slope of the head.
    StepPrices,
    /// The second products in place of the first ones, for pairs far from each other.
    FarProducts(FarPairs),
    /// Stick-breaking in place of a softmax; `strict` if a token does not attend to itself.
    Sticks { strict: bool },
    /// Products of the query with a vector for each distance.
    QueryDistance,
    /// Products whose channels decay.
    ChannelDecay,
    /// Products of keys with queries that the maps of each block of 64 columns change on the way.
    Reflected,
    /// A function of the pair, in place of the content logit.
    Term(&'static TracedTerm),
}

/// Channels of packed rows over which a product is taken; all numbers are multiples of 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Channels {
    /// Channels of a row.
    pub(super) width: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Channels {
    /// All channels of a row.
    pub(super) const fn all(width: usize) -> Self {
        Self { width, from: 0, to: width }
    }

    /// Number of steps of the tensor instruction.
    pub(super) const fn steps(self) -> usize {
        (self.to - self.from) / STEP
    }
}

/// Results of a kernel that owns keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OfKeys {
    Both,
    /// Gradients of the keys, and of token state.
    Keys,
    /// Gradients of the values.
    Values,
}

impl OfKeys {
    pub(super) const fn keys(self) -> bool {
        !matches!(self, Self::Values)
    }

    pub(super) const fn values(self) -> bool {
        !matches!(self, Self::Keys)
    }
}

/// Kernels that have a number of row groups of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MmaPass {
    Forward,
    /// Gradients that belong to rows.
    Rows,
    /// Gradients that belong to keys.
    Keys,
    /// Gradients by distance.
    Bands,
}

/// Everything that is fixed when a kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each of them leaves code out of the kernel")]
pub(in crate::kernels::gpu) struct MmaConfig {
    /// Channels of queries and keys, with those of the second products.
    pub(super) head_dim: usize,
    pub(super) value_dim: usize,
    /// Channels of the second products, which follow those of the content; 0 if there is one product.
    pub(super) second_dim: usize,
    pub(super) slopes: bool,
    pub(super) distance: bool,
    pub(super) decay: bool,
    pub(super) decay_residual: bool,
    /// Pieces of a piecewise linear function of the distance; 0 if there is none.
    pub(super) pieces: usize,
    pub(super) along: AlongRow,
    /// Entries of the row's table.
    pub(super) entries: usize,
    /// Groups of 16 rows that a plane owns; it uses what it reads of a block from shared memory for all of them.
    pub(super) row_groups: usize,
    /// Whether LLVM compiles the kernels: a power of two is one instruction, and blocks are copied to shared memory while others
    /// are computed.
    pub(super) native: bool,
    /// Whether products are those of groups of planes.
    pub(super) warpgroups: bool,
}

impl MmaConfig {
    /// Attention without a modifier.
    pub(super) const fn plain(sizes: Sizes) -> Self {
        Self {
            head_dim: sizes.head_dim,
            value_dim: sizes.value_dim,
            second_dim: 0,
            slopes: false,
            distance: false,
            decay: false,
            decay_residual: false,
            pieces: 0,
            along: AlongRow::Nothing,
            entries: 0,
            row_groups: MOST_GROUPS,
            native: NATIVE,
            warpgroups: false,
        }
    }

    /// Whether rows of all blocks are as wide as the tensor instructions of groups of planes read them.
    pub(super) const fn fits_warpgroups(&self) -> bool {
        self.native
            && self.second_dim == 0
            && !self.decays_channels()
            && !self.reflects()
            && self.width().is_multiple_of(WIDTH)
            && self.value_width().is_multiple_of(WIDTH)
    }

    /// How blocks come to shared memory.
    pub(super) const fn transfer(&self) -> Transfer {
        Transfer { copies: self.native, warpgroups: self.warpgroups }
    }

    /// The same for blocks that planes read one by one.
    pub(super) const fn transfer_of_planes(&self) -> Transfer {
        Transfer { copies: self.native, warpgroups: false }
    }

    /// Channels of a packed query or key.
    pub(super) const fn width(&self) -> usize {
        self.head_dim.next_multiple_of(WIDTHS)
    }

    /// Whether a product of queries and keys beside that of the content fits into packed rows.
    pub(super) const fn takes_second(content_dim: usize, second_dim: usize) -> bool {
        second_dim == 0
            || content_dim.is_multiple_of(STEP)
                && second_dim.is_multiple_of(8)
                && content_dim + second_dim <= WIDEST
    }

    /// Channels of the content in a packed query or key.
    pub(super) const fn content(&self) -> Channels {
        match self.second_dim {
            0 => Channels::all(self.width()),
            second => Channels { width: self.width(), from: 0, to: self.head_dim - second },
        }
    }

    /// Channels of the second products.
    pub(super) const fn second(&self) -> Channels {
        Channels {
            width: self.width(),
            from: self.head_dim - self.second_dim,
            to: self.head_dim.next_multiple_of(STEP),
        }
    }

    /// Results of the second products with a number of rows of a block.
    pub(super) const fn second_results(&self, rows: usize) -> usize {
        if self.second_dim > 0 { rows / ACROSS } else { 0 }
    }

    /// Channels of the second products; 0 if there are none.
    #[cfg(test)]
    pub(in crate::kernels::gpu) const fn second_dim(&self) -> usize {
        self.second_dim
    }

    /// Channels of a packed value.
    pub(super) const fn value_width(&self) -> usize {
        self.value_dim.next_multiple_of(WIDTHS)
    }

    /// The configuration of one kernel, with the number of row groups for which it has registers.
    pub(super) const fn of(self, pass: MmaPass) -> Self {
        let simple =
            !self.by_rows() && self.pieces == 0 && !self.decays_channels() && !self.reflects();
        let several = self.resident() && simple && !matches!(pass, MmaPass::Bands);
        Self { row_groups: if several { self.row_groups } else { 1 }, ..self }
    }

    /// Rows, or keys, that a cube owns.
    pub(super) const fn owned(&self) -> usize {
        OWNED * self.row_groups
    }

    /// Rows of a unit: `lane / 4` of its plane and every eighth after it.
    pub(super) const fn unit_rows(&self) -> usize {
        2 * self.row_groups
    }

    /// Distances between the rows that a cube owns and a block, rounded up.
    pub(super) const fn distances(&self) -> usize {
        (self.owned() + OWNED).next_multiple_of(UNITS)
    }

    /// Rows of a block that the kernels walk over: fewer with sums for each column, which need registers.
    pub(super) const fn block(&self) -> usize {
        if self.reflects() || self.warpgroups && !self.by_rows() {
            return OWNED;
        }
        match (self.sticks() || self.second_dim > 0, self.resident()) {
            (false, true) => OWNED,
            (true, false) if self.widest() => OWNED / 4,
            _ => OWNED / 2,
        }
    }

    /// Columns of a block that the kernel of gradients by rows walks over: fewer for several groups, which need registers.
    pub(super) const fn gradient_block(&self) -> usize {
        if self.row_groups > 1 { OWNED / 2 } else { self.block() }
    }

    /// Rows of a block that the kernel of keys walks over: fewer with biases, which need registers.
    pub(super) const fn query_block(&self) -> usize {
        match (self.biased() || self.row_groups > 1, self.widest()) {
            (false, _) => self.block(),
            (true, false) => OWNED / 2,
            (true, true) => OWNED / 4,
        }
    }

    /// Keys whose logits the kernel of keys by rows computes at once.
    pub(super) const fn part(&self) -> usize {
        let simple = !self.sticks() && self.second_dim == 0;
        if self.resident() && simple { self.block() } else { OWNED / 4 }
    }

    const fn widest(&self) -> bool {
        self.width() + self.value_width() == 2 * WIDEST
    }

    /// Which gradients the kernels of keys by rows compute, one kernel after the other: results of wide heads would not fit
    /// into the registers of one.
    pub(super) const fn of_keys(&self) -> &'static [OfKeys] {
        if self.resident() { &[OfKeys::Both] } else { &[OfKeys::Values, OfKeys::Keys] }
    }

    /// Whether the factors that a plane owns stay in registers through a walk.
    pub(super) const fn resident(&self) -> bool {
        self.width() <= RESIDENT && self.value_width() <= RESIDENT
    }

    /// Whether the rows' factors stay in registers in the kernel of gradients by rows.
    pub(super) const fn rows_resident(&self) -> bool {
        self.resident() && !self.carries() && !self.all_near()
    }

    /// Whether the keys stay in registers in the kernel that owns them.
    pub(super) const fn keys_resident(&self) -> bool {
        self.resident() && !self.biased() && self.row_groups == 1
    }

    /// Whether the bias is a difference between a number of the row and one of the column.
    pub(super) const fn differences(&self) -> bool {
        self.slopes || self.decay || self.decay_residual
    }

    /// Whether there is a bias by distance, which is a table or a piecewise linear function.
    pub(super) const fn by_distance(&self) -> bool {
        self.distance || self.pieces > 0
    }

    /// Whether numbers by distance are read block by block. A pair term reads those of each pair.
    pub(super) const fn tiles_by_distance(&self) -> bool {
        self.by_distance() && self.term().is_none()
    }

    /// Whether there is any bias.
    pub(super) const fn biased(&self) -> bool {
        self.differences() || self.by_distance()
    }

    /// Pieces of the function, of the distance or of the contextual position.
    pub(super) const fn all_pieces(&self) -> usize {
        match self.along {
            AlongRow::ContextualPieces => self.entries / 2,
            _ => self.pieces,
        }
    }

    /// Places for the pieces in shared memory, a power of two.
    pub(super) const fn piece_places(&self) -> usize {
        self.all_pieces().next_power_of_two()
    }

    /// Whether products become logits before the softmax, which multiplies them by the scale otherwise.
    pub(super) const fn has_logits(&self) -> bool {
        self.biased() || self.tables() || self.contextual() || self.all_near()
    }

    /// The function of a pair, if there is one.
    pub(super) const fn term(&self) -> Option<&'static TracedTerm> {
        match self.along {
            AlongRow::Term(term) => Some(term),
            _ => None,
        }
    }

    /// Pairs whose products are the second ones, if there are any.
    pub(super) const fn far_pairs(&self) -> Option<FarPairs> {
        match self.along {
            AlongRow::FarProducts(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// Whether blocks far from the diagonal are computed in another way than those near it.
    pub(super) const fn has_far(&self) -> bool {
        !self.sticks() && !self.all_near()
    }

    /// Whether all blocks are computed as those near the diagonal are.
    pub(super) const fn all_near(&self) -> bool {
        matches!(
            self.along,
            AlongRow::ContextualSlope
                | AlongRow::StepPrices
                | AlongRow::FarProducts(_)
                | AlongRow::Term(_)
        )
    }

    /// Gradients of a pair term that belong to a row, or to a column.
    pub(super) const fn term_numbers(&self, by_rows: bool) -> usize {
        match self.along {
            AlongRow::Term(term) if by_rows => term.params + term.state,
            AlongRow::Term(term) => term.state,
            _ => 0,
        }
    }

    /// Sums of these gradients in one unit.
    pub(super) const fn term_sums(&self, by_rows: bool) -> usize {
        self.term_numbers(by_rows) * if by_rows { 2 } else { 2 * OWNED / ACROSS }
    }

    /// Whether biases are a function of sums of gates.
    pub(super) const fn contextual(&self) -> bool {
        matches!(
            self.along,
            AlongRow::Contextual
                | AlongRow::ContextualSlope
                | AlongRow::ContextualPieces
                | AlongRow::StepPrices
        )
    }

    /// Whether sums along a row are carried from block to block.
    pub(super) const fn carries(&self) -> bool {
        self.contextual() || self.sticks()
    }

    /// Whether each head has a slope, of the distance or of a sum along the row.
    pub(super) const fn has_slopes(&self) -> bool {
        self.slopes || matches!(self.along, AlongRow::ContextualSlope | AlongRow::StepPrices)
    }

    /// Whether the channels of products decay.
    pub(in crate::kernels::gpu) const fn decays_channels(&self) -> bool {
        matches!(self.along, AlongRow::ChannelDecay)
    }

    /// Whether queries change from block to block.
    pub(in crate::kernels::gpu) const fn reflects(&self) -> bool {
        matches!(self.along, AlongRow::Reflected)
    }

    /// Whether weights are those of broken sticks.
    pub(super) const fn sticks(&self) -> bool {
        matches!(self.along, AlongRow::Sticks { .. })
    }

    /// Whether a row has a table of its own.
    pub(super) const fn tables(&self) -> bool {
        matches!(
            self.along,
            AlongRow::Contextual | AlongRow::ContextualPieces | AlongRow::QueryDistance
        )
    }

    /// Whether keys and values get their gradients from a kernel that computes logits row by row.
    pub(super) const fn by_rows(&self) -> bool {
        self.carries() || self.tables() || self.all_near()
    }

    /// Distance in shared memory of two rows of the table. It is odd, so that adjacent rows lie in different banks.
    pub(super) const fn table_stride(&self) -> usize {
        self.entries | 1
    }

    /// Bytes of shared memory of the kernel that needs most: rows of its own, two blocks to walk over, and weights with
    /// their gradients, or tables, or sums of pieces.
    pub(super) const fn shared_bytes(&self) -> usize {
        let (width, value_width) = (self.width(), self.value_width());
        let factors = if self.reflects() {
            // Forward, directions and updates are walked over too; backward, a cube has one block of each factor and four squares.
            let (forward, backward) = (7 * width, 5 * width + 4 * OWNED);
            2 * value_width + if forward > backward { forward } else { backward }
        } else {
            let squares = if self.second_dim > 0 { 3 } else { 2 };
            3 * (width + value_width) + squares * OWNED
        };
        let sums = 3 * self.piece_places() + 2 * self.pieces * UNITS;
        let numbers = (8 + OWNED) * (OWNED + 1) + OWNED * self.table_stride() + sums;
        let channels = if self.decays_channels() { 2 * PLANES * PLANES * width } else { 0 };
        (OWNED * factors + channels) * size_of::<u16>() + numbers * size_of::<f32>()
    }
}

/// Number of rows of a packed tensor.
pub(super) fn padded(rows: usize) -> usize {
    rows.next_multiple_of(PADDED)
}
