//! Number of kernels that the operations of models launch on a GPU, and their times. One test, because launches are counted for
//! the whole process.
#![cfg(all(any(feature = "wgpu", feature = "cuda"), feature = "flex"))]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use burn::tensor::{Device, Distribution, Int, Tensor};
use pe_zoo::device::{device_time, launches, timed_launches};
use pe_zoo::ops::{self, AdamW, AdamWSteps, GateFunction, Moments, Pairs};

fn gpu() -> Device {
    #[cfg(feature = "wgpu")]
    return Device::wgpu(burn::tensor::DeviceKind::DefaultDevice);
    #[cfg(not(feature = "wgpu"))]
    Device::cuda(0)
}

/// Numbers of kernels in the forward pass of an operation, and in the backward pass of its weighted sum less those of the sum.
fn counted<const D: usize>(
    inputs: &[Tensor<2>],
    operation: impl Fn(&[Tensor<2>]) -> Tensor<D>,
) -> [usize; 2] {
    let (output, forward) = launches(|| operation(inputs));
    let weights = output.clone().detach();
    let loss = (output * weights.clone()).sum();
    let (_, backward) = launches(|| loss.backward());
    // The same weighted sum of a leaf alone.
    let leaf = weights.clone().require_grad();
    let loss = (leaf * weights).sum();
    let (_, of_sum) = launches(|| loss.backward());
    [forward.len(), backward.len() - of_sum.len()]
}

#[test]
fn operations_launch_few_kernels_and_these_are_timed() {
    let device = gpu().autodiff();
    let random = |rows: usize, width: usize| {
        let normal = Distribution::Normal(0.0, 1.0);
        Tensor::<2>::random([rows, width], normal, &device).require_grad()
    };
    let vector = |x: &Tensor<2>| x.clone().reshape([16]);
    let x = [random(100, 16)];
    let norm = [random(100, 16), random(1, 16), random(1, 16)];
    let ids = Tensor::<1, Int>::from_ints([3, 1, 3, 15], &device);
    assert_eq!(counted(&x, |x| ops::gelu(x[0].clone())), [1, 1], "gelu");
    for gate in [GateFunction::Silu, GateFunction::Gelu] {
        assert_eq!(counted(&x, |x| ops::gated(x[0].clone(), gate)), [1, 1], "{gate:?}");
    }
    assert_eq!(counted(&x, |x| ops::select_rows(x[0].clone(), ids.clone())), [1, 1], "rows");
    // Queries in the order of projections, and their gradients, are read and written in it.
    let angles = Tensor::from_inner(Tensor::<2>::ones([25, 8], &device.clone().inner()));
    let rotate = |x: &[Tensor<2>]| {
        let q = x[0].clone().reshape([2, 25, 2, 16]).swap_dims(1, 2);
        let q = ops::rotate(q, angles.clone(), angles.clone(), Pairs::HalfSplit);
        q.swap_dims(1, 2).reshape([100, 16])
    };
    assert_eq!(counted::<2>(&x, rotate), [1, 1], "rotate");
    let labels = Tensor::<1, Int>::from_ints([3; 100], &device);
    let entropy = |x: &[Tensor<2>]| ops::cross_entropy(x[0].clone(), labels.clone());
    assert_eq!(counted(&x, entropy), [1, 1], "cross_entropy");
    let layer_norm =
        |x: &[Tensor<2>]| ops::layer_norm(x[0].clone(), vector(&x[1]), vector(&x[2]), 1e-5);
    assert_eq!(counted(&norm, layer_norm), [1, 3], "layer_norm");
    let rms_norm = |x: &[Tensor<2>]| ops::rms_norm(x[0].clone(), vector(&x[1]), 1e-5);
    assert_eq!(counted(&norm[..2], rms_norm), [1, 2], "rms_norm");

    let step = AdamW {
        learning_rate: 0.1,
        betas: [0.9, 0.9],
        epsilon: 1e-8,
        weight_decay: 0.0,
        grad_scale: 1.0,
        step: 1,
    };
    // As many parameters as a software Vulkan takes in a launch.
    let mut moments = [(); 4].map(|()| Moments::default());
    let mut stepped = || {
        let mut steps = AdamWSteps::default();
        for (moments, rows) in moments.iter_mut().zip(1..) {
            let [param, grad] = [(); 2].map(|()| random(rows, 16).inner());
            drop(steps.add(param, grad, moments, &step));
        }
        launches(|| steps.finish()).1
    };
    // The first makes the moments.
    stepped();
    let names = stepped();
    assert_eq!(names.len(), 1, "{names:?}");

    let (_, times) = timed_launches(|| ops::gelu(x[0].clone().inner()));
    assert_eq!(times.len(), 1);
    assert!(times[0].kernel.contains("gelu") || times[0].kernel.contains("Gelu"), "{times:?}");
    assert!(times[0].seconds >= 0.0 && times[0].start_seconds >= 0.0, "{times:?}");
    let (_, time) = device_time(&device, || ops::gelu(x[0].clone())).unwrap();
    assert!(!time.is_zero());
    assert!(device_time(&Device::flex(), || ()).is_err());
}
