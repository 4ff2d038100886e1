//! Kernels of attention for the CPU and for GPUs, and the operands that both take.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `operands`, `spec` | tensors and settings of one attention |
//! | `linear_map` | a linear map and its bias |
//! | `pairs` | which channels are rotated together |
//! | `input_tensors` | inputs of operations that extend a backend |
//! | `recomputed` | functions that the backward pass computes again |
//! | `cpu` | kernels in SIMD for Flex, and the parts that the operations of models share |
//! | `gpu` | kernels in CubeCL for CUDA, Vulkan, Metal and WebGPU |
//! | `activation` | activations of feed-forward networks |
//! | `precision` | the width of the factors of matrix products |

pub(crate) mod activation;
#[cfg(feature = "flex")]
pub(crate) mod cpu;
#[cfg(feature = "cube")]
pub(crate) mod gpu;
#[cfg(any(feature = "flex", feature = "cube"))]
pub(crate) mod input_tensors;
pub(crate) mod linear_map;
#[cfg(any(feature = "flex", feature = "cube"))]
pub(crate) mod operands;
pub(crate) mod pairs;
pub(crate) mod precision;
#[cfg(any(feature = "flex", feature = "cube"))]
pub(crate) mod recomputed;
#[cfg(any(feature = "flex", feature = "cube"))]
pub(crate) mod spec;

use burn::backend::DispatchDevice;
use burn::tensor::{Device, Tensor};

/// Set of attention kernels for a kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernels {
    /// CPU kernels of the module `cpu`.
    Cpu,
    /// GPU kernels of the module `gpu`.
    Gpu,
    /// Those of them on tensor cores, for modifiers that `ScoreMod::for_cores` gives to them.
    GpuCores,
}

/// Returns the kernels for tensors of this device; `None` if there are none.
pub(crate) fn of(device: &Device) -> Option<Kernels> {
    match device.clone().inner().as_dispatch() {
        #[cfg(feature = "flex")]
        DispatchDevice::Flex(_) => Some(Kernels::Cpu),
        #[cfg(feature = "cube")]
        DispatchDevice::Cube(_) => Some(Kernels::Gpu),
        _ => None,
    }
}

/// Whether tensors of this device are computed by the kernels for the CPU.
pub(crate) fn on_cpu(device: &Device) -> bool {
    of(device) == Some(Kernels::Cpu)
}

/// Multiplies `[.., M, K] x [.., K, N] -> [.., M, N]` without rounding f32 factors; leading axes of
/// length 1 are repeated.
///
/// The product is not counted; see [`CountedMatmul`](crate::count::CountedMatmul).
pub fn product<const D: usize>(left: Tensor<D>, right: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "cube")]
    if [left.dtype(), right.dtype()] == [burn::tensor::DType::F32; 2] && gpu::rounds(&left.device())
    {
        return gpu::product(left, right);
    }
    left.matmul(right)
}
