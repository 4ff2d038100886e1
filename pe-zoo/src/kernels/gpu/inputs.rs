//! Arguments of the GPU kernels.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// Rows of all planes, `[B, H, len, width]`, in memory like that or as `[B, len, H, width]`.
#[derive(CubeType, CubeLaunch)]
pub(super) struct PlaneRows {
    pub(super) numbers: Box<[f32]>,
    /// Heads whose rows are side by side: 1, or all of them.
    pub(super) beside: usize,
}

/// Index of a row among those of all planes, `len` each.
#[cube]
pub(super) fn line(plane: usize, row: usize, len: usize, beside: usize) -> usize {
    (plane / beside * len + row) * beside + plane % beside
}

/// Operands of the kernels, f32 without gaps. Operands that the configuration omits are never read.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Inputs {
    /// Queries, `[plane, T, D]`; a plane is one head of one sequence.
    pub(super) q: PlaneRows,
    /// Keys, `[plane, S, D]`.
    pub(super) k: PlaneRows,
    /// Values, `[plane, S, E]`.
    pub(super) values: PlaneRows,
    /// Slopes of the heads, `[H]`.
    pub(super) slopes: Box<[f32]>,
    /// Distance table, `[H, N]`, whose last entry holds for all greater distances.
    pub(super) distance: Box<[f32]>,
    /// Products of queries with the distance table, `[plane, T, N]`.
    pub(super) query_distance: Box<[f32]>,
    /// Running sums of the decay, `[plane, S]`.
    pub(super) decay: Box<[f32]>,
    /// Residual of the running sums, `[plane, S]`.
    pub(super) decay_residual: Box<[f32]>,
    /// Separate keys of the gates, `[plane, S, D]`.
    pub(super) gate_keys: PlaneRows,
    /// Products of queries with the contextual table or with a perceptron's second layer, `[plane,
    /// T, entries]`.
    pub(super) products: Box<[f32]>,
    /// Weights and biases of a perceptron's hidden layer, `[2, N]`.
    pub(super) hidden: Box<[f32]>,
    /// Slopes of the contextual positions, `[H]`.
    pub(super) contextual_slopes: Box<[f32]>,
    /// Dense bias, `[plane, T, S]`.
    pub(super) dense: Box<[f32]>,
    /// Positions of the columns relative to the first one, `[S]`.
    pub(super) positions: Box<[f32]>,
}

/// Sizes and factors that are passed at launch.
#[derive(CubeType, CubeLaunch)]
pub(super) struct LaunchSizes {
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Index of the first row among the columns.
    pub(super) first_row: usize,
    pub(super) distance_entries: usize,
    pub(super) query_entries: usize,
    pub(super) content_scale: f32,
    pub(super) gate_scale: f32,
    pub(super) max_position: f32,
}

/// Additional inputs of the backward kernel: results of the forward pass and the gradient of the
/// output.
#[derive(CubeType, CubeLaunch)]
pub(super) struct BackwardInputs {
    /// Gradient of the output, `[plane, T, E]`.
    pub(super) grad: PlaneRows,
    /// Logarithms of the softmax denominators or of the stick-breaking remainders, `[plane, T]`.
    pub(super) log: Box<[f32]>,
    /// Dot products of the output and its gradient, `[plane, T]`.
    pub(super) share: Box<[f32]>,
}

/// Outputs of the backward kernel. Each cube writes to a slot of its own; slots are added up later.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Outputs {
    /// Gradients of the queries, `[B, T, H, D]`.
    pub(super) q: Box<[f32]>,
    /// Gradients of the keys, `[slot, B, S, H, D]`.
    pub(super) k: Box<[f32]>,
    /// Gradients of the values, `[slot, B, S, H, E]`.
    pub(super) values: Box<[f32]>,
    /// Gradients of the gate keys, `[slot, B, S, H, D]`.
    pub(super) gate_keys: Box<[f32]>,
    /// Gradients of the distance table, `[slot, plane, N]`.
    pub(super) distance: Box<[f32]>,
    /// Gradients of the running sums that come from columns, `[slot, plane, S]`.
    pub(super) decay: Box<[f32]>,
    /// Gradients of the dense bias, `[plane, T, S]`.
    pub(super) dense: Box<[f32]>,
    /// Gradients that belong to rows, `[plane, T, KernelConfig::row_grads]`.
    pub(super) rows: Box<[f32]>,
}
