//! Launch of the backward kernel of queries that change from block to block.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, FloatDType, Shape, Slice};
use burn_cubecl::tensor::CubeTensor;

use super::config::{MmaConfig, MmaPass, OWNED, padded};
use super::packed::{PackedOperands, upstream};
use super::reflected::{ReflectedGradientsLaunch, reflected_kernel};
use super::tensors::{LaunchGrid, empty, grid, of_tokens};
use crate::kernels::gpu::heads::by_token;
use crate::kernels::operands::{SLOTS, Sizes, Slot};

/// Number of cubes that occupy a large GPU.
const CUBES: usize = 256;

/// Largest number of cubes of a plane: each has sums of its own.
const MOST_CUBES: usize = 8;

/// Number of cubes that share the blocks of rows of a plane.
pub(super) fn cubes_of_plane(planes: usize, rows: usize) -> usize {
    CUBES.div_ceil(planes).min(MOST_CUBES).min(rows.div_ceil(OWNED))
}

/// Computes the gradients of all operands in the order of their slots; `None` for absent operands.
pub(super) fn gradients(
    packed: &PackedOperands,
    output: &CubeTensor,
    grad: &CubeTensor,
    config: MmaConfig,
) -> [Option<CubeTensor>; SLOTS] {
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = packed.sizes;
    let upstream = upstream(packed, output, grad, config);
    let planes = batch * heads;
    let cubes = cubes_of_plane(planes, rows);
    let (width, value_width) = (config.width(), config.value_width());
    let of_columns = |width: usize| Shape::from([cubes, batch, heads, padded(columns), width]);
    let zeros = |width| Cube::float_zeros(of_columns(width), &output.device, FloatDType::F32);
    let [k, directions, updates] = [(); 3].map(|()| zeros(width));
    let (values, column_decay) = (zeros(value_width), zeros(1));
    let q = by_token(output, [batch, heads, rows, head_dim]);
    let row_decay = empty(output, &[batch, heads, rows], DType::F32);
    let products = empty(output, &[batch, heads, rows, OWNED], DType::F32);
    let met = empty(output, &[cubes * planes, padded(columns), width], DType::BF16);
    let LaunchGrid { count, dim } = grid(cubes, planes);
    let flat = |tensor: &CubeTensor| tensor.clone().into_buffer_arg();
    // SAFETY: packed tensors and sums are padded to whole blocks, and the kernel writes only rows that exist elsewhere.
    unsafe {
        reflected_kernel::launch_unchecked(
            &packed.q.client,
            count,
            dim,
            packed.inputs(),
            packed.place(),
            upstream.args(),
            ReflectedGradientsLaunch::new(
                flat(&q),
                flat(&k),
                flat(&values),
                flat(&directions),
                flat(&updates),
                flat(&column_decay),
                flat(&row_decay),
                flat(&products),
                flat(&met),
            ),
            config.of(MmaPass::Rows),
        );
    }
    // The sum of all cubes, in their order, without padding.
    let whole = |sums: CubeTensor, width: usize| {
        let sums = Cube::float_sum_dim(sums, 0);
        let all = || Slice::from(..);
        let axes = [all(), all(), all(), Slice::from(0..columns), Slice::from(0..width)];
        Cube::float_reshape(
            Cube::float_slice(sums, &axes),
            Shape::from([batch, heads, columns, width]),
        )
    };
    let decay = config.decay.then(|| {
        let of_columns = Cube::float_neg(whole(column_decay, 1));
        let of_columns = Cube::float_reshape(of_columns, Shape::from([batch, heads, columns]));
        of_tokens(row_decay, of_columns, 0)
    });
    let [k, directions, updates] = [k, directions, updates].map(|sums| whole(sums, head_dim));
    let values = whole(values, value_dim);
    Slot::ALL.map(|slot| match slot {
        Slot::Query => Some(q.clone()),
        Slot::Key => Some(k.clone()),
        Slot::Values => Some(values.clone()),
        Slot::ReflectedDirections => Some(directions.clone()),
        Slot::ReflectedChunks => Some(updates.clone()),
        Slot::ReflectedProducts => Some(products.clone()),
        Slot::Decay => decay.clone(),
        Slot::DecayResidual if config.decay_residual => decay.clone(),
        _ => None,
    })
}
