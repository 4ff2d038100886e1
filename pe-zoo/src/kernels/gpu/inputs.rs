//! Arguments of the kernels.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// The operands, contiguous, f32; one that the configuration leaves out is never read.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Inputs {
    /// Queries, `[plane, T, D]`; a plane is one head of one sequence.
    pub(super) q: Box<[f32]>,
    /// Keys, `[plane, S, D]`.
    pub(super) k: Box<[f32]>,
    /// Values, `[plane, S, E]`.
    pub(super) values: Box<[f32]>,
    /// Slopes of the heads, `[H]`.
    pub(super) slopes: Box<[f32]>,
    /// Table `[H, N]`, whose last entry holds for all longer distances.
    pub(super) distance: Box<[f32]>,
    /// Products of queries and distance table, `[plane, T, N]`.
    pub(super) query_distance: Box<[f32]>,
    /// Running sums of the decay, `[plane, S]`.
    pub(super) decay: Box<[f32]>,
    /// Residual of the running sums, `[plane, S]`.
    pub(super) decay_residual: Box<[f32]>,
    /// Separate keys of the gates, `[plane, S, D]`.
    pub(super) gate_keys: Box<[f32]>,
    /// Products of queries and table, or of queries and second layer, `[plane, T, entries]`.
    pub(super) products: Box<[f32]>,
    /// `[2, N]`.
    pub(super) hidden: Box<[f32]>,
    /// Slopes of the contextual positions, `[H]`.
    pub(super) contextual_slopes: Box<[f32]>,
    /// Dense bias, `[plane, T, S]`.
    pub(super) dense: Box<[f32]>,
    /// Positions of the columns, `[S]`.
    pub(super) positions: Box<[f32]>,
}

/// Sizes and factors.
#[derive(CubeType, CubeLaunch)]
pub(super) struct LaunchSizes {
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Index among the columns of the first row.
    pub(super) first_row: usize,
    pub(super) distance_entries: usize,
    pub(super) query_entries: usize,
    pub(super) content_scale: f32,
    pub(super) gate_scale: f32,
    pub(super) max_position: f32,
}

/// Results of the forward pass, and the gradient of the output.
#[derive(CubeType, CubeLaunch)]
pub(super) struct BackwardInputs {
    /// Gradient of the output, `[plane, T, E]`.
    pub(super) grad: Box<[f32]>,
    /// Logarithms of the denominators, or of what was left of the sticks, `[plane, T]`.
    pub(super) log: Box<[f32]>,
    /// Products of output and its gradient, `[plane, T]`.
    pub(super) share: Box<[f32]>,
}

/// Gradients; a slot is a cube's own place, added up later.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Outputs {
    /// Gradients of the queries, `[plane, T, D]`.
    pub(super) q: Box<[f32]>,
    /// Gradients of the keys, `[slot, plane, S, D]`.
    pub(super) k: Box<[f32]>,
    /// Gradients of the values, `[slot, plane, S, E]`.
    pub(super) values: Box<[f32]>,
    /// Gradients of the gate keys, `[slot, plane, S, D]`.
    pub(super) gate_keys: Box<[f32]>,
    /// Gradients of the distance table, `[slot, plane, N]`.
    pub(super) distance: Box<[f32]>,
    /// The columns' part of the gradients of the running sums, `[slot, plane, S]`.
    pub(super) decay: Box<[f32]>,
    /// Gradients of the dense bias, `[plane, T, S]`.
    pub(super) dense: Box<[f32]>,
    /// Gradients that belong to rows, `[plane, T, KernelConfig::row_grads]`.
    pub(super) rows: Box<[f32]>,
}
