//! Launches of the kernels.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Shape, Slice};
use burn_cubecl::tensor::CubeTensor;

use super::config::{AlongRow, MmaConfig, MmaPass, NEAR, OWNED, padded};
use super::dkv::{ColumnGradientsLaunch, dkv_kernel};
use super::dkv_rows::dkv_rows_kernel;
use super::dq::dq_kernel;
use super::forward::{ForwardOutputsLaunch, forward_kernel};
use super::near::ChannelGradients;
use super::packed::{PackedOperands, upstream};
use super::reflected_gradients;
use super::row_sums::RowGradientsLaunch;
use super::second::{SecondSlots, SplitGradient};
use super::table::{PieceGradients, distance, pieces};
use super::tensors::{LaunchGrid, empty, grid, of_tokens};
use crate::kernels::gpu::heads::by_token;
use crate::kernels::operands::{Operands, SLOTS, Sizes, Slot};
use crate::kernels::spec::Spec;

/// Results of the forward pass that the backward pass needs.
#[derive(Debug, Clone)]
pub(in crate::kernels::gpu) struct MmaForward {
    /// Attention output, `[B, H, T, E]`, in memory `[B, T, H, E]`.
    pub(in crate::kernels::gpu) output: CubeTensor,
    packed: PackedOperands,
}

/// Computes the output and what its gradient needs.
pub(in crate::kernels::gpu) fn forward(
    operands: &Operands<Cube>,
    spec: &Spec,
    config: MmaConfig,
) -> MmaForward {
    let packed = PackedOperands::new(operands, spec, config);
    let Sizes { batch, heads, rows, value_dim, .. } = packed.sizes;
    let output = by_token(&operands[Slot::Query], [batch, heads, rows, value_dim]);
    let config = config.of(MmaPass::Forward);
    let LaunchGrid { count, dim } = grid(rows.div_ceil(config.owned()), batch * heads);
    // SAFETY: packed tensors are padded to whole cubes, and the kernel writes only rows that exist.
    unsafe {
        forward_kernel::launch_unchecked(
            &packed.q.client,
            count,
            dim,
            packed.inputs(),
            packed.place(),
            ForwardOutputsLaunch::new(
                output.clone().into_buffer_arg(),
                packed.log.clone().into_buffer_arg(),
                packed.far_blocks.clone().into_buffer_arg(),
            ),
            config,
        );
    }
    MmaForward { output, packed }
}

/// Gradients as the kernels write them.
struct MmaBackward {
    q: CubeTensor,
    k: CubeTensor,
    values: CubeTensor,
    /// Gradients of the slopes by row, `[B, H, T]`.
    slopes: CubeTensor,
    /// Gradients of the rows' numbers in a piecewise linear function, `[B, H, T]`.
    factors: CubeTensor,
    /// Gradients of the rows' running sums, `[B, H, T]`.
    row_decay: CubeTensor,
    /// Gradients of the columns' running sums, `[B, H, S]`.
    column_decay: CubeTensor,
    /// Gradients of the tables of rows, `[B, H, T, entries]`.
    tables: CubeTensor,
    /// Gradients of a pair term by row, `[B, H, T, P + K]`, and by column, `[B, H, S, K]`.
    term_rows: CubeTensor,
    term_columns: CubeTensor,
    /// Numbers that rows carry at the right edges of blocks of keys, `[B, H, padded S / 64, padded T, 2]`.
    edges: CubeTensor,
    /// Gradients of the distance table, `[H, N]`, if there is one.
    distance: Option<CubeTensor>,
    /// Gradients of a piecewise linear function, if there is one.
    pieces: Option<PieceGradients>,
}

impl MmaForward {
    /// Binary logarithms of the softmax denominators, `[B, H, padded T]`.
    pub(in crate::kernels::gpu) fn log(&self) -> &CubeTensor {
        &self.packed.log
    }
}

