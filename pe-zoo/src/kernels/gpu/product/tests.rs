use burn::tensor::TensorData;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::init::standard_normal;
use crate::testkit::close::{self, F32, numbers};

/// The device under test: that of wgpu, or without it the first NVIDIA GPU.
fn gpu() -> Device {
    #[cfg(feature = "wgpu")]
    return Device::wgpu(burn::tensor::DeviceKind::DefaultDevice);
    #[cfg(not(feature = "wgpu"))]
    Device::cuda(0)
}

fn leaf<const D: usize>(device: &Device, dtype: DType, shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = shape.iter().product::<usize>();
    let values = (0..count).map(|_| f64::from(standard_normal(&mut rng) as f32));
    let data = TensorData::new(values.collect::<Vec<_>>(), shape);
    Tensor::from_data(data, (device, dtype)).require_grad()
}

/// Computes the product and both gradients; `turn` selects the factors that are stored with
/// their last axes exchanged.
fn all<const D: usize>(
    (device, dtype): (&Device, DType),
    shapes: [[usize; D]; 2],
    turn: [bool; 2],
    product: fn(Tensor<D>, Tensor<D>) -> Tensor<D>,
) -> [Vec<f64>; 3] {
    let stored = |at: usize| {
        let mut shape = shapes[at];
        if turn[at] {
            shape.swap(D - 2, D - 1);
        }
        leaf(device, dtype, shape, at as u64)
    };
    let seen = |x: &Tensor<D>, at: usize| {
        if turn[at] { x.clone().swap_dims(D - 2, D - 1) } else { x.clone() }
    };
    let (left, right) = (stored(0), stored(1));
    let product = product(seen(&left, 0), seen(&right, 1));
    let upstream = leaf(device, dtype, product.dims(), 2).detach();
    let grads = (product.clone() * upstream).sum().backward();
    let grad = |x: &Tensor<D>| numbers(x.grad(&grads).expect("a gradient"));
    [numbers(product), grad(&left), grad(&right)]
}

fn check<const D: usize>(left: [usize; D], right: [usize; D]) {
    let flex = Device::flex().autodiff();
    let gpu = gpu().autodiff();
    for turn in [[false, false], [true, false], [false, true], [true, true]] {
        let found = all((&gpu, DType::F32), [left, right], turn, super::product);
        let expected = all((&flex, DType::F64), [left, right], turn, Tensor::matmul);
        for (what, (found, expected)) in
            ["product", "left", "right"].iter().zip(found.iter().zip(&expected))
        {
            close::compare(found, expected, F32)
                .map_err(|e| format!("{what} of {left:?} x {right:?}, {turn:?}: {e}"))
                .expect("the same");
        }
    }
}

#[test]
fn products_and_gradients_equal_those_in_f64() {
    check([1, 1], [1, 1]);
    check([1, 7], [7, 1]);
    check([5, 1], [1, 3]);
    check([33, 17], [17, 65]);
    check([128, 64], [64, 96]);
    check([2, 3, 5, 8], [2, 3, 8, 6]);
    check([4, 2, 13, 9], [4, 2, 9, 30]);
}

#[test]
fn leading_axes_of_length_1_are_repeated() {
    check([6, 5, 4], [1, 4, 3]);
    check([1, 5, 4], [6, 4, 3]);
    check([2, 3, 5, 4], [1, 3, 4, 7]);
    check([2, 1, 5, 4], [1, 3, 4, 7]);
}

#[test]
fn what_is_empty_gives_nothing_or_zeros() {
    let gpu = gpu();
    let of = |rows, inner, columns| {
        let (left, right) =
            (Tensor::<2>::zeros([rows, inner], &gpu), Tensor::zeros([inner, columns], &gpu));
        super::product(left, right)
    };
    assert_eq!(of(0, 3, 2).dims(), [0, 2]);
    assert_eq!(numbers(of(2, 0, 3)), vec![0.0; 6]);
}
