//! Operands and gradients as the kernels read them.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::tensor::DType;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::config::{AlongRow, MmaConfig, OWNED, padded};
use super::inputs::{MmaInputsLaunch, MmaSizesLaunch, UpstreamLaunch};
use super::near::DecayingChannels;
use super::pack::{PACKED, PackedRowsLaunch, pack_kernel, pack_upstream_kernel};
use super::second::{SecondSlots, joined};
use super::tensors::{LaunchGrid, empty, grid, strided, whole_rows};
use crate::kernels::gpu::arguments::last_axis;
use crate::kernels::operands::{Operands, Sizes, Slot, present};
use crate::kernels::spec::Spec;

/// Operands as the kernels read them.
#[derive(Debug, Clone)]
pub(super) struct PackedOperands {
    /// Sizes, in which heads have the channels of the second products too.
    pub(super) sizes: Sizes,
    pub(super) second: Option<SecondSlots>,
    pub(super) q: CubeTensor,
    pub(super) k: CubeTensor,
    pub(super) values: CubeTensor,
    /// Directions and updates of the maps that change queries.
    pub(super) maps: Option<[CubeTensor; 2]>,
    pub(super) slopes: CubeTensor,
    /// Distance table, or numbers of the distances.
    pub(super) distance: CubeTensor,
    pub(super) piece_ends: CubeTensor,
    pub(super) piece_lines: CubeTensor,
    pub(super) row_factors: CubeTensor,
    pub(super) decay: CubeTensor,
    pub(super) decay_residual: CubeTensor,
    /// Queries and keys whose channels decay, before they are packed.
    pub(super) decaying: Option<DecayingChannels>,
    /// Running sums of the channels, `[B, H, S, D]`.
    pub(super) channel_sums: CubeTensor,
    /// Tables of the rows, `[B, H, T, entries]`.
    pub(super) tables: CubeTensor,
    pub(super) term_params: CubeTensor,
    pub(super) term_state: CubeTensor,
    /// Numbers of far blocks by block of rows, `[B, H, padded T / 64]`.
    pub(super) far_blocks: CubeTensor,
    /// Logarithms of the softmax denominators, `[B, H, padded T]`.
    pub(super) log: CubeTensor,
    pub(super) first_row: usize,
    pub(super) distance_entries: usize,
    pub(super) scale: f32,
    pub(super) gate_scale: f32,
    pub(super) max_position: f32,
}

impl PackedOperands {
    pub(super) fn new(operands: &Operands<Cube>, spec: &Spec, config: MmaConfig) -> Self {
        let sizes = Sizes { head_dim: config.head_dim, ..operands.sizes() };
        let second = SecondSlots::of(operands);
        let Sizes { batch, heads, rows, columns, .. } = sizes;
        let query = &operands[Slot::Query];
        let log = empty(query, &[batch, heads, padded(rows)], DType::F32);
        let small = |slot| match present(&operands[slot]) {
            true => into_contiguous(operands[slot].clone()),
            // A dummy that no kernel reads.
            false => log.clone(),
        };
        let (width, value_width) = (config.width(), config.value_width());
        let tables = match config.along {
            AlongRow::QueryDistance => Slot::QueryDistance,
            AlongRow::Reflected => Slot::ReflectedProducts,
            _ => Slot::ContextualVectors,
        };
        let slopes = match config.along {
            _ if config.slopes => Slot::Slope,
            AlongRow::StepPrices => Slot::StepPricesSlopes,
            _ => Slot::ContextualSlopes,
        };
        let distance = if config.pieces > 0 { Slot::PositionMlpDistances } else { Slot::Distance };
        let far_blocks = if config.carries() {
            empty(query, &[batch, heads, padded(rows) / OWNED], DType::U32)
        } else {
            log.clone()
        };
        let contextual = spec.contextual;
        let of_second =
            |slot: fn(SecondSlots) -> Slot| second.map(|second| &operands[slot(second)]);
        let decaying =
            config.decays_channels().then(|| DecayingChannels::new(operands, spec.first_row));
        let [q, k] = match &decaying {
            Some(channels) => channels.relative(),
            None => [
                joined(query, of_second(|second| second.queries)),
                joined(&operands[Slot::Key], of_second(|second| second.keys)),
            ],
        };
        let [q, k, values] = [&q, &k, &operands[Slot::Values]].map(whole_rows);
        let [padded_rows, padded_columns] = [rows, columns].map(padded);
        let packed = |rows, width| empty(query, &[batch, heads, rows, width], DType::BF16);
        let to_q = packed(padded_rows, width);
        let [to_k, to_values] = [width, value_width].map(|width| packed(padded_columns, width));
        let blocks = (padded_rows + 2 * padded_columns) / PACKED;
        let LaunchGrid { count, dim } = grid(blocks, batch * heads);
        let to = [&to_q, &to_k, &to_values].map(|tensor| tensor.clone().into_buffer_arg());
        let [of_q, of_k, of_values] = to;
        // SAFETY: cubes cover the packed rows exactly, and read only rows and channels that exist.
        unsafe {
            pack_kernel::launch_unchecked(
                &query.client,
                count,
                dim,
                strided(&q),
                strided(&k),
                strided(&values),
                PackedRowsLaunch::new(of_q, of_k, of_values),
                padded_rows,
                padded_columns,
                // The same kernel for all attentions of these sizes.
                MmaConfig::plain(sizes),
            );
        }
        Self {
            sizes,
            second,
            q: to_q,
            k: to_k,
            values: to_values,
            maps: config.reflects().then(|| packed_maps(operands, sizes)),
            slopes: small(slopes),
            distance: small(distance),
            distance_entries: last_axis(&operands[distance]),
            piece_ends: small(Slot::Bends),
            piece_lines: small(Slot::PositionMlpLines),
            row_factors: small(Slot::PositionMlpRows),
            decay: small(Slot::Decay),
            decay_residual: small(Slot::DecayResidual),
            channel_sums: decaying
                .as_ref()
                .map_or_else(|| log.clone(), |channels| channels.sums.clone()),
            tables: decaying.as_ref().map_or_else(|| small(tables), DecayingChannels::near),
            decaying,
            term_params: small(Slot::TermParams),
            term_state: small(Slot::TermState),
            far_blocks,
            log: log.clone(),
            first_row: spec.first_row,
            scale: spec.content_scale.unwrap_or(1.0),
            gate_scale: match config.along {
                AlongRow::StepPrices => 1.0 / last_axis(&operands[Slot::StepPricesQueries]) as f32,
                _ => contextual.map_or(1.0, |contextual| contextual.gate_scale),
            },
            max_position: contextual.map_or(f32::MAX, |contextual| contextual.max_position),
        }
    }

