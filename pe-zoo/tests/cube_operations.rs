//! Comparison of the operations of models on GPUs with plain tensor operations in f64: outputs and every gradient, and the same
//! bits in two runs.
//!
//! Runs on any device that wgpu finds, or with `cuda` and without `wgpu` on the first NVIDIA GPU; `ci/gpu-sim.sh`
//! installs a software Vulkan for machines without a GPU.
#![cfg(all(any(feature = "wgpu", feature = "cuda"), feature = "flex"))]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::sync::OnceLock;

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};
use pe_zoo::init::standard_normal;
use pe_zoo::ops::{self, AdamW, AdamWSteps, GateFunction, Moments, Pairs};
use pe_zoo::parts::running_sum;
use pe_zoo::testkit::close::{self, Tolerance, numbers};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// f32 in another order against f64, through sums of a thousand terms; as a share of the largest number.
const F32_SUMS: Tolerance = Tolerance { absolute: 4e-6, relative: 4e-5 };

/// Device with the type of its numbers.
type Side = (Device, DType);

fn gpu() -> Side {
    #[cfg(feature = "wgpu")]
    let gpu = Device::wgpu(burn::tensor::DeviceKind::DefaultDevice);
    #[cfg(not(feature = "wgpu"))]
    let gpu = Device::cuda(0);
    (gpu.autodiff(), DType::F32)
}

/// The processor, on which operations in f64 are plain tensor operations.
fn reference() -> Side {
    static FLEX: OnceLock<Device> = OnceLock::new();
    let flex = FLEX.get_or_init(|| {
        let mut device = Device::flex();
        device.configure(FloatDType::F64).unwrap();
        device
    });
    (flex.clone().autodiff(), DType::F64)
}

/// Random numbers, the same on both sides.
fn random([rows, width]: [usize; 2], seed: u64, (device, dtype): &Side) -> Tensor<2> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values = (0..rows * width).map(|_| f64::from(2.0 * standard_normal(&mut rng) as f32));
    let data = TensorData::new(values.collect::<Vec<_>>(), [rows, width]);
    Tensor::from_data(data, (device, *dtype))
}

fn integers(values: &[i32], (device, _): &Side) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), device)
}

/// Output of an operation on random leaves, and their gradients.
fn all<const D: usize>(
    shapes: &[[usize; 2]],
    side: &Side,
    operation: &dyn Fn(&[Tensor<2>], &Side) -> Tensor<D>,
) -> Vec<Vec<f64>> {
    let leaves = shapes.iter().zip(1..).map(|(shape, seed)| random(*shape, seed, side));
    let leaves = leaves.map(Tensor::require_grad).collect::<Vec<_>>();
    let output = operation(&leaves, side);
    let count = output.shape().num_elements();
    let upstream = random([1, count], 9, side).reshape(output.dims());
    let grads = (output.clone() * upstream).sum().backward();
    let of_leaves = leaves.iter().map(|leaf| numbers(leaf.grad(&grads).expect("a gradient")));
    [numbers(output)].into_iter().chain(of_leaves).collect()
}

fn compare<const D: usize>(
    name: &str,
    shapes: &[[usize; 2]],
    operation: impl Fn(&[Tensor<2>], &Side) -> Tensor<D>,
) {
    let found = all(shapes, &gpu(), &operation);
    assert_eq!(found, all(shapes, &gpu(), &operation), "{name}, {shapes:?}: two runs differ");
    let expected = all(shapes, &reference(), &operation);
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let largest = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
        let tolerance = Tolerance { absolute: F32_SUMS.absolute * largest, ..F32_SUMS };
        let what = if at == 0 { "output".to_owned() } else { format!("gradient {at}") };
        close::compare(found, expected, tolerance)
            .map_err(|error| format!("{name}, {shapes:?}, {what}: {error}"))
            .unwrap();
    }
}

fn vector(x: &Tensor<2>) -> Tensor<1> {
    x.clone().reshape([x.shape().num_elements()])
}

