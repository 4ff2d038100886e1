//! The fused engine's kernels for GPUs, in CubeCL: one source for CUDA and for wgpu (Vulkan, Metal,
//! WebGPU).
//!
//! A cube (a thread block, a workgroup) takes a block of query rows of one head and walks over blocks
//! of keys from the diagonal to the left. Suffix sums are carried in registers; once every row of the
//! block has counted past the largest contextual position, gates are not read any more. The softmax
//! subtracts the running maximum of the logits, in f32. The output and one number per row are kept for
//! the backward pass, so that memory is linear in the number of rows.
//!
//! The backward pass recomputes logits and weights. Sums whose direction is opposite to the walk
//! (through gates, and over older sticks) are computed as the total minus the part already passed; for
//! gates the total needs an additional walk. No two cubes and no two units add to the same sum: each
//! cube has its own slot, and slots are added in a fixed order, so that results are deterministic.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `op`, `product`, `linear`, `heads_of_map`, `feed_forward` | the operations that Burn differentiates |
//! | `elementwise`, `operation` | operations of models besides attention, and how Burn differentiates them |
//! | `config`, `inputs` | compile-time settings and arguments of the kernels |
//! | `launch`, `lab` | choice of a configuration and of the number of cubes, and choices of measurements |
//! | `arguments`, `results`, `collect` | buffers in and out, and sums over slots |
//! | `heads` | order of the axes of queries, keys, values and their gradients in memory |
//! | `mma` | kernels on `mma.sync` in place of the following, where a device and an attention allow |
//! | `forward`, `backward` | the two kernels |
//! | `block`, `gradients` | one block of logits, and of their gradients |
//! | `logits`, `contextual` | biases |
//! | `tile`, `cores` | products of blocks, by every unit or by tensor cores |
//! | `sums`, `scatter` | sums of gradients per row, column and distance |

#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::assign_op_pattern,
    clippy::collapsible_if,
    clippy::borrowed_box,
    clippy::too_many_lines,
    reason = "in the kernel language these are arrays, its handles and operators, and what the compiler decides"
)]

mod arguments;
mod backward;
mod block;
mod collect;
mod config;
mod contextual;
mod cores;
pub(crate) mod elementwise;
pub(crate) mod feed_forward;
mod forward;
mod gradients;
mod heads;
pub(crate) mod heads_of_map;
mod inputs;
#[cfg(feature = "lab")]
pub(crate) mod lab;
mod launch;
mod linear;
mod logits;
mod mma;
mod op;
pub(crate) mod operation;
mod product;
mod results;
mod scatter;
mod sinks;
mod sums;
mod tile;

use burn::backend::{Dispatch, DispatchDevice};
use burn::tensor::{DType, Device, Tensor};

use crate::kernels::input_tensors::InputTensors;
use crate::kernels::operands::{Operands, Sizes};
use crate::kernels::precision::MatmulPrecision;
use crate::kernels::spec::Spec;
use crate::score::NeedsOfCores;
pub(crate) use linear::linear;
#[cfg(feature = "lab")]
pub use linear::multiply_on_mma;
use op::CubeAttention;
pub(crate) use product::{has_tf32, product, rounds};

/// Number of columns whose maps change the queries of later blocks together, where tokens reflect products.
pub(crate) const REFLECTED_CHUNK: usize = mma::OWNED;

/// Whether tensors of this type can be converted for the kernels, which compute in f32.
pub(crate) fn takes(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// Whether the kernels on tensor cores compute an attention under a modifier with these needs, from the device, the precision and
/// the shapes of queries and values.
pub(crate) fn on_cores(
    device: &Device,
    precision: MatmulPrecision,
    q: [usize; 4],
    values: [usize; 4],
    needs: NeedsOfCores,
) -> bool {
    let device = device.clone().inner();
    let DispatchDevice::Cube(device) = device.as_dispatch() else {
        return false;
    };
    let [batch, heads, rows, head_dim] = q;
    let [_batch, _heads, columns, value_dim] = values;
    let sizes = Sizes { batch, heads, rows, columns, head_dim, value_dim };
    mma::takes(&device.client(), sizes, precision, needs)
}

/// Computes attention, `[B, H, T, E]`; `None` if no block of these operands fits into the device's
/// shared memory.
pub(crate) fn attend(
    device: &Device,
    operands: Operands<Dispatch>,
    spec: Spec,
) -> Option<Tensor<4>> {
    let device = device.clone().inner();
    let DispatchDevice::Cube(device) = device.as_dispatch() else {
        return None;
    };
    launch::fits(&device.client(), &operands, &spec).then(|| {
        let operands = InputTensors(Vec::from(operands.0));
        Tensor::from_dispatch(<Dispatch as CubeAttention>::cube_attention(operands, spec))
    })
}

/// Channels of the second products with which the kernels on tensor cores compute an attention; `None` if they do not take it.
#[cfg(all(test, feature = "flex"))]
pub(crate) fn second_dim_on_cores(operands: &Operands<Dispatch>, spec: &Spec) -> Option<usize> {
    mma::supported(operands, spec).map(|config| config.second_dim())
}

/// Whether the channels of products decay where the kernels on tensor cores compute an attention; `None` if they do not take it.
#[cfg(all(test, feature = "flex"))]
pub(crate) fn channels_decay_on_cores(operands: &Operands<Dispatch>, spec: &Spec) -> Option<bool> {
    mma::supported(operands, spec).map(|config| config.decays_channels())
}

/// Whether queries change from block to block where the kernels on tensor cores compute an attention; `None` if they do not take it.
#[cfg(all(test, feature = "flex"))]
pub(crate) fn reflects_on_cores(operands: &Operands<Dispatch>, spec: &Spec) -> Option<bool> {
    mma::supported(operands, spec).map(|config| config.reflects())
}

#[cfg(all(test, any(feature = "cores-sim", feature = "ptx")))]
mod testing;
