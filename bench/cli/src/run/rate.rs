//! Speed of a device, for estimates of cells without a record like them: measured once and kept in the cache.

use std::collections::BTreeMap;

use pe_zoo::Combination;

use crate::compute::Compute;
use crate::speed;
use sweep::FLOPS_PER_SECOND;
use train::backend;
use train::flops::CountedStep;
use train::host;
use train::speed::SpeedSize;

/// Encoding of the measured training step.
const ENCODING: &str = "rope";

/// Operations per second of a training on the device with this index, with `threads` threads on the CPU.
///
/// The first call on a machine measures it in a child process. If that fails, [`FLOPS_PER_SECOND`] per thread are
/// assumed.
pub(crate) fn operations_per_second(device: usize, compute: &Compute, threads: usize) -> f64 {
    // More threads than processors are no faster, and thousands take minutes to start.
    let threads = threads.min(host::logical_cpus());
    let path = tasks::corpus::cache_dir().join("rates.json");
    let key = key(compute, threads);
    // Empty if the file is missing or damaged.
    let bytes = std::fs::read(&path).unwrap_or_default();
    let mut rates: BTreeMap<String, f64> = serde_json::from_slice(&bytes).unwrap_or_default();
    if let Some(rate) = rates.get(&key).filter(|rate| rate.is_finite() && **rate > 0.0) {
        return *rate;
    }
    let measured = measured(device, compute, threads);
    let Ok(rate) = measured else { return FLOPS_PER_SECOND * threads as f64 };
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
fn measured(device: usize, compute: &Compute, threads: usize) -> anyhow::Result<f64> {
    let size = SpeedSize {
        batch: 8,
        len: 128,
        dim: 64,
        heads: 4,
        layers: 2,
        vocab: 64,
        steps: 5,
        threads,
        attention: false,
    };
    let request = compute.speed_request(ENCODING, size);
    let row = speed::elsewhere(&request, device)?;
    let model = request.model();
    let step = CountedStep {
        encoding: &Combination::parse(ENCODING)?,
        model: &model,
        dims: model.dims(size.len, size.len),
        vocabulary: size.vocab,
        sequences: size.batch,
        tokens: size.len,
    };
    Ok(step.count().train_step as f64 / row.step_seconds)
}