/// The derivative is that of the function itself: Burn's in f64 is of another formula, so the difference quotient is the
/// reference.
#[test]
fn gelu_has_the_derivative_of_its_function() {
    for shape in [[1, 1], [3, 5], [7, 64], [33, 100]] {
        let found = all(&[shape], &gpu(), &|leaves, _| ops::gelu(leaves[0].clone()));
        let side = reference();
        let x = random(shape, 1, &side).inner();
        let upstream = random([1, shape[0] * shape[1]], 9, &side).reshape(shape).inner();
        let step = 1e-5;
        let rise = ops::gelu(x.clone() + step) - ops::gelu(x.clone() - step);
        let expected = [numbers(ops::gelu(x)), numbers(rise / (2.0 * step) * upstream)];
        for (found, expected) in found.iter().zip(&expected) {
            close::compare(found, expected, F32_SUMS).unwrap();
        }
    }
}

#[test]
fn gated() {
    for (gate, shape) in [GateFunction::Silu, GateFunction::Gelu]
        .into_iter()
        .flat_map(|gate| [[1, 2], [5, 6], [9, 64], [40, 24]].map(|shape| (gate, shape)))
    {
        compare("gated", &[shape], |leaves, _| ops::gated(leaves[0].clone(), gate));
        let turned = [shape[1], shape[0]];
        compare("gated, of a transposed input", &[turned], |leaves, _| {
            ops::gated(leaves[0].clone().transpose(), gate)
        });
    }
}

/// Widths below and above the units of a cube, that no vector divides; rows of several parts.
#[test]
fn norms() {
    for [rows, width] in [[1, 1], [3, 5], [70, 64], [130, 33], [65, 512], [3, 1030]] {
        compare("layer_norm", &[[rows, width], [1, width], [1, width]], |leaves, _| {
            ops::layer_norm(leaves[0].clone(), vector(&leaves[1]), vector(&leaves[2]), 1e-5)
        });
        compare("rms_norm", &[[rows, width], [1, width]], |leaves, _| {
            ops::rms_norm(leaves[0].clone(), vector(&leaves[1]), 1e-5)
        });
    }
}

/// Queries and keys have the order of projections in memory; others have each order that a slice or an exchange of axes makes.
#[test]
fn running_sums() {
    for [rows, len] in [[1, 1], [6, 70], [4, 256], [6, 1000]] {
        compare("running sums", &[[2 * rows, len]], |leaves, _| {
            running_sum(leaves[0].clone().reshape([2, rows, len])).rounded
        });
    }
}

#[test]
fn differences_of_running_sums_are_right_to_f32() {
    let terms = (0..8192).map(|t| -0.7 - 0.1 * (t as f32).sin()).collect::<Vec<_>>();
    let data = TensorData::new(terms.clone(), [1, 1, terms.len()]);
    let sums = running_sum(Tensor::from_data(data, &gpu().0));
    let (rounded, lost) = (numbers(sums.rounded), numbers(sums.lost.unwrap()));
    for i in (40..terms.len()).step_by(17) {
        let exact = terms[i - 39..=i].iter().map(|x| f64::from(*x)).sum::<f64>();
        let plain = (rounded[i] - rounded[i - 40]) as f32;
        let mended = plain + (lost[i] - lost[i - 40]) as f32;
        assert!((f64::from(mended) - exact).abs() < 1e-5, "{mended} for {exact}");
    }
}

#[test]
fn rotate() {
    for [batch, heads, tokens, width] in [[1, 1, 1, 2], [2, 3, 5, 6], [2, 3, 7, 8], [1, 2, 70, 64]]
    {
        let shape = [batch, heads, tokens, width];
        for pairs in [Pairs::HalfSplit, Pairs::Interleaved] {
            let rotated = |x: Tensor<4>, side: &Side| {
                let angles = random([tokens, width / 2], 8, side).inner();
                let [cos, sin] = [angles.clone().cos(), angles.sin()].map(Tensor::from_inner);
                ops::rotate(x, cos, sin, pairs)
            };
            let leaf = [batch * heads * tokens, width];
            compare("rotate", &[leaf], |leaves, side| {
                rotated(leaves[0].clone().reshape(shape), side)
            });
            let by_token = |x: &Tensor<2>| x.clone().reshape([batch, tokens, heads, width]);
            compare("rotate by token", &[leaf], |leaves, side| {
                rotated(by_token(&leaves[0]).swap_dims(1, 2), side)
            });
            compare("rotate by token, and the gradient", &[leaf], |leaves, side| {
                rotated(by_token(&leaves[0]).swap_dims(1, 2), side).swap_dims(1, 2)
            });
            compare("rotate columns, and the gradient", &[[width, leaf[0]]], |leaves, side| {
                let x = leaves[0].clone().reshape([width, batch, heads, tokens]);
                rotated(x.permute([1, 2, 3, 0]), side).swap_dims(2, 3)
            });
            // Far enough apart that a slice is no copy.
            compare("rotate a slice", &[[leaf[0] / tokens, tokens * 128 * 3]], |leaves, side| {
                let x = leaves[0].clone().reshape([batch, tokens, heads, 3 * 128]);
                rotated(x.slice_dim(3, 128..128 + width).swap_dims(1, 2), side)
            });
        }
    }
}

