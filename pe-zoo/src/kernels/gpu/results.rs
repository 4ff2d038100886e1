//! Result buffers of the kernels.

use burn::backend::Cube;
use burn::tensor::{DType, Shape};
use burn_cubecl::ops::numeric::{empty_device_contiguous_dtype, zeros_client};
use burn_cubecl::tensor::CubeTensor;

use super::arguments::last_axis;
use super::config::KernelConfig;
use super::heads::by_token;
use super::inputs::OutputsLaunch;
use crate::kernels::operands::{Operands, Sizes, Slot, present};

/// Results of the forward kernel.
#[derive(Debug, Clone)]
pub(super) struct Forward {
    /// Attention output, `[B, H, T, E]`, in memory `[B, T, H, E]`.
    pub(super) output: CubeTensor,
    /// Logarithms of the softmax denominators or of the stick-breaking remainders, `[B, H, T]`.
    pub(super) log: CubeTensor,
}

/// Gradient of the output and results of the forward pass, which the backward kernel reads.
pub(super) struct OutputGradient {
    /// `[B, H, T, E]`, dense.
    pub(super) grad: CubeTensor,
    /// Logarithms of the forward pass, `[B, H, T]`, contiguous.
    pub(super) log: CubeTensor,
    /// Dot products of output and gradient, `[B, H, T]`, contiguous.
    pub(super) share: CubeTensor,
}

fn empty(like: &CubeTensor, shape: Shape) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, DType::F32)
}

/// Allocates zeros in row-major order. A tensor of several axes would get padded rows on CUDA, which
/// the kernels do not support.
fn zeros(like: &CubeTensor, shape: Shape) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    let flat = Shape::from([shape.num_elements()]);
    let zeros = zeros_client(client.clone(), device.clone(), flat, DType::F32);
    CubeTensor::new_contiguous(client, device, shape, zeros.handle, DType::F32)
}

/// Allocates uninitialised buffers for the results of the forward kernel.
pub(super) fn unwritten(operands: &Operands<Cube>) -> Forward {
    let Sizes { batch, heads, rows, value_dim, .. } = operands.sizes();
    Forward {
        output: by_token(&operands[Slot::Query], [batch, heads, rows, value_dim]),
        log: empty(&operands[Slot::Query], Shape::from([batch, heads, rows])),
    }
}

/// Gradients as the backward kernel writes them.
#[derive(Debug)]
pub(super) struct Backward {
    pub(super) config: KernelConfig,
    /// Gradients of the queries, `[B, T, H, D]`.
    pub(super) q: CubeTensor,
    /// Gradients of the keys, `[slots, B, S, H, D]`.
    pub(super) k: CubeTensor,
    /// Gradients of the values, `[slots, B, S, H, E]`.
    pub(super) values: CubeTensor,
    /// Gradients of the gate keys, `[slots, B, S, H, D]`, if there are gate keys.
    pub(super) gate_keys: CubeTensor,
    /// Gradients of the distance table, `[slots, B, H, N]`, if there is one.
    pub(super) distance: CubeTensor,
    /// Gradients of the running sums, `[slots, B, H, S]`, if there are running sums.
    pub(super) decay: CubeTensor,
    /// Gradients of the dense bias, `[B, H, T, S]`, if there is a dense bias.
    pub(super) dense: CubeTensor,
    /// Gradients that belong to rows, `[B, H, T, KernelConfig::row_grads]`.
    pub(super) rows: CubeTensor,
}

impl Backward {
    /// Returns the buffers in the order of [`Outputs`](super::inputs::Outputs).
    pub(super) fn tensors(&self) -> [&CubeTensor; 8] {
        let Self { config: _, q, k, values, gate_keys, distance, decay, dense, rows } = self;
        [q, k, values, gate_keys, distance, decay, dense, rows]
    }

    pub(super) fn outputs(&self) -> OutputsLaunch {
        let [q, k, values, gate_keys, distance, decay, dense, rows] =
            self.tensors().map(|tensor| tensor.clone().into_buffer_arg());
        OutputsLaunch::new(q, k, values, gate_keys, distance, decay, dense, rows)
    }
}

/// Allocates buffers of zeros for the gradients.
pub(super) fn zeroed(operands: &Operands<Cube>, config: KernelConfig, slots: usize) -> Backward {
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = operands.sizes();
    let like = &operands[Slot::Query];
    let unless = |operand: &CubeTensor, shape: &[usize]| {
        let shape = if present(operand) { shape.to_vec() } else { vec![1] };
        zeros(like, Shape::from(shape))
    };
    let entries = last_axis(&operands[Slot::Distance]);
    let row_grads = config.row_grads(last_axis(&operands[Slot::QueryDistance]));
    Backward {
        config,
        q: empty(like, Shape::from([batch, rows, heads, head_dim])),
        k: zeros(like, Shape::from([slots, batch, columns, heads, head_dim])),
        values: zeros(like, Shape::from([slots, batch, columns, heads, value_dim])),
        gate_keys: unless(
            &operands[Slot::ContextualGateKeys],
            &[slots, batch, columns, heads, head_dim],
        ),
        distance: unless(&operands[Slot::Distance], &[slots, batch, heads, entries]),
        decay: unless(&operands[Slot::Decay], &[slots, batch, heads, columns]),
        dense: unless(&operands[Slot::Dense], &[batch, heads, rows, columns]),
        rows: zeros(like, Shape::from([batch, heads, rows, row_grads])),
    }
}
