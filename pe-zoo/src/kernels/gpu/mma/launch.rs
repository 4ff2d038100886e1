//! Launches of the kernels.

#![expect(unsafe_code, reason = "the kernels are launched without tests of their indices")]

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Shape};
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;

use super::config::{MmaConfig, OWNED, UNITS, padded};
use super::dkv::{ColumnGradientsLaunch, dkv_kernel};
use super::dq::{RowGradientsLaunch, dq_kernel};
use super::forward::forward_kernel;
use super::inputs::{InputsLaunch, LaunchSizesLaunch, UpstreamLaunch};
use super::pack::{PACKED, StridedLaunch, pack_kernel, pack_upstream_kernel};
use crate::kernels::operands::{Operands, SLOTS, Sizes, Slot, present};
use crate::kernels::spec::Spec;

/// Results of the forward pass that the backward pass needs.
#[derive(Debug, Clone)]
pub(in crate::kernels::gpu) struct Forward {
    /// Attention output, `[B, H, T, E]`, in memory `[B, T, H, E]`.
    pub(in crate::kernels::gpu) output: CubeTensor,
    packed: Packed,
}

/// Operands as the kernels read them.
#[derive(Debug, Clone)]
struct Packed {
    sizes: Sizes,
    q: CubeTensor,
    k: CubeTensor,
    values: CubeTensor,
    slopes: CubeTensor,
    decay: CubeTensor,
    decay_residual: CubeTensor,
    /// Logarithms of the softmax denominators, `[B, H, padded T]`.
    log: CubeTensor,
    first_row: usize,
    scale: f32,
}