#[test]
fn cross_entropy() {
    for [rows, vocabulary] in [[1, 1], [5, 2], [70, 67], [40, 16], [3, 4000]] {
        let labels = (0..rows).map(|row| (row * 7919 % vocabulary) as i32).collect::<Vec<_>>();
        compare("cross_entropy", &[[rows, vocabulary]], |leaves, side| {
            ops::cross_entropy(leaves[0].clone(), integers(&labels, side))
        });
    }
    let side = gpu();
    let of = |logits: [f32; 3], label: i32| {
        let logits = Tensor::<2>::from_floats([logits], &side.0);
        numbers(ops::cross_entropy(logits, integers(&[label], &side)))[0]
    };
    assert_eq!(of([-200.0, 100.0, -1e30], 0), 300.0);
    assert_eq!(of([-200.0, 100.0, -1e30], 1), 0.0);
    for (logits, label) in [([0.0, f32::NAN, 1.0], 0), ([0.0; 3], 3), ([0.0; 3], -1)] {
        assert!(of(logits, label).is_nan(), "{logits:?}, label {label}");
    }
}

#[test]
fn select_rows() {
    let often = (0..1000).map(|n| n * n % 7).collect::<Vec<_>>();
    let ascending = (0..130).map(|n| 2 * n + 1).collect::<Vec<_>>();
    for (shape, rows) in [
        ([7, 5], often.as_slice()),
        ([7, 64], &often[..3]),
        ([300, 130], &ascending),
        ([2, 1100], &[1, 1, 1]),
        ([40_000, 3], &[39_999, 0, 39_999]),
    ] {
        compare("select_rows", &[shape], |leaves, side| {
            ops::select_rows(leaves[0].clone(), integers(rows, side))
        });
    }
}

/// Shapes of a few parameters, more than a launch on a device with few bindings takes, of one and of several cubes.
const PARAMETERS: [[usize; 2]; 7] =
    [[1, 1], [3, 5], [64, 32], [1, 1024], [1025, 1], [50, 50], [2, 2]];

#[test]
fn adamw() {
    let run = |side: &Side| {
        let mut params = PARAMETERS.map(|shape| random(shape, 1, side).inner());
        let mut moments = PARAMETERS.map(|_| Moments::default());
        for number in 1..=3 {
            // Second handles: the kernel must not write into memory that is shared.
            let shared = params.clone();
            let mut steps = AdamWSteps::default();
            let stepped =
                params.into_iter().zip(&mut moments).zip(0..).map(|((param, moments), at)| {
                    let step = AdamW {
                        learning_rate: 0.01 + 0.001 * f64::from(at),
                        betas: [0.9, 0.95],
                        epsilon: 1e-8,
                        weight_decay: if at % 2 == 0 { 0.1 } else { 0.0 },
                        grad_scale: 0.5,
                        step: number,
                    };
                    let grad = random(param.dims(), 10 + u64::from(number), side).inner();
                    steps.add(param, grad, moments, &step)
                });
            params = stepped.collect::<Vec<_>>().try_into().unwrap();
            steps.finish();
            for (before, after) in shared.into_iter().zip(&params) {
                assert_ne!(numbers(before), numbers(after.clone()));
            }
        }
        let moments = moments.into_iter().flat_map(|moments| moments.tensors.unwrap());
        params.into_iter().chain(moments).map(numbers).collect::<Vec<_>>()
    };
    let on_gpu = run(&gpu());
    assert_eq!(on_gpu, run(&gpu()), "two runs differ");
    for (at, (on_gpu, expected)) in on_gpu.iter().zip(&run(&reference())).enumerate() {
        close::compare(on_gpu, expected, F32_SUMS)
            .map_err(|error| format!("{at}: {error}"))
            .unwrap();
    }
}
