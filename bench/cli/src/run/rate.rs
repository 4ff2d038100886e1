//! Speed of a device, for estimates of cells without a record like them: measured once and kept in the cache.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use pe_zoo::Combination;

use crate::compute::{Compute, ComputeArgs};
use crate::size::SizeArgs;
use pe_zoo::model::{ActivationKind, ModelConfig};
use sweep::FLOPS_PER_SECOND;
use sweep::process;
use train::backend;
use train::flops::CountedStep;
use train::host;
use train::speed::{SpeedRow, SpeedSize};

/// Time after which a measurement is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Encoding and sizes of the measured training step.
const ENCODING: &str = "rope";
const BATCH: usize = 8;
const LEN: usize = 128;
const VOCABULARY: usize = 64;
const STEPS: usize = 5;

/// Operations per second of a training on the device, with `threads` threads on the CPU.
///
/// The first call on a machine measures it in a child process. If that fails, [`FLOPS_PER_SECOND`] per thread are
/// assumed.
pub(crate) fn operations_per_second(
    arguments: &ComputeArgs,
    compute: &Compute,
    threads: usize,
) -> f64 {
    let path = tasks::corpus::cache_dir().join("rates.json");
    let key = key(compute, threads);
    // Empty if the file is missing or damaged.
    let bytes = std::fs::read(&path).unwrap_or_default();
    let mut rates: BTreeMap<String, f64> = serde_json::from_slice(&bytes).unwrap_or_default();
    if let Some(rate) = rates.get(&key).filter(|rate| rate.is_finite() && **rate > 0.0) {
        return *rate;
    }
    let Ok(rate) = measured(arguments, threads) else { return FLOPS_PER_SECOND * threads as f64 };
    rates.insert(key, rate);
    // A cache that cannot be written costs another measurement.
    if let Ok(text) = serde_json::to_vec_pretty(&rates) {
        let _ = std::fs::create_dir_all(tasks::corpus::cache_dir());
        let _ = records::store::write_atomically(&path, &text);
    }
    rate
}

/// Device, engine, precision, threads and version of the program: all that a measurement depends on.
fn key(compute: &Compute, threads: usize) -> String {
    let device = backend::accelerator(&compute.backend, &compute.device);
    let device = device.map(|device| device.name).or_else(host::cpu_model);
    format!(
        "{} on {}, engine {}, {}, {threads} threads, version {}",
        compute.backend,
        device.as_deref().unwrap_or("an unknown processor"),
        compute.engine.id(),
        compute.precision().id(),
        env!("CARGO_PKG_VERSION")
    )
}

/// Measures training steps in a process of its own.
fn measured(arguments: &ComputeArgs, threads: usize) -> anyhow::Result<f64> {
    let model = ModelConfig {
        layers: 2,
        width: 64,
        heads: 4,
        activation: ActivationKind::Gelu,
        ..ModelConfig::default()
    };
    let size = SpeedSize {
        batch: BATCH,
        len: LEN,
        dim: model.width,
        heads: model.heads,
        layers: model.layers,
        vocab: VOCABULARY,
        steps: STEPS,
        threads,
        attention: false,
    };
    let mut command = process::dependent(threads)?;
    command
        .args(["speed", "--in-process", "--encodings", ENCODING])
        .args(arguments.arguments())
        .args(SizeArgs::arguments(&size))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let row: SpeedRow = serde_json::from_slice(&within(command.spawn()?, PATIENCE)?)?;
    let step = CountedStep {
        encoding: &Combination::parse(ENCODING)?,
        model: &model,
        dims: model.dims(LEN, LEN),
        vocabulary: VOCABULARY,
        sequences: BATCH,
        tokens: LEN,
    };
    Ok(step.count().train_step as f64 / row.step_seconds)
}

/// Output of a process that ends in time; it is killed otherwise.
fn within(mut child: Child, patience: Duration) -> anyhow::Result<Vec<u8>> {
    let start = Instant::now();
    // It prints one line, which a pipe holds until it is read.
    while child.try_wait()?.is_none() {
        if start.elapsed() > patience {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output()?;
    output.status.success().then_some(output.stdout).context("the measurement failed")
}
