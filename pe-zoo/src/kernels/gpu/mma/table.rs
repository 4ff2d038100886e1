//! Gradients by distance, from the sums of bands.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, FloatDType, Shape};
use burn_cubecl::tensor::CubeTensor;

use super::bands::{BAND, bands_kernel, table_kernel};
use super::config::{MmaConfig, MmaPass, OWNED, UNITS};
use super::packed::{PackedOperands, PackedUpstream};
use super::tensors::{LaunchGrid, empty, grid};
use crate::kernels::operands::Sizes;

/// Sums of bands.
struct BandSums {
    /// Gradients by distance, `[H, entries]`.
    distances: CubeTensor,
    /// Gradients of the pieces of a piecewise linear function, `[B, H, bands, pieces, 2]`.
    lines: CubeTensor,
}

/// Computes the gradients of all pairs whose distance is less than `entries`.
fn band_sums(
    packed: &PackedOperands,
    upstream: &PackedUpstream,
    entries: usize,
    config: MmaConfig,
) -> BandSums {
    let Sizes { batch, heads, rows, .. } = packed.sizes;
    let like = &packed.log;
    let bands = bands(rows, packed.first_row, entries);
    let of_bands = empty(like, &[batch, heads, bands, BAND], DType::F32);
    let lines = empty(like, &[batch, heads, bands, config.pieces.max(1), 2], DType::F32);
    let distances = empty(like, &[heads, entries], DType::F32);
    let LaunchGrid { count, dim } = grid(bands, batch * heads);
    // SAFETY: packed tensors are padded to whole cubes, and each cube writes a band of its own.
    unsafe {
        bands_kernel::launch_unchecked(
            &like.client,
            count,
            dim,
            packed.inputs(),
            packed.place(),
            upstream.args(),
            of_bands.clone().into_buffer_arg(),
            lines.clone().into_buffer_arg(),
            config.of(MmaPass::Bands),
        );
    }
    let LaunchGrid { count, dim } = grid((heads * entries).div_ceil(UNITS), 1);
    // SAFETY: units past the end of the table do nothing.
    unsafe {
        table_kernel::launch_unchecked(
            &like.client,
            count,
            dim,
            of_bands.into_buffer_arg(),
            distances.clone().into_buffer_arg(),
            batch * heads,
            heads,
            bands,
            entries,
            packed.first_row,
        );
    }
    BandSums { distances, lines }
}

/// Computes the gradient of the distance table. That of the last entry is what is left to the sum of all, which the gradients of
/// the sinks, `[H]`, make zero: a row's logits and the head's sink move its weights only against each other.
pub(super) fn distance(
    packed: &PackedOperands,
    upstream: &PackedUpstream,
    of_sinks: Option<&CubeTensor>,
    config: MmaConfig,
) -> CubeTensor {
    let heads = packed.sizes.heads;
    let column = Shape::from([heads, 1]);
    let others = match of_sinks {
        Some(of_sinks) => Cube::float_reshape(of_sinks.clone(), column),
        None => Cube::float_zeros(column, &packed.log.device, FloatDType::F32),
    };
    let entries = packed.distance_entries - 1;
    if entries == 0 {
        return Cube::float_neg(others);
    }
    let near = band_sums(packed, upstream, entries, config).distances;
    let others = Cube::float_add(others, Cube::float_sum_dim(near.clone(), 1));
    Cube::float_cat(vec![near, Cube::float_neg(others)], 1)
}

/// Gradients of a piecewise linear function.
pub(super) struct PieceGradients {
    /// Gradients of the numbers of distances, `[1, N]`.
    pub(super) distances: CubeTensor,
    /// Gradients of the slopes of the pieces, then of their values at 0, `[H, 2 pieces]`.
    pub(super) lines: CubeTensor,
}

/// Computes the gradients of a piecewise linear function, whose numbers are those of all distances.
pub(super) fn pieces(
    packed: &PackedOperands,
    upstream: &PackedUpstream,
    config: MmaConfig,
) -> PieceGradients {
    let Sizes { heads, .. } = packed.sizes;
    let BandSums { distances, lines } =
        band_sums(packed, upstream, packed.distance_entries, config);
    let lines = Cube::float_sum_dim(Cube::float_sum_dim(lines, 2), 0);
    let lines = Cube::float_reshape(lines, Shape::from([heads, config.pieces, 2]));
    let lines = Cube::float_swap_dims(lines, 1, 2);
    PieceGradients {
        distances: Cube::float_sum_dim(distances, 0),
        lines: Cube::float_reshape(lines, Shape::from([heads, 2 * config.pieces])),
    }
}

/// Number of bands with pairs whose distance is less than `entries`.
pub(super) fn bands(rows: usize, first_row: usize, entries: usize) -> usize {
    let newest = first_row.div_ceil(OWNED);
    let near = (entries + OWNED - 2 + newest * OWNED - first_row) / OWNED + 1;
    near.min(rows.div_ceil(OWNED) + newest)
}
