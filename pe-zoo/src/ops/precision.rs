//! Linear maps with rounded factors, and detection of the devices that support them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::{DType, Device, Tensor};

use super::MatmulPrecision;

impl MatmulPrecision {
    /// Whether a device supports products of this precision.
    pub fn available(self, device: &Device) -> bool {
        match self {
            Self::F32 => true,
            Self::Tf32 => has_tf32(device),
            Self::Bf16 => device.supports_dtype(DType::BF16) && multiplies(device),
        }
    }
}

#[cfg(feature = "cube")]
use crate::kernels::gpu::has_tf32;
/// Always false, because only GPUs have tensor cores.
#[cfg(not(feature = "cube"))]
fn has_tf32(_device: &Device) -> bool {
    false
}

/// Whether a product of ones is correct; some devices can store a type but not compute with it.
fn multiplies(device: &Device) -> bool {
    let product = || {
        let ones = Tensor::<2>::ones([4, 4], (device, DType::BF16));
        ones.clone().matmul(ones).cast(DType::F32).into_data().try_into_vec::<f32>().ok()
    };
    catch_unwind(AssertUnwindSafe(product)).ok().flatten() == Some(vec![4.0; 16])
}

/// Computes `x weight + bias` with rounded factors.
pub(super) fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    let (x, weight) = (x.cast(DType::BF16), weight.cast(DType::BF16));
    let product = burn::tensor::module::linear(x, weight, None).cast(DType::F32);
    match bias {
        Some(bias) => product + bias.unsqueeze(),
        None => product,
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
