use burn::tensor::{Device, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::init::standard_normal;
use crate::testkit::close::{self, Tolerance, numbers};

fn gpu() -> Device {
    #[cfg(feature = "wgpu")]
    return Device::wgpu(burn::tensor::DeviceKind::DefaultDevice);
    #[cfg(not(feature = "wgpu"))]
    Device::cuda(0)
}

fn leaf<const D: usize>(shape: [usize; D], seed: u64, device: &Device, dtype: DType) -> Tensor<D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = shape.iter().product::<usize>();
    let values = (0..count).map(|_| f64::from(standard_normal(&mut rng) as f32));
    let data = TensorData::new(values.collect::<Vec<_>>(), shape);
    Tensor::from_data(data, (device, dtype)).require_grad()
}

/// Outputs of a map with and one without bias, and the gradients of the input, both weights and the bias.
fn all<const D: usize>(
    shape: [usize; D],
    outputs: usize,
    (device, dtype): (&Device, DType),
    map: impl Fn(Tensor<D>, LinearMap) -> Tensor<D>,
) -> Vec<Vec<f64>> {
    let x = leaf(shape, 1, device, dtype);
    let weights = [2, 3].map(|seed| leaf([shape[D - 1], outputs], seed, device, dtype));
    let bias = leaf([outputs], 4, device, dtype);
    let [first, second] = weights.clone();
    let maps = [
        map(x.clone(), LinearMap { weight: first, bias: Some(bias.clone()) }),
        map(x.clone(), LinearMap { weight: second, bias: None }),
    ];
    let upstream = |seed| leaf(maps[0].dims(), seed, device, dtype).detach();
    let [a, b] = maps.clone();
    let grads = ((a * upstream(5)).sum() + (b * upstream(6)).sum()).backward();
    let [first, second] = weights;
    let of_matrices = [first.grad(&grads), second.grad(&grads)];
    let mut all = Vec::from(maps.map(numbers));
    all.push(numbers(x.grad(&grads).unwrap()));
    all.extend(of_matrices.map(|grad| numbers(grad.unwrap())));
    all.push(numbers(bias.grad(&grads).unwrap()));
    all
}

fn check<const D: usize>(shape: [usize; D], outputs: usize) {
    let device = gpu().autodiff();
    let flex = Device::flex().autodiff();
    let expected = all(shape, outputs, (&flex, DType::F64), |x, LinearMap { weight, bias }| {
        burn::tensor::module::linear(x, weight, bias)
    });
    // Rounding to 24 and to 11 bits, of sums of up to 8192 terms; as a share of the largest number.
    for (factors, share) in [(DType::F32, 2e-6), (DType::F16, 2e-3)] {
        if !device.supports_dtype(factors) {
            continue;
        }
        let run = || all(shape, outputs, (&device, DType::F32), |x, map| linear(factors, x, map));
        let on_gpu = run();
        assert_eq!(on_gpu, run(), "{factors:?}, {shape:?}: two runs differ");
        for (at, (on_gpu, expected)) in on_gpu.iter().zip(&expected).enumerate() {
            let largest = expected.iter().fold(1.0_f64, |most, x| most.max(x.abs()));
            let tolerance = Tolerance { absolute: share * largest, relative: 10.0 * share };
            close::compare(on_gpu, expected, tolerance)
                .map_err(|error| format!("{factors:?}, {shape:?} to {outputs}, {at}: {error}"))
                .unwrap();
        }
    }
}

#[test]
fn rounded_maps_and_their_gradients_equal_those_in_f64() {
    check([1, 1], 1);
    check([5, 3], 7);
    check([2, 9, 16], 8);
    check([2, 3, 4, 5], 6);
}

#[test]
fn the_gradient_of_a_weight_is_a_sum_of_slices() {
    let slices = |rows, inputs, outputs| map::slices_of(MapSizes { rows, inputs, outputs });
    let of_rows = [1, 1023, 2047, 2048, 3072, 4096, 1 << 20].map(|rows| slices(rows, 512, 512));
    assert_eq!(of_rows, [1, 1, 1, 2, 2, 4, 16]);
    assert_eq!(slices(1 << 20, 512, 2048), 4);
    assert_eq!(slices(1 << 20, 4096, 4096), 1);
    check([2, 4096, 8], 4);
}