fn empty(like: &CubeTensor, shape: &[usize], dtype: DType) -> CubeTensor {
    let shape = Shape::from(shape.to_vec());
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

/// Tensor of the shape `[B, H, rows, dim]` in memory `[B, rows, H, dim]`, the order of projections.
fn by_token(like: &CubeTensor, [batch, heads, rows, dim]: [usize; 4]) -> CubeTensor {
    Cube::float_swap_dims(empty(like, &[batch, rows, heads, dim], DType::F32), 1, 2)
}

/// Argument for a tensor that [`by_token`] has made, whose memory has no gaps.
fn buffer(tensor: &CubeTensor) -> BufferArg {
    Cube::float_swap_dims(tensor.clone(), 1, 2).into_buffer_arg()
}

/// Tensor whose rows are whole and aligned, in row-major order if they are not.
fn whole_rows(tensor: &CubeTensor) -> CubeTensor {
    let strides = tensor.meta.strides();
    let aligned = strides[3] == 1 && strides[..3].iter().all(|stride| stride % 8 == 0);
    if aligned { tensor.clone() } else { into_contiguous(tensor.clone()) }
}

fn strided(tensor: &CubeTensor) -> StridedLaunch {
    let (shape, strides) = (tensor.meta.shape(), tensor.meta.strides());
    let eights = [0, 1, 2].map(|axis| strides[axis] / 8);
    let (heads, rows) = (shape[1], shape[2]);
    // SAFETY: the handle is that of the tensor; the kernel reads only what the strides reach.
    let numbers = unsafe { BufferArg::from_raw_parts(tensor.handle.clone(), reach(tensor)) };
    StridedLaunch::new(numbers, heads, rows, eights[0], eights[1], eights[2])
}

/// Number of numbers from the first to the last of a tensor in memory.
fn reach(tensor: &CubeTensor) -> usize {
    let axes = tensor.meta.shape().iter().zip(tensor.meta.strides().iter());
    axes.map(|(len, stride)| len.saturating_sub(1) * stride).sum::<usize>() + 1
}

/// Number of cubes and units of a kernel.
struct Grid {
    count: CubeCount,
    dim: CubeDim,
}

fn grid(blocks: usize, planes: usize) -> Grid {
    Grid {
        count: CubeCount::Static(blocks as u32, planes as u32, 1),
        dim: CubeDim::new_1d(UNITS as u32),
    }
}

fn pack(tensor: &CubeTensor, width: usize) -> CubeTensor {
    let [batch, heads, rows, dim] = tensor.meta.shape().dims();
    let to = empty(tensor, &[batch, heads, padded(rows), width], DType::BF16);
    let tensor = whole_rows(tensor);
    let Grid { count, dim: units } = grid(padded(rows) / PACKED, batch * heads);
    // SAFETY: cubes cover the packed rows exactly, and read only rows and channels that exist.
    unsafe {
        pack_kernel::launch_unchecked(
            &tensor.client,
            count,
            units,
            strided(&tensor),
            to.clone().into_buffer_arg(),
            dim,
            width,
        );
    }
    to
}

impl Packed {
    fn new(operands: &Operands<Cube>, spec: &Spec, config: MmaConfig) -> Self {
        let sizes = operands.sizes();
        let Sizes { batch, heads, rows, .. } = sizes;
        let query = &operands[Slot::Query];
        // An absent operand is a dummy that no kernel reads.
        let small = |slot| {
            let slot = if present(&operands[slot]) { slot } else { Slot::Query };
            into_contiguous(operands[slot].clone())
        };
        let (width, value_width) = (config.width(), config.value_width());
        Self {
            sizes,
            q: pack(query, width),
            k: pack(&operands[Slot::Key], width),
            values: pack(&operands[Slot::Values], value_width),
            slopes: small(Slot::Slope),
            decay: small(Slot::Decay),
            decay_residual: small(Slot::DecayResidual),
            log: empty(query, &[batch, heads, padded(rows)], DType::F32),
            first_row: spec.first_row,
            scale: spec.content_scale.unwrap_or(1.0),
        }
    }

    fn inputs(&self) -> InputsLaunch {
        let Self { q, k, values, slopes, decay, decay_residual, .. } = self;
        let [q, k, values, slopes, decay, decay_residual] =
            [q, k, values, slopes, decay, decay_residual]
                .map(|tensor| tensor.clone().into_buffer_arg());
        InputsLaunch::new(q, k, values, slopes, decay, decay_residual)
    }

    fn place(&self) -> LaunchSizesLaunch {
        let Sizes { heads, rows, columns, .. } = self.sizes;
        LaunchSizesLaunch::new(heads, rows, columns, self.first_row, self.scale)
    }
}

/// Computes the output and what its gradient needs.
pub(in crate::kernels::gpu) fn forward(
    operands: &Operands<Cube>,
    spec: &Spec,
    config: MmaConfig,
) -> Forward {
    let packed = Packed::new(operands, spec, config);
    let Sizes { batch, heads, rows, value_dim, .. } = packed.sizes;
    let output = by_token(&operands[Slot::Query], [batch, heads, rows, value_dim]);
    let Grid { count, dim } = grid(rows.div_ceil(OWNED), batch * heads);
    // SAFETY: packed tensors are padded to whole blocks, and the kernel writes only rows that exist.
    unsafe {
        forward_kernel::launch_unchecked(
            &packed.q.client,
            count,
            dim,
            packed.inputs(),
            packed.place(),
            buffer(&output),
            packed.log.clone().into_buffer_arg(),
            config,
        );
    }
    Forward { output, packed }
}

/// Gradients as the kernels write them.
struct Backward {
    q: CubeTensor,
    k: CubeTensor,
    values: CubeTensor,
    /// Gradients of the slopes by row, `[B, H, T]`.
    slopes: CubeTensor,
    /// Gradients of the rows' running sums, `[B, H, T]`.
    row_decay: CubeTensor,
    /// Gradients of the columns' running sums, `[B, H, S]`.
    column_decay: CubeTensor,
}

impl Backward {
    fn unwritten(sizes: Sizes, like: &CubeTensor, config: MmaConfig) -> Self {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = sizes;
        let numbers = |written: bool, len: usize| {
            let shape = if written { [batch, heads, len] } else { [1, 1, 1] };
            empty(like, &shape, DType::F32)
        };
        Self {
            q: by_token(like, [batch, heads, rows, head_dim]),
            k: by_token(like, [batch, heads, columns, head_dim]),
            values: by_token(like, [batch, heads, columns, value_dim]),
            slopes: numbers(config.slopes, rows),
            row_decay: numbers(config.decay, rows),
            column_decay: numbers(config.decay, columns),
        }
    }
}

fn upstream(forward: &Forward, grad: &CubeTensor, config: MmaConfig) -> [CubeTensor; 2] {
    let Sizes { batch, heads, rows, value_dim, .. } = forward.packed.sizes;
    let (like, width) = (&forward.output, config.value_width());
    let packed = empty(like, &[batch, heads, padded(rows), width], DType::BF16);
    let statistics = empty(like, &[batch, heads, padded(rows), 2], DType::F32);
    let grad = whole_rows(grad);
    let Grid { count, dim } = grid(padded(rows) / PACKED, batch * heads);
    // SAFETY: cubes cover the packed rows exactly, and read only rows and channels that exist.
    unsafe {
        pack_upstream_kernel::launch_unchecked(
            &like.client,
            count,
            dim,
            strided(&grad),
            strided(&forward.output),
            forward.packed.log.clone().into_buffer_arg(),
            packed.clone().into_buffer_arg(),
            statistics.clone().into_buffer_arg(),
            value_dim,
            width,
        );
    }
    [packed, statistics]
}

fn backward(forward: &Forward, grad: &CubeTensor, config: MmaConfig) -> Backward {
    let packed = &forward.packed;
    let Sizes { batch, heads, rows, columns, .. } = packed.sizes;
    let flat = |tensor: &CubeTensor| tensor.clone().into_buffer_arg();
    let [grad, statistics] = upstream(forward, grad, config);
    let upstream = || UpstreamLaunch::new(flat(&grad), flat(&statistics));
    let written = Backward::unwritten(packed.sizes, &forward.output, config);
    let Grid { count, dim } = grid(rows.div_ceil(OWNED), batch * heads);
    // SAFETY: packed tensors are padded to whole blocks, and the kernels write only rows that exist.
    unsafe {
        dq_kernel::launch_unchecked(
            &packed.q.client,
            count,
            dim,
            packed.inputs(),
            packed.place(),
            upstream(),
            RowGradientsLaunch::new(
                buffer(&written.q),
                flat(&written.slopes),
                flat(&written.row_decay),
            ),
            config,
        );
    }
    let Grid { count, dim } = grid(columns.div_ceil(OWNED), batch * heads);
    // SAFETY: as above.
    unsafe {
        dkv_kernel::launch_unchecked(
            &packed.q.client,
            count,
            dim,
            packed.inputs(),
            packed.place(),
            upstream(),
            ColumnGradientsLaunch::new(
                buffer(&written.k),
                buffer(&written.values),
                flat(&written.column_decay),
            ),
            config,
        );
    }
    written
}

/// Computes the gradients of all operands in the order of their slots; `None` for absent operands. `grad` is that of the
/// output.
pub(in crate::kernels::gpu) fn gradients(
    forward: &Forward,
    grad: &CubeTensor,
    config: MmaConfig,
) -> [Option<CubeTensor>; SLOTS] {
    let Backward { q, k, values, slopes, row_decay, column_decay } =
        backward(forward, grad, config);
    let decay = config.decay.then(|| decay(row_decay, column_decay, forward.packed.first_row));
    let mut gradients = [const { None }; SLOTS];
    gradients[Slot::Query as usize] = Some(q);
    gradients[Slot::Key as usize] = Some(k);
    gradients[Slot::Values as usize] = Some(values);
    if config.slopes {
        let heads = Shape::from([forward.packed.sizes.heads]);
        let sum = Cube::float_sum_dim(Cube::float_sum_dim(slopes, 2), 0);
        gradients[Slot::Slope as usize] = Some(Cube::float_reshape(sum, heads));
    }
    if config.decay_residual {
        // Both operands are added to the same logits and have the same gradient.
        gradients[Slot::DecayResidual as usize].clone_from(&decay);
    }
    gradients[Slot::Decay as usize] = decay;
    gradients
}

/// Adds the gradients that running sums have as rows to those that they have as columns.
fn decay(rows: CubeTensor, columns: CubeTensor, first_row: usize) -> CubeTensor {
    if first_row == 0 {
        return Cube::float_add(columns, rows);
    }
    let [batch, heads, _] = columns.meta.shape().dims();
    let before = Shape::from([batch, heads, first_row]);
    let before = Cube::float_zeros(before, &columns.device, burn::tensor::FloatDType::F32);
    Cube::float_add(columns, Cube::float_cat(vec![before, rows], 2))
}
