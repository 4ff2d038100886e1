//! Budgets of a layer of a decoder on a GPU that hold without one: launches of kernels, and bytes of the tensors that it makes. The
//! operations are those of a pre-norm layer of `pe-bench` with RoPE, forward and backward, in f32.
//!
//! Runs on the device that wgpu finds; `ci/gpu-sim.sh` installs a software Vulkan. One test, because both are counted for the
//! whole process, whose logger reads its settings once.
#![cfg(all(feature = "wgpu", feature = "flex"))]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::fs::{self, read_to_string};
use std::path::Path;
use std::time::{Duration, Instant};

use burn::tensor::{Device, Distribution, Tensor};
use pe_zoo::attention::{Engine, LayerInput, Weights, layer};
use pe_zoo::device::launches;
use pe_zoo::model::ActivationKind;
use pe_zoo::ops::{self, LinearMap, MatmulPrecision};
use pe_zoo::{Combination, Combined, Dims, Positions, TokenState};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Most launches of a layer.
const LAUNCHES: usize = 82;

/// Most bytes of new tensors, in tensors `[B, T, C]` of f32.
const TENSORS: f64 = 55.5;

const BATCH: usize = 4;
const TOKENS: usize = 512;
const WIDTH: usize = 32;
const HEADS: usize = 2;
const F32: MatmulPrecision = MatmulPrecision::F32;

struct Layer {
    norms: [[Tensor<1>; 2]; 2],
    qkv: LinearMap,
    out: LinearMap,
    up: LinearMap,
    down: LinearMap,
}

impl Layer {
    fn new(device: &Device) -> Self {
        let normal = Distribution::Normal(0.0, 0.1);
        let vector = |len| Tensor::random([len], normal, device).require_grad();
        let map = |inputs, outputs| LinearMap {
            weight: Tensor::random([inputs, outputs], normal, device).require_grad(),
            bias: Some(vector(outputs)),
        };
        Self {
            norms: [(); 2].map(|()| [(); 2].map(|()| vector(WIDTH))),
            qkv: map(WIDTH, 3 * WIDTH),
            out: map(WIDTH, WIDTH),
            up: map(WIDTH, 4 * WIDTH),
            down: map(4 * WIDTH, WIDTH),
        }
    }

    fn norm(&self, at: usize, x: &Tensor<3>) -> Tensor<3> {
        let [gamma, beta] = self.norms[at].clone();
        ops::layer_norm(x.clone(), gamma, beta, 1e-5)
    }

    fn forward(&self, x: Tensor<3>, encoding: &Combined, at: &Positions) -> Tensor<3> {
        let input = self.norm(0, &x);
        let qkv = ops::heads_of(F32, &input, self.qkv.clone(), [HEADS; 3], WIDTH / HEADS);
        let carried = TokenState::default();
        let attention =
            LayerInput { engine: Engine::Fused, ..LayerInput::new(0, at, &input, qkv, &carried) };
        let attended = layer(encoding, attention, None, Weights::Drop).output;
        let mixed = attended.swap_dims(1, 2).reshape([BATCH, TOKENS, WIDTH]);
        let LinearMap { weight, bias } = self.out.clone();
        let x = ops::add(x, ops::linear_of(F32, mixed, weight, bias));
        let input = self.norm(1, &x);
        let [up, down] = [&self.up, &self.down].map(LinearMap::clone);
        ops::add(x, ops::feed_forward_of(F32, input, up, down, ActivationKind::Gelu))
    }
}

/// What a pass takes.
struct Counts {
    launches: Vec<String>,
    bytes: f64,
}

/// Counts the second pass of so many layers, because the first makes what later ones reuse.
fn counted(layers: usize, log: &Path, device: &Device) -> Counts {
    let dims = Dims {
        layers,
        width: WIDTH,
        heads: HEADS,
        head_dim: WIDTH / HEADS,
        train_len: TOKENS,
        max_len: TOKENS,
    };
    let encoding = Combination::parse("rope").unwrap();
    let encoding = encoding.init(&dims, &mut ChaCha8Rng::seed_from_u64(0), device).unwrap();
    let at = Positions::contiguous(0, TOKENS);
    let layers = (0..layers).map(|_| Layer::new(device)).collect::<Vec<_>>();
    let input = Tensor::<3>::random([BATCH, TOKENS, WIDTH], Distribution::Normal(0.0, 1.0), device)
        .require_grad();
    let pass = || {
        let output = layers.iter().fold(input.clone(), |x, layer| layer.forward(x, &encoding, &at));
        output.sum().backward()
    };
    drop(pass());
    let before = logged(log, device);
    let (grads, launches) = launches(pass);
    let bytes = logged(log, device) - before;
    drop(grads);
    Counts { launches, bytes }
}

/// Bytes that the log has for tensors of the device. Another thread writes it, so a tensor larger than all others marks its end.
fn logged(log: &Path, device: &Device) -> f64 {
    const MARK: f64 = 2e7;
    let sizes = || -> Vec<f64> {
        read_to_string(log).unwrap_or_default().lines().filter_map(reserved).collect()
    };
    let marks = |sizes: &[f64]| sizes.iter().filter(|bytes| **bytes >= MARK).count();
    let before = marks(&sizes());
    drop(Tensor::<1>::zeros([MARK as usize / 4 + 1], device));
    device.sync().unwrap();
    let start = Instant::now();
    loop {
        let sizes = sizes();
        if marks(&sizes) > before {
            return sizes.iter().filter(|bytes| **bytes < MARK).sum();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the mark is not in {}", log.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Bytes of a line of the log, such as `[Main GPU Memory] Reserved memory 65.54 KB using dynamic pool`.
fn reserved(line: &str) -> Option<f64> {
    let (_, size) = line.split_once("[Main GPU Memory] Reserved memory ")?;
    let (size, _) = size.split_once(" using")?;
    let (number, unit) = size.split_once(' ').unwrap_or((size, "B"));
    let power = ["B", "KB", "MB", "GB"].iter().position(|name| *name == unit)?;
    Some(number.parse::<f64>().ok()? * 1000_f64.powi(power as i32))
}

#[test]
fn a_layer_is_within_its_budgets() {
    let folder = std::env::temp_dir().join(format!("cube_budgets_{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let log = folder.join("memory.log");
    let settings = format!("[memory.logger]\nlevel = \"full\"\nfile = {log:?}\n");
    fs::write(folder.join("cubecl.toml"), settings).unwrap();
    // The settings are those of the folder in which the first device is opened.
    std::env::set_current_dir(&folder).unwrap();
    let device = Device::wgpu(burn::tensor::DeviceKind::DefaultDevice).autodiff();

    let [one, three] = [1, 3].map(|layers| counted(layers, &log, &device));
    fs::remove_dir_all(&folder).unwrap();
    let launches = (three.launches.len() - one.launches.len()).div_ceil(2);
    let of_tensor = (BATCH * TOKENS * WIDTH * size_of::<f32>()) as f64;
    let tensors = (three.bytes - one.bytes) / 2.0 / of_tensor;
    let mut names = three.launches;
    names.sort();
    let by_name = names.chunk_by(|a, b| a == b).map(|run| format!("{} x {}", run.len(), run[0]));
    let by_name = by_name.collect::<Vec<_>>().join("\n");
    let counts = format!("{launches} launches, {tensors:.1} tensors; three layers:\n{by_name}");
    assert!(tensors > 20.0, "the log has too few tensors: {counts}");
    assert!(launches <= LAUNCHES, "budget {LAUNCHES} launches: {counts}");
    assert!(tensors <= TENSORS, "budget {TENSORS} tensors: {counts}");
}
