//! Arguments of the kernels.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::tile::{Piece, SumPair};

/// Operands of the kernels. Those that the configuration omits are never read.
#[derive(CubeType, CubeLaunch)]
pub(super) struct MmaInputs {
    /// Queries, `[plane, padded T, padded D]`; a plane is one head of one sequence.
    pub(super) q: Box<[Piece]>,
    /// Keys, `[plane, padded S, padded D]`.
    pub(super) k: Box<[Piece]>,
    /// Values, `[plane, padded S, padded E]`.
    pub(super) values: Box<[Piece]>,
    /// Directions of the maps that change queries, `[plane, padded S, padded D]`.
    pub(super) directions: Box<[Piece]>,
    /// Vectors that the maps of a block subtract from a query, each times the query's product with a direction, `[plane, padded S, padded D]`.
    pub(super) updates: Box<[Piece]>,
    /// Slopes of the heads, `[H]`: of the distance, of the contextual position or of step prices.
    pub(super) slopes: Box<[f32]>,
    /// Distance table, `[H, N]`, whose last entry holds for all greater distances; with pieces, the numbers of all distances, `[N]`.
    pub(super) distance: Box<[f32]>,
    /// Ends of the pieces of a piecewise linear function but the last, ascending.
    pub(super) piece_ends: Box<[f32]>,
    /// Slopes of the pieces, then their values at 0, `[H, 2 pieces]`.
    pub(super) piece_lines: Box<[f32]>,
    /// Numbers of the rows, by which those of distances are multiplied, `[T]`.
    pub(super) row_factors: Box<[f32]>,
    /// Running sums of the decay, `[plane, S]`.
    pub(super) decay: Box<[f32]>,
    /// Residual of the running sums, `[plane, S]`.
    pub(super) decay_residual: Box<[f32]>,
    /// Running sums of the channels, `[plane, S, D]`.
    pub(super) channel_sums: Box<[SumPair]>,
    /// Tables of the rows, `[plane, T, entries]`: products of queries with vectors by contextual position or by distance, or with the
    /// keys near them.
    pub(super) tables: Box<[f32]>,
    /// Parameters of a pair term, `[H, P]`.
    pub(super) term_params: Box<[f32]>,
    /// State of the tokens for a pair term, `[plane, S, K]`.
    pub(super) term_state: Box<[f32]>,
}

/// Additional inputs of the backward kernels.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Upstream {
    /// Gradient of the output, `[plane, padded T, padded E]`.
    pub(super) grad: Box<[Piece]>,
    /// Binary logarithm of the softmax's denominator, and dot product of the output and its gradient, `[plane, padded T, 2]`.
    pub(super) statistics: Box<[SumPair]>,
    /// Number of blocks of columns on the left that are far for a block of rows, `[plane, padded T / 64]`.
    pub(super) far_blocks: Box<[u32]>,
}

/// Sizes and factors that are passed at launch.
#[derive(CubeType, CubeLaunch)]
pub(super) struct MmaSizes {
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Index of the first row among the columns.
    pub(super) first_row: usize,
    pub(super) distance_entries: usize,
    /// Factor of the products of queries and keys.
    pub(super) scale: f32,
    /// Factor of the products that make gates.
    pub(super) gate_scale: f32,
    /// Largest contextual position.
    pub(super) max_position: f32,
}
