//! Simulation of products on tensor cores without a GPU.
//!
//! The CUDA source of the kernels is compiled for the processor and run there. Outputs and
//! gradients are compared with those of the same kernels without tensor cores, which
//! `tests/cube.rs` compares with the reference engine in f64. One comparison uses factors that are
//! not rounded, where only the order of sums differs; others use tf32 and bf16.

#![expect(unsafe_code, reason = "what was compiled is loaded and called")]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

pub(in crate::kernels::gpu) mod kernel;

use std::sync::Arc;

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, DispatchDevice};
use burn::tensor::{DType, Device, DeviceKind, Shape, bf16};
use burn_cubecl::cubecl::Device as CubeDevice;
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::ir::TargetProperties;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::fake_device::{LIMITS, device};
use crate::init::standard_normal;
use crate::kernels::gpu::arguments;
use crate::kernels::gpu::backward::backward_kernel;
use crate::kernels::gpu::collect;
use crate::kernels::gpu::config::KernelConfig;
use crate::kernels::gpu::cores::{self, Rounded};
use crate::kernels::gpu::forward::forward_kernel;
use crate::kernels::gpu::heads;
use crate::kernels::gpu::inputs::BackwardInputsLaunch;
use crate::kernels::gpu::launch;
use crate::kernels::gpu::results::{Backward, Forward, OutputGradient, unwritten, zeroed};
use crate::kernels::operands::{Operands, Sizes, Slot};
use crate::kernels::precision::MatmulPrecision;
use crate::kernels::spec::{ContextualSpec, Spec, WeightRule};
use crate::score::{Current, HiddenActivation, Remainder, StickBreakingRule};
use kernel::{CompiledKernel, Scalars};

/// Number of slots of gradients; more than one, so that errors between slots show.
const SLOTS: usize = 2;

/// Tolerance for sums in another order, relative to the norm of a tensor (but at least to 1, since
/// some gradients are zero except for rounding).
const REORDERED: f64 = 1e-4;
const LESS_ROUNDED: f64 = 2.5e-3;
const ROUNDED: f64 = 2e-2;

/// Factor of the tolerance for a slope's gradient, in which every error is multiplied by a
/// distance.
const BY_DISTANCE: f64 = 5.0;

/// Maker of random operands on one device.
struct Maker {
    device: CubeDevice,
    client: Client,
    rng: ChaCha8Rng,
}

impl Maker {
    fn new() -> Self {
        let device = Device::wgpu(DeviceKind::DefaultDevice);
        let DispatchDevice::Cube(device) = device.as_dispatch() else { unreachable!() };
        Self { device: device.clone(), client: device.client(), rng: ChaCha8Rng::seed_from_u64(3) }
    }

    fn upload(&self, values: &[f32], shape: &[usize]) -> CubeTensor {
        let shape = Shape::from(shape.to_vec());
        let handle = self.client.create_from_slice(f32::as_bytes(values));
        let (client, device) = (self.client.clone(), self.device.clone());
        CubeTensor::new_contiguous(client, device, shape, handle, DType::F32)
    }

    fn random(&mut self, spread: f32, shape: &[usize]) -> CubeTensor {
        let count = shape.iter().product();
        let values = (0..count).map(|_| spread * standard_normal(&mut self.rng) as f32);
        let values = values.collect::<Vec<_>>();
        self.upload(&values, shape)
    }

    fn absent(&self) -> CubeTensor {
        let (client, device) = (self.client.clone(), self.device.clone());
        let handle = client.create_from_slice(f32::as_bytes(&[0.0]));
        CubeTensor::new_contiguous(client, device, Shape::from([0]), handle, DType::F32)
    }

    /// Makes queries, keys and values without a modifier.
    fn plain(&mut self, sizes: &Sizes) -> (Operands<Cube>, Spec) {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = *sizes;
        let mut tensors = std::array::from_fn(|_| self.absent());
        tensors[0] = self.random(1.0, &[batch, heads, rows, head_dim]);
        tensors[1] = self.random(1.0, &[batch, heads, columns, head_dim]);
        tensors[2] = self.random(1.0, &[batch, heads, columns, value_dim]);
        let scale = 1.0 / (head_dim as f32).sqrt();
        let spec = Spec {
            columns: (0..columns).collect::<Vec<_>>().into(),
            contiguous: true,
            first_row: columns - rows,
            content_scale: Some(scale),
            distance_scale: scale,
            weights: WeightRule::Softmax,
            precision: MatmulPrecision::F32,
            contextual: None,
            position_mlp_bends: [].into(),
            head_mlp: None,
            far_pairs: None,
            #[cfg(feature = "flex")]
            terms: Vec::new(),
        };
        (Operands(tensors), spec)
    }
}

