//! Compiles the kernels with Burn's own CUDA compiler, without a GPU: PTX for sm_90a of every configuration. If the
//! environment variable `PE_ZOO_PTX` names a folder, the PTX is written there; `ci/gpu-budgets.sh` assembles and counts it.

#![expect(unsafe_code, reason = "the compiler's text")]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::ffi::CStr;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use burn::tensor::bf16;
use burn_cubecl::cubecl::ir::TargetProperties;
use burn_cubecl::cubecl::ir::nvidia::SmArch;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::cubecl::{Compiler, CubeKernel, define_kernel};
use cubecl_llvm::nvptx::ptx_version::PtxVersion;
use cubecl_llvm::{LlvmTarget, PlironArtifact, PlironCompiler, PlironOptions};

use super::fake_device::{LIMITS, argument, device};
use crate::kernels::gpu::backward::backward_kernel;
use crate::kernels::gpu::config::{Function, KernelConfig, SMALLEST};
use crate::kernels::gpu::cores::{self, Rounded};
use crate::kernels::gpu::forward::forward_kernel;
use crate::kernels::gpu::inputs::{
    BackwardInputsLaunch, InputsLaunch, LaunchSizesLaunch, OutputsLaunch, PlaneRowsLaunch,
};
use crate::kernels::gpu::launch;

/// Version of the CUDA driver, 12.8.
const DRIVER: i32 = 12_080;

/// Number of rows for which the largest tiles are chosen.
const ROWS: usize = 4096;

const PLAIN: KernelConfig = KernelConfig {
    tile: SMALLEST,
    head_dim: 64,
    value_dim: 64,
    content: true,
    slopes: false,
    distance: false,
    query_distance: false,
    contiguous: true,
    decay: false,
    decay_residual: false,
    dense: false,
    function: Function::Absent,
    own_gates: false,
    entries: 0,
    sticks: false,
    strict: false,
    own_token: false,
    rounded: None,
};

const FORMS: [(&str, KernelConfig); 8] = [
    ("no modifier", PLAIN),
    ("slopes", KernelConfig { slopes: true, ..PLAIN }),
    ("distances", KernelConfig { distance: true, query_distance: true, ..PLAIN }),
    (
        "decay",
        KernelConfig { decay: true, decay_residual: true, dense: true, contiguous: false, ..PLAIN },
    ),
    ("sticks", KernelConfig { sticks: true, strict: true, own_token: true, ..PLAIN }),
    ("table", KernelConfig { function: Function::Table, entries: 64, ..PLAIN }),
    ("own gates", KernelConfig { function: Function::Slope, own_gates: true, ..PLAIN }),
    ("perceptron", KernelConfig { function: Function::Gelu, entries: 9, ..PLAIN }),
];

fn rows() -> PlaneRowsLaunch {
    PlaneRowsLaunch::new(argument(), 1)
}

fn inputs() -> InputsLaunch {
    let a = argument;
    let [q, k, values, gates] = [(); 4].map(|()| rows());
    InputsLaunch::new(q, k, values, a(), a(), a(), a(), a(), gates, a(), a(), a(), a(), a())
}

fn place() -> LaunchSizesLaunch {
    LaunchSizesLaunch::new(1, 1, 1, 0, 1, 1, 1.0, 1.0, 1.0)
}

pub(in crate::kernels::gpu) fn ptx(kernel: &dyn CubeKernel) -> String {
    let options = PlironOptions {
        sm_arch: Some(SmArch::new(90, true)),
        ptx_version: PtxVersion::for_driver(DRIVER),
        ..PlironOptions::default()
    };
    let mut compiler = PlironCompiler { target: LlvmTarget::Nvptx };
    match compiler.compile(define_kernel(kernel).unwrap(), &options).unwrap() {
        PlironArtifact::NvptxCode(module) => {
            // SAFETY: the compiler terminates its text with a zero byte.
            let text = unsafe { CStr::from_ptr(module.ptx.as_ptr()) };
            text.to_str().unwrap().to_owned()
        }
        PlironArtifact::Jit(_) => panic!("not PTX"),
    }
}

fn kernels<F: Float>(config: &KernelConfig) -> [String; 2] {
    let target = Arc::new(TargetProperties::default());
    let count = CubeCount::Static(1, 1, 1);
    let (ahead, back) =
        (config.forward(ROWS, LIMITS).unwrap(), config.backward(ROWS, LIMITS).unwrap());
    let forward = forward_kernel::create_dummy_kernel::<F>(
        device(),
        Arc::clone(&target),
        count.clone(),
        launch::cubes(&ahead),
        inputs(),
        place(),
        argument(),
        argument(),
        ahead,
    );
    let a = argument;
    let backward = backward_kernel::create_dummy_kernel::<F>(
        device(),
        target,
        count,
        launch::cubes(&back),
        inputs(),
        place(),
        BackwardInputsLaunch::new(rows(), a(), a()),
        OutputsLaunch::new(a(), a(), a(), a(), a(), a(), a(), a()),
        back,
    );
    [ptx(&forward), ptx(&backward)]
}

/// Writes PTX to the folder that the environment names, if it names one.
pub(in crate::kernels::gpu) fn written(name: &str, text: &str) {
    if let Some(folder) = std::env::var_os("PE_ZOO_PTX").map(PathBuf::from) {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.ptx")), text).unwrap();
    }
}

fn check(width: usize, rounded: Option<Rounded>, products: &str) {
    for (name, config) in FORMS {
        let config = KernelConfig { head_dim: width, value_dim: width, rounded, ..config };
        let (factors, texts) = match rounded {
            None => ("f32", kernels::<f32>(&config)),
            Some(cores::TF32) => ("tf32", kernels::<tf32>(&config)),
            Some(_) => ("bf16", kernels::<bf16>(&config)),
        };
        for (pass, text) in ["forward", "backward"].into_iter().zip(texts) {
            let name = format!("{name}, heads of {width}, {factors}, {pass}");
            assert!(text.contains(products), "{name}: no {products} in it");
            written(&name, &text);
        }
    }
}

#[test]
fn products_without_tensor_cores() {
    check(64, None, "fma.rn.f32");
}

#[test]
fn products_of_tf32() {
    check(64, Some(cores::TF32), ".tf32");
}

#[test]
fn products_of_bf16() {
    check(64, Some(cores::BF16), ".bf16");
    check(128, Some(cores::BF16), ".bf16");
}
