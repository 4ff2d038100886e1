//! Gradient of the distance table, from the sums of bands.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, FloatDType, Shape};
use burn_cubecl::tensor::CubeTensor;

use super::bands::{BAND, bands_kernel, table_kernel};
use super::config::{MmaConfig, MmaPass, OWNED, UNITS};
use super::packed::{LaunchGrid, PackedOperands, PackedUpstream, empty, grid};
use crate::kernels::operands::Sizes;

/// Computes the gradient of the distance table. That of the last entry is the negative sum of the others, because the
/// gradients of a row's logits add up to zero.
pub(super) fn distance(
    packed: &PackedOperands,
    upstream: &PackedUpstream,
    config: MmaConfig,
) -> CubeTensor {
    let Sizes { batch, heads, rows, .. } = packed.sizes;
    let (like, entries) = (&packed.log, packed.distance_entries - 1);
    if entries == 0 {
        return Cube::float_zeros(Shape::from([heads, 1]), &like.device, FloatDType::F32);
    }
    let bands = bands(rows, packed.first_row, entries);
    let of_bands = empty(like, &[batch, heads, bands, BAND], DType::F32);
    let near = empty(like, &[heads, entries], DType::F32);
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
            near.clone().into_buffer_arg(),
            batch * heads,
            heads,
            bands,
            entries,
            packed.first_row,
        );
    }
    let last = Cube::float_neg(Cube::float_sum_dim(near.clone(), 1));
    Cube::float_cat(vec![near, last], 1)
}

/// Number of bands with pairs whose distance is less than `entries`.
pub(super) fn bands(rows: usize, first_row: usize, entries: usize) -> usize {
    let newest = first_row.div_ceil(OWNED);
    let near = (entries + OWNED - 2 + newest * OWNED - first_row) / OWNED + 1;
    near.min(rows.div_ceil(OWNED) + newest)
}