fn read(tensor: &CubeTensor) -> Vec<f32> {
    let bytes = tensor.client.read_one_unchecked(tensor.handle.clone());
    f32::from_bytes(&bytes)[..tensor.meta.shape().num_elements()].to_vec()
}

fn uploaded(like: &CubeTensor, values: &[f32]) -> CubeTensor {
    let handle = like.client.create_from_slice(f32::as_bytes(values));
    let (client, device) = (like.client.clone(), like.device.clone());
    CubeTensor::new(client, handle, (*like.meta).clone(), device, DType::F32)
}

/// Numbers in the order of the shape, in memory `[B, T, H, E]`.
fn by_token(like: &CubeTensor, values: &[f32]) -> CubeTensor {
    let handle = like.client.create_from_slice(f32::as_bytes(values));
    let (client, device) = (like.client.clone(), like.device.clone());
    let shape = like.meta.shape().clone();
    let by_head = CubeTensor::new_contiguous(client, device, shape, handle, DType::F32);
    Cube::float_swap_dims(into_contiguous(Cube::float_swap_dims(by_head, 1, 2)), 1, 2)
}

/// Tensor cores for unrounded f32 factors, which no real device has.
const EXACT: Rounded = Rounded { inner: cores::FRAGMENT, bytes: 4 };

fn with_cores(operands: &Operands<Cube>, spec: &Spec, rounded: Rounded) -> KernelConfig {
    KernelConfig {
        rounded: Some(rounded),
        ..launch::config(&operands[Slot::Query].client, operands, spec)
    }
}

fn units(config: &KernelConfig) -> [usize; 2] {
    [config.tile.units_x, config.tile.units_y]
}

fn forward<F: Float>(operands: &Operands<Cube>, spec: &Spec, rounded: Rounded) -> Forward {
    let Sizes { batch, heads, rows, .. } = operands.sizes();
    let config = with_cores(operands, spec, rounded).forward(rows, LIMITS).unwrap();
    let left = unwritten(operands);
    let kernel = forward_kernel::create_dummy_kernel::<F>(
        device(),
        Arc::new(TargetProperties::default()),
        CubeCount::Static(1, 1, 1),
        launch::cubes(&config),
        arguments::inputs(operands, spec),
        arguments::place(operands, spec),
        left.output.clone().into_buffer_arg(),
        left.log.clone().into_buffer_arg(),
        config,
    );
    let mut buffers = arguments::buffers(operands, spec).iter().map(read).collect::<Vec<_>>();
    let outputs = buffers.len();
    // Entries that the kernel does not write stay NaN.
    buffers.extend([&left.output, &left.log].map(|to| vec![f32::NAN; read(to).len()]));
    let grid = [rows.div_ceil(config.tile.rows()), batch * heads];
    let (sizes, factors) = arguments::numbers(operands, spec);
    let sizes = [arguments::beside(operands).as_slice(), &sizes].concat();
    let scalars = Scalars { sizes: &sizes, factors: &factors };
    CompiledKernel::build(&kernel).run(&mut buffers, scalars, grid, units(&config));
    Forward {
        output: uploaded(&left.output, &buffers[outputs]),
        log: uploaded(&left.log, &buffers[outputs + 1]),
    }
}