impl MmaBackward {
    fn unwritten(sizes: Sizes, like: &CubeTensor, config: MmaConfig) -> Self {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = sizes;
        let written = |written: bool, shape: &[usize]| {
            empty(like, if written { shape } else { &[1] }, DType::F32)
        };
        let numbers = |is_written: bool, len: usize| written(is_written, &[batch, heads, len]);
        let terms = |len, numbers| written(numbers > 0, &[batch, heads, len, numbers]);
        let edges = [batch, heads, padded(columns) / OWNED, padded(rows), 2];
        Self {
            q: by_token(like, [batch, heads, rows, head_dim]),
            k: by_token(like, [batch, heads, columns, head_dim]),
            values: by_token(like, [batch, heads, columns, value_dim]),
            slopes: numbers(config.has_slopes(), rows),
            factors: numbers(config.pieces > 0, rows),
            row_decay: numbers(config.decay, rows),
            column_decay: numbers(config.decay, columns),
            tables: if config.decays_channels() {
                written(true, &[batch, heads, rows, NEAR])
            } else {
                written(config.tables(), &[batch, heads, rows, config.entries])
            },
            term_rows: terms(rows, config.term_numbers(true)),
            term_columns: terms(columns, config.term_numbers(false)),
            edges: written(config.carries(), &edges),
            distance: None,
            pieces: None,
        }
    }
}

fn backward(
    forward: &MmaForward,
    grad: &CubeTensor,
    of_sinks: Option<&CubeTensor>,
    by_distance: bool,
    config: MmaConfig,
) -> MmaBackward {
    let packed = &forward.packed;
    let Sizes { batch, heads, rows, columns, .. } = packed.sizes;
    let flat = |tensor: &CubeTensor| tensor.clone().into_buffer_arg();
    let upstream = upstream(packed, &forward.output, grad, config);
    let mut written = MmaBackward::unwritten(packed.sizes, &forward.output, config);
    let by_rows = config.of(MmaPass::Rows);
    let LaunchGrid { count, dim } = grid(rows.div_ceil(by_rows.owned()), batch * heads);
    // SAFETY: packed tensors are padded to whole cubes, and the kernels write only rows that exist.
    unsafe {
        dq_kernel::launch_unchecked(
            &packed.q.client,
            count,
            dim,
            packed.inputs(),
            packed.place(),
            upstream.args(),
            RowGradientsLaunch::new(
                flat(&written.q),
                flat(&written.slopes),
                flat(&written.factors),
                flat(&written.row_decay),
                flat(&written.tables),
                flat(&written.term_rows),
                flat(&written.edges),
            ),
            by_rows,
        );
    }
    let by_keys = config.of(MmaPass::Keys);
    let LaunchGrid { count, dim } = grid(columns.div_ceil(by_keys.owned()), batch * heads);
    let client = &packed.q.client;
    let out = || {
        ColumnGradientsLaunch::new(
            flat(&written.k),
            flat(&written.values),
            flat(&written.column_decay),
            flat(&written.term_columns),
        )
    };
    // SAFETY: as above.
    unsafe {
        if config.by_rows() {
            for of in config.of_keys() {
                dkv_rows_kernel::launch_unchecked(
                    client,
                    count.clone(),
                    dim,
                    packed.inputs(),
                    packed.place(),
                    upstream.args(),
                    flat(&written.edges),
                    out(),
                    *of,
                    by_keys,
                );
            }
        } else {
            dkv_kernel::launch_unchecked(
                client,
                count,
                dim,
                packed.inputs(),
                packed.place(),
                upstream.args(),
                out(),
                by_keys,
            );
        }
    }
    if by_distance {
        written.distance = config.distance.then(|| distance(packed, &upstream, of_sinks, config));
        written.pieces = (config.pieces > 0).then(|| pieces(packed, &upstream, config));
    }
    written
}