    pub(super) fn inputs(&self) -> MmaInputsLaunch {
        let arg = |tensor: &CubeTensor| tensor.clone().into_buffer_arg();
        let [directions, updates] = match &self.maps {
            Some(maps) => maps.each_ref(),
            None => [&self.log; 2],
        };
        MmaInputsLaunch::new(
            arg(&self.q),
            arg(&self.k),
            arg(&self.values),
            arg(directions),
            arg(updates),
            arg(&self.slopes),
            arg(&self.distance),
            arg(&self.piece_ends),
            arg(&self.piece_lines),
            arg(&self.row_factors),
            arg(&self.decay),
            arg(&self.decay_residual),
            arg(&self.channel_sums),
            arg(&self.tables),
            arg(&self.term_params),
            arg(&self.term_state),
        )
    }

    pub(super) fn place(&self) -> MmaSizesLaunch {
        let Sizes { heads, rows, columns, .. } = self.sizes;
        MmaSizesLaunch::new(
            heads,
            rows,
            columns,
            self.first_row,
            self.distance_entries,
            self.scale,
            self.gate_scale,
            self.max_position,
        )
    }
}

/// Packs directions and updates, `[B, H, padded S, padded D]` each.
fn packed_maps(operands: &Operands<Cube>, sizes: Sizes) -> [CubeTensor; 2] {
    let Sizes { batch, heads, columns, head_dim, .. } = sizes;
    let config = MmaConfig::plain(Sizes { value_dim: head_dim, ..sizes });
    let slots = [Slot::ReflectedDirections, Slot::ReflectedChunks];
    let [directions, updates] = slots.map(|slot| whole_rows(&operands[slot]));
    let shape = [batch, heads, padded(columns), config.width()];
    let to = [&directions, &updates].map(|like| empty(like, &shape, DType::BF16));
    let [to_directions, to_updates] = to.each_ref().map(|tensor| tensor.clone().into_buffer_arg());
    // No rows of queries, and updates in place of values.
    let LaunchGrid { count, dim } = grid(2 * padded(columns) / PACKED, batch * heads);
    // SAFETY: cubes cover the packed columns exactly, and read only columns and channels that exist.
    unsafe {
        pack_kernel::launch_unchecked(
            &directions.client,
            count,
            dim,
            strided(&directions),
            strided(&directions),
            strided(&updates),
            PackedRowsLaunch::new(to[0].clone().into_buffer_arg(), to_directions, to_updates),
            0,
            padded(columns),
            config,
        );
    }
    to
}

/// The gradient of the output in bf16, and statistics of the rows.
pub(super) struct PackedUpstream {
    grad: CubeTensor,
    statistics: CubeTensor,
    far_blocks: CubeTensor,
}

impl PackedUpstream {
    pub(super) fn args(&self) -> UpstreamLaunch {
        let [grad, statistics, far_blocks] = [&self.grad, &self.statistics, &self.far_blocks]
            .map(|tensor| tensor.clone().into_buffer_arg());
        UpstreamLaunch::new(grad, statistics, far_blocks)
    }
}

/// Packs the gradient of the output, and computes the statistics of the rows.
pub(super) fn upstream(
    packed: &PackedOperands,
    output: &CubeTensor,
    grad: &CubeTensor,
    config: MmaConfig,
) -> PackedUpstream {
    let Sizes { batch, heads, rows, value_dim, .. } = packed.sizes;
    let (like, width) = (output, config.value_width());
    let packed_grad = empty(like, &[batch, heads, padded(rows), width], DType::BF16);
    let statistics = empty(like, &[batch, heads, padded(rows), 2], DType::F32);
    let grad = whole_rows(grad);
    let LaunchGrid { count, dim } = grid(padded(rows) / PACKED, batch * heads);
    // SAFETY: cubes cover the packed rows exactly, and read only rows and channels that exist.
    unsafe {
        pack_upstream_kernel::launch_unchecked(
            &like.client,
            count,
            dim,
            strided(&grad),
            strided(output),
            packed.log.clone().into_buffer_arg(),
            packed_grad.clone().into_buffer_arg(),
            statistics.clone().into_buffer_arg(),
            value_dim,
            width,
        );
    }
    PackedUpstream { grad: packed_grad, statistics, far_blocks: packed.far_blocks.clone() }
}