fn backward<F: Float>(
    operands: &Operands<Cube>,
    spec: &Spec,
    rounded: Rounded,
    upstream: OutputGradient,
) -> Backward {
    let Sizes { batch, heads, rows, .. } = operands.sizes();
    let config = with_cores(operands, spec, rounded).backward(rows, LIMITS).unwrap();
    let slots = SLOTS.min(rows.div_ceil(config.tile.rows()));
    let found = zeroed(operands, config, slots);
    let OutputGradient { grad, log, share } = upstream;
    let of_grad = heads::beside(&grad);
    let read_upstream = [&grad, &log, &share].map(read);
    let kernel = backward_kernel::create_dummy_kernel::<F>(
        device(),
        Arc::new(TargetProperties::default()),
        CubeCount::Static(1, 1, 1),
        launch::cubes(&config),
        arguments::inputs(operands, spec),
        arguments::place(operands, spec),
        BackwardInputsLaunch::new(
            arguments::plane_rows(grad),
            log.into_buffer_arg(),
            share.into_buffer_arg(),
        ),
        found.outputs(),
        config,
    );
    let mut buffers = arguments::buffers(operands, spec).iter().map(read).collect::<Vec<_>>();
    buffers.extend(read_upstream);
    let outputs = buffers.len();
    buffers.extend(found.tensors().map(read));
    let grid = [slots, batch * heads];
    let (sizes, factors) = arguments::numbers(operands, spec);
    let sizes = [arguments::beside(operands).as_slice(), &sizes, &[of_grad]].concat();
    let scalars = Scalars { sizes: &sizes, factors: &factors };
    CompiledKernel::build(&kernel).run(&mut buffers, scalars, grid, units(&config));
    let mut written = found.tensors().into_iter().zip(&buffers[outputs..]);
    let mut next = || written.next().map(|(like, values)| uploaded(like, values)).unwrap();
    Backward {
        config,
        q: next(),
        k: next(),
        values: next(),
        gate_keys: next(),
        distance: next(),
        decay: next(),
        dense: next(),
        rows: next(),
    }
}

fn compare(name: &str, found: &CubeTensor, expected: &CubeTensor, off: f64) {
    let (found, expected) = (read(found), read(expected));
    assert_eq!(found.len(), expected.len(), "{name}");
    let length = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let apart = &mut found.iter().zip(&expected).map(|(a, b)| f64::from(*a) - f64::from(*b));
    let (apart, whole) = (length(apart), length(&mut expected.iter().map(|x| f64::from(*x))));
    // `<=` is false for NaN.
    assert!(apart <= off * whole.max(1.0), "{name} is {apart:.2e} off, of {whole:.2e}");
}

fn compare_by<F: Float>(
    name: &str,
    operands: &Operands<Cube>,
    spec: &Spec,
    rounded: Rounded,
    off: f64,
) {
    let kept = launch::forward(operands, spec);
    let simulated = forward::<F>(operands, spec, rounded);
    compare(&format!("{name}: output"), &simulated.output, &kept.output, off);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let output = read(&kept.output);
    let grad = output.iter().map(|_| standard_normal(&mut rng) as f32).collect::<Vec<_>>();
    let grad = by_token(&kept.output, &grad);
    let expected = collect::gradients(operands, spec, kept, grad.clone(), launch::backward);
    let run = |operands: &_, spec: &_, upstream| backward::<F>(operands, spec, rounded, upstream);
    let found = collect::gradients(operands, spec, simulated, grad, run);
    for ((found, expected), slot) in found.iter().zip(&expected).zip(Slot::ALL) {
        // Rounding errors multiplied by distances of hundreds exceed any useful tolerance.
        if slot == Slot::Slope && !spec.contiguous && off >= LESS_ROUNDED {
            continue;
        }
        match (found, expected) {
            (Some(found), Some(expected)) => {
                let by_distance = matches!(slot, Slot::Slope | Slot::ContextualSlopes);
                let off = if by_distance { BY_DISTANCE * off } else { off };
                compare(&format!("{name}: gradient of {slot:?}"), found, expected, off);
            }
            (None, None) => {}
            _ => panic!("{name}: {slot:?} has a gradient on one side only"),
        }
    }
}

/// Function that adds operands of one modifier, and its specification.
type OperandSetup = fn(&mut Maker, &Sizes, &mut Operands<Cube>, &mut Spec);

/// Compares the kernels at every tile size, at odd sizes, with more rows than blocks of columns,
/// and in decoding.
fn check(change: OperandSetup) {
    for (rows, columns, dim) in [(1, 1, 6), (17, 40, 6), (70, 70, 6), (3, 130, 20), (140, 140, 40)]
    {
        let sizes = Sizes { batch: 1, heads: 2, rows, columns, head_dim: dim, value_dim: dim - 1 };
        let mut maker = Maker::new();
        let (mut operands, mut spec) = maker.plain(&sizes);
        change(&mut maker, &sizes, &mut operands, &mut spec);
        let operands = arguments::contiguous(operands);
        compare_by::<f32>(&format!("{sizes:?}, f32"), &operands, &spec, EXACT, REORDERED);
        compare_by::<tf32>(
            &format!("{sizes:?}, tf32"),
            &operands,
            &spec,
            cores::TF32,
            LESS_ROUNDED,
        );
        compare_by::<bf16>(&format!("{sizes:?}, bf16"), &operands, &spec, cores::BF16, ROUNDED);
    }
}