/// Computes the gradients of all operands in the order of their slots; `None` for absent operands. `grad` is that of the
/// output, `of_sinks` that of the sinks, `[H]`, if there are any. `by_distance` tells whether biases by distance need a gradient,
/// which a window does not.
pub(in crate::kernels::gpu) fn gradients(
    forward: &MmaForward,
    grad: &CubeTensor,
    of_sinks: Option<&CubeTensor>,
    by_distance: bool,
    config: MmaConfig,
) -> [Option<CubeTensor>; SLOTS] {
    if config.reflects() {
        return reflected_gradients::gradients(&forward.packed, &forward.output, grad, config);
    }
    let MmaBackward {
        q,
        k,
        values,
        slopes,
        factors,
        row_decay,
        column_decay,
        tables,
        term_rows,
        term_columns,
        distance,
        pieces,
        edges: _,
    } = backward(forward, grad, of_sinks, by_distance, config);
    let first_row = forward.packed.first_row;
    let decay = config.decay.then(|| of_tokens(row_decay, column_decay, first_row));
    let slopes = config.has_slopes().then(|| of_heads(slopes, 1));
    let of_rows = pieces.is_some().then(|| {
        let rows = Cube::float_sum_dim(Cube::float_sum_dim(factors, 1), 0);
        Cube::float_reshape(rows, Shape::from([1, forward.packed.sizes.rows]))
    });
    let parts = |from: usize, to: usize| {
        let axes = [Slice::from(..), Slice::from(..), Slice::from(..), Slice::from(from..to)];
        Cube::float_slice(term_rows.clone(), &axes)
    };
    let term = config.term();
    let params = term.filter(|term| term.params > 0).map(|term| {
        let params = of_heads(parts(0, term.params), term.params);
        let heads = forward.packed.sizes.heads;
        Cube::float_reshape(params, Shape::from([heads, term.params]))
    });
    let state = term.filter(|term| term.state > 0).map(|term| {
        of_tokens(parts(term.params, term.params + term.state), term_columns, first_row)
    });
    let (q, k, of_channels) = match &forward.packed.decaying {
        Some(channels) => {
            let ChannelGradients { q, k, sums } =
                channels.gradients(q, k, &tables, forward.packed.scale);
            (q, k, Some(sums))
        }
        None => (q, k, None),
    };
    let second = forward.packed.second;
    let split = |joined: CubeTensor| match second {
        Some(_) => {
            let SplitGradient { first, second } =
                SplitGradient::new(&joined, config.head_dim - config.second_dim);
            (first, Some(second))
        }
        None => (joined, None),
    };
    let (q, second_q) = split(q);
    let (k, second_k) = split(k);
    let q = match (second, &second_q) {
        // The queries are the factors of both products.
        (Some(SecondSlots { queries: Slot::Query, .. }), Some(second_q)) => {
            Cube::float_add(q, second_q.clone())
        }
        _ => q,
    };
    Slot::ALL.map(|slot| match slot {
        Slot::Query => Some(q.clone()),
        Slot::Key => Some(k.clone()),
        Slot::Values => Some(values.clone()),
        Slot::Slope if config.slopes => slopes.clone(),
        Slot::ContextualSlopes if config.along == AlongRow::ContextualSlope => slopes.clone(),
        Slot::StepPricesSlopes if config.along == AlongRow::StepPrices => slopes.clone(),
        Slot::Distance => distance.clone(),
        Slot::PositionMlpLines => pieces.as_ref().map(|of| of.lines.clone()),
        Slot::PositionMlpDistances => pieces.as_ref().map(|of| of.distances.clone()),
        Slot::PositionMlpRows => of_rows.clone(),
        Slot::Decay => decay.clone(),
        Slot::ChannelDecay => of_channels.clone(),
        Slot::ContextualVectors if config.contextual() && config.tables() => Some(tables.clone()),
        Slot::QueryDistance if config.along == AlongRow::QueryDistance => Some(tables.clone()),
        Slot::TermParams => params.clone(),
        Slot::TermState => state.clone(),
        _ if second.is_some_and(|second| slot == second.queries) => second_q.clone(),
        _ if second.is_some_and(|second| slot == second.keys) => second_k.clone(),
        // Both operands are added to the same logits and have the same gradient.
        Slot::DecayResidual if config.decay_residual => decay.clone(),
        _ => None,
    })
}

/// Sums `[B, H, T]` or `[B, H, T, numbers]` over sequences and tokens: `[H numbers]`.
fn of_heads(rows: CubeTensor, numbers: usize) -> CubeTensor {
    let heads = Shape::from([rows.meta.shape()[1] * numbers]);
    Cube::float_reshape(Cube::float_sum_dim(Cube::float_sum_dim(rows, 2), 0), heads)
}
