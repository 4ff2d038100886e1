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
mod tests {
    use super::*;
    use crate::ops;
    use crate::testkit::close::{self, Tolerance, numbers};

    /// Tolerance for three roundings to eight bits, of terms near 1.
    const BF16: Tolerance = Tolerance { absolute: 2e-2, relative: 2e-2 };

    #[test]
    fn f32_is_everywhere_and_changes_nothing() {
        let device = Device::flex();
        assert!(MatmulPrecision::F32.available(&device));
        let x = Tensor::<2>::from_floats([[0.1, 0.7], [1.3, -0.2]], &device);
        let plain = ops::linear(x.clone(), x.clone(), None);
        let same = ops::linear_of(MatmulPrecision::F32, x.clone(), x, None);
        assert_eq!(numbers(plain), numbers(same));
    }

    #[test]
    fn rounded_factors_give_the_product_to_eight_bits_and_its_gradients() {
        let device = Device::flex().autodiff();
        assert!(MatmulPrecision::Bf16.available(&device));
        let values =
            |n: usize, by: f64| (0..n).map(|i| (by * i as f64).sin() as f32).collect::<Vec<_>>();
        let run = |precision| {
            let tensor = |by| Tensor::<1>::from_data(values(12, by).as_slice(), &device);
            let x = tensor(1.1).reshape([3, 4]).require_grad();
            let weight = tensor(0.7).reshape([4, 3]).require_grad();
            let output = ops::linear_of(precision, x.clone(), weight.clone(), None);
            let grads = output.clone().powf_scalar(2.0).sum().backward();
            let grads = [x.grad(&grads), weight.grad(&grads)];
            let mut all = numbers(output);
            all.extend(grads.into_iter().flatten().flat_map(numbers));
            all
        };
        let (rounded, exact) = (run(MatmulPrecision::Bf16), run(MatmulPrecision::F32));
        assert_eq!(exact.len(), 9 + 12 + 12);
        assert_ne!(rounded, exact, "nothing was rounded");
        close::compare(&rounded, &exact, BF16).unwrap();
    }
}