fn contextual(
    spec: &Spec,
    max_position: f32,
    activation: Option<HiddenActivation>,
) -> ContextualSpec {
    let scale = spec.distance_scale;
    ContextualSpec { max_position, function_scale: 1.0, gate_scale: scale, activation }
}

fn table(maker: &mut Maker, sizes: &Sizes, operands: &mut Operands<Cube>, spec: &mut Spec) {
    operands[Slot::ContextualVectors] =
        maker.random(1.0, &[sizes.batch, sizes.heads, sizes.rows, 9]);
    spec.contextual = Some(contextual(spec, 7.3, None));
}

fn biases(maker: &mut Maker, sizes: &Sizes, operands: &mut Operands<Cube>, _spec: &mut Spec) {
    let Sizes { batch, heads, rows, columns, .. } = *sizes;
    operands[Slot::Slope] = maker.random(0.1, &[heads]);
    operands[Slot::Distance] = maker.random(1.0, &[heads, 20]);
    operands[Slot::QueryDistance] = maker.random(1.0, &[batch, heads, rows, 23]);
    operands[Slot::Decay] = maker.random(1.0, &[batch, heads, columns]);
    operands[Slot::DecayResidual] = maker.random(1.0, &[batch, heads, columns]);
    operands[Slot::Dense] = maker.random(1.0, &[batch, heads, rows, columns]);
}

fn sticks(current: Current, remainder: Remainder) -> WeightRule {
    WeightRule::StickBreaking(StickBreakingRule { current, remainder })
}

#[test]
fn no_modifier() {
    check(|_, _, _, _| ());
}

#[test]
fn biases_at_contiguous_positions() {
    check(biases);
}

#[test]
fn biases_at_scattered_positions() {
    check(|maker, sizes, operands, spec| {
        biases(maker, sizes, operands, spec);
        operands[Slot::Distance] = maker.absent();
        spec.columns = (0..sizes.columns).map(|n| 3 + 2 * n + n * n % 2).collect::<Vec<_>>().into();
        spec.contiguous = false;
    });
}

#[test]
fn broken_sticks() {
    check(|_, _, _, spec| spec.weights = sticks(Current::Included, Remainder::OwnToken));
    check(|_, _, _, spec| spec.weights = sticks(Current::Excluded, Remainder::OwnToken));
    check(|_, _, _, spec| spec.weights = sticks(Current::Excluded, Remainder::Dropped));
}

#[test]
fn contextual_tables() {
    check(table);
}

#[test]
fn contextual_tables_with_gate_keys_of_their_own() {
    check(|maker, sizes, operands, spec| {
        table(maker, sizes, operands, spec);
        let Sizes { batch, heads, columns, head_dim, .. } = *sizes;
        operands[Slot::ContextualGateKeys] = maker.random(1.0, &[batch, heads, columns, head_dim]);
    });
}

#[test]
fn contextual_slopes() {
    check(|maker, sizes, operands, spec| {
        operands[Slot::ContextualSlopes] = maker.random(0.3, &[sizes.heads]);
        spec.contextual = Some(contextual(spec, 11.0, None));
    });
}

#[test]
fn perceptrons_of_contextual_positions() {
    check(|maker, sizes, operands, spec| {
        operands[Slot::ContextualVectors] =
            maker.random(0.3, &[sizes.batch, sizes.heads, sizes.rows, 6]);
        operands[Slot::ContextualHidden] = maker.random(0.5, &[2, 5]);
        spec.contextual = Some(contextual(spec, 9.0, Some(HiddenActivation::Gelu)));
    });
}

#[test]
fn everything_at_once() {
    check(|maker, sizes, operands, spec| {
        biases(maker, sizes, operands, spec);
        table(maker, sizes, operands, spec);
        spec.weights = sticks(Current::Included, Remainder::OwnToken);
    });
}
