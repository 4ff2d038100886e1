//! Time of one training step at a fixed size, the same work as in `torch_step.py` and similar scripts.
//!
//! Pre-norm decoder, GELU, `AdamW`, next-token cross-entropy over every token, random tokens, f32.

mod attention;

use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use burn::tensor::Device;
use pe_zoo::attention::Engine;
use pe_zoo::ops::MatmulPrecision;
use pe_zoo::{Combination, Dims};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use stats::median;
use tasks::{Headline, Sample, Split, Task, TaskError, TaskMeta};

use crate::experiment::TrainConfig;
use crate::experiment::{Decay, OptimizerConfig};
use crate::run::train::Trainer;
use crate::streams::{Stream, stream};
use crate::{backend, host};
use pe_zoo::model::{ActivationKind, Decoder, MOST_STEP_OPERATIONS, ModelConfig};

/// Maximum of batch size, length, vocabulary size and number of steps.
const MOST: usize = 1 << 24;

/// Size of the measured work.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SpeedSize {
    /// Number of sequences per step.
    pub batch: usize,
    /// Number of tokens per sequence.
    pub len: usize,
    /// Width of the model.
    pub dim: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Number of transformer layers.
    pub layers: usize,
    /// Size of the vocabulary.
    pub vocab: usize,
    /// Number of timed steps, after two that are not timed.
    pub steps: usize,
    /// Number of CPU threads.
    pub threads: usize,
    /// Time one attention layer instead of the model, forward and backward.
    pub attention: bool,
}

impl SpeedSize {
    /// Checks the sizes.
    ///
    /// # Errors
    /// If a size is out of range, with the option.
    pub fn check(&self) -> Result<()> {
        let Self { batch, len, dim, heads, layers, vocab, steps, .. } = *self;
        for (name, value) in [
            ("--batch", batch),
            ("--len", len),
            ("--dim", dim),
            ("--heads", heads),
            ("--layers", layers),
            ("--vocab", vocab),
            ("--steps", steps),
        ] {
            ensure!((1..=MOST).contains(&value), "{name} is {value}, expected 1 to {MOST}");
        }
        ensure!(
            dim.is_multiple_of(heads),
            "--heads is {heads}, expected a divisor of --dim, which is {dim}"
        );
        Ok(())
    }
}

/// Request for a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SpeedRequest {
    /// The encoding, as an expression.
    pub encoding: String,
    /// Name of the backend.
    pub backend: String,
    /// Attention engine that is used.
    pub engine: Engine,
    /// Precision of matrix products.
    pub precision: MatmulPrecision,
    /// Size of the measured work; its threads are those of this process.
    pub size: SpeedSize,
}

/// Result of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeedRow {
    /// Expression of the encoding, or its name in a suite.
    pub encoding: String,
    /// Name of the backend.
    pub backend: String,
    /// Name of the attention engine.
    pub engine: String,
    /// Precision of matrix products.
    #[serde(default)]
    pub precision: MatmulPrecision,
    /// Median time of a training step.
    pub step_seconds: f64,
    /// Training throughput in tokens per second.
    pub tokens_per_second: f64,
    /// Peak resident memory of the process in bytes; `None` if the system does not report it.
    pub peak_bytes: Option<u64>,
    /// Memory that the backend holds on its device after the steps, including cached pages; omitted for backends that
    /// use only the memory of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<u64>,
    /// Number of sequences per step.
    pub batch: usize,
    /// Number of tokens per sequence.
    pub len: usize,
    /// Width of the model.
    pub dim: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Number of transformer layers.
    pub layers: usize,
    /// Number of CPU threads.
    pub threads: usize,
}

impl SpeedRow {
    /// Returns the median of the times of an encoding's rows and the maximum of their memory; `None` for no rows.
    pub fn median(rows: &[Self]) -> Option<Self> {
        let last = rows.last()?;
        let step_seconds = median(&rows.iter().map(|row| row.step_seconds).collect::<Vec<_>>())?;
        Some(Self {
            step_seconds,
            tokens_per_second: (last.batch * last.len) as f64 / step_seconds,
            peak_bytes: rows.iter().filter_map(|row| row.peak_bytes).max(),
            device_bytes: rows.iter().filter_map(|row| row.device_bytes).max(),
            ..last.clone()
        })
    }

    /// A row of the median time of a step.
    fn of(request: &SpeedRequest, step_seconds: f64, device: &Device) -> Self {
        let SpeedSize { batch, len, dim, heads, layers, threads, attention, .. } = request.size;
        Self {
            encoding: request.encoding.clone(),
            backend: request.backend.clone(),
            engine: request.engine.id().to_owned(),
            precision: request.precision,
            step_seconds,
            tokens_per_second: (batch * len) as f64 / step_seconds,
            peak_bytes: host::peak_bytes(),
            device_bytes: device.memory_pool_usage().map(|usage| usage.bytes_reserved),
            batch,
            len,
            dim,
            heads,
            layers: if attention { 1 } else { layers },
            threads,
        }
    }
}

impl SpeedRequest {
    /// Checks everything that can be wrong before the measurement, and returns the encoding.
    ///
    /// # Errors
    /// About the encoding or a size.
    pub fn check(&self) -> Result<Combination> {
        self.size.check()?;
        let SpeedSize { batch, len, vocab, attention, .. } = self.size;
        let encoding = crate::encodings::parse(&self.encoding)?;
        encoding.check(&self.dims())?;
        if attention {
            return Ok(encoding);
        }
        let model = self.model();
        model.check()?;
        let operations = model.step_operations(vocab, len, batch);
        ensure!(
            operations <= MOST_STEP_OPERATIONS,
            "a step of --batch {batch} and --len {len} has about {operations:.0e} operations, expected at most \
             {MOST_STEP_OPERATIONS:.0e}; choose a smaller batch, length or model"
        );
        Ok(encoding)
    }

    /// Model whose training steps are measured.
    pub fn model(&self) -> ModelConfig {
        let SpeedSize { dim, heads, layers, .. } = self.size;
        ModelConfig {
            layers,
            width: dim,
            heads,
            activation: ActivationKind::Gelu,
            ..ModelConfig::default()
        }
    }

    /// Sizes for the encoding; one layer if attention alone is measured.
    fn dims(&self) -> Dims {
        let SpeedSize { len, layers, attention, .. } = self.size;
        Dims { layers: if attention { 1 } else { layers }, ..self.model().dims(len, len) }
    }
}

/// Measures one encoding in this process.
///
/// # Errors
/// If a setting is invalid or the measurement fails.
pub fn measure(request: &SpeedRequest) -> Result<SpeedRow> {
    let encoding = request.check()?;
    if request.size.attention {
        return attention::measure(request, &encoding);
    }
    with_trainer(request, |trainer, device| {
        let step_seconds = timed(request.size.steps, device, || {
            trainer.step()?;
            Ok(())
        })?;
        let request = SpeedRequest { encoding: encoding.to_string(), ..request.clone() };
        Ok(SpeedRow::of(&request, step_seconds, device))
    })
}

/// Runs `work` with the trainer of the measured model at its first step, and with its autodiff device.
///
/// # Errors
/// If a setting is invalid or `work` fails.
pub fn with_trainer<R>(
    request: &SpeedRequest,
    work: impl FnOnce(&mut Trainer<'_>, &Device) -> Result<R>,
) -> Result<R> {
    let encoding = request.check()?;
    let SpeedSize { batch, len, vocab, steps, .. } = request.size;
    let config = TrainConfig {
        steps: steps + WARM_UP,
        batch_size: batch,
        len,
        optimizer: OptimizerConfig {
            warmup_steps: 0,
            decay: Decay::Constant,
            clip_norm: None,
            ..OptimizerConfig::default()
        },
        ..TrainConfig::default()
    };
    let device = backend::device(&request.backend)?.autodiff();
    let model = request.model();
    let mut decoder = Decoder::new(
        &model,
        vocab,
        &encoding,
        &model.dims(len, len),
        &mut stream(0, Stream::Model),
        &mut stream(0, Stream::Encoding),
        &device,
    )?;
    decoder.engine = request.engine;
    backend::precision(request.precision, &request.backend, &device)?;
    decoder.precision = request.precision;
    let task = RandomTokens { vocabulary: vocab };
    let mut trainer = Trainer::new(decoder, encoding.id(), &config, 0.0, &task, 0, &device);
    work(&mut trainer, &device)
}

const WARM_UP: usize = 2;

/// Returns the median time of `steps` calls in seconds, after [`WARM_UP`] calls that are not timed. `steps` is at least 1.
///
/// # Errors
/// That of the first call that fails.
fn timed(steps: usize, device: &Device, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut seconds = Vec::with_capacity(steps);
    for step in 0..steps + WARM_UP {
        let start = Instant::now();
        call()?;
        device.sync().map_err(|error| anyhow!("{error:?}"))?;
        if step >= WARM_UP {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    median(&seconds).context("--steps is 0, expected at least 1")
}

static META: TaskMeta = TaskMeta {
    id: "random-tokens",
    label: "Random tokens",
    version: 1,
    headline: Headline::Perplexity,
    len_unit: "tokens",
    summary: "Random tokens, for timing only.",
    source: "",
    takes_path: false,
};

/// Task of uniformly random tokens with every label scored.
#[derive(Debug)]
struct RandomTokens {
    vocabulary: usize,
}

impl Task for RandomTokens {
    fn meta(&self) -> &'static TaskMeta {
        &META
    }

    fn vocab_size(&self) -> usize {
        self.vocabulary
    }

    fn token_text(&self, token: u32) -> String {
        token.to_string()
    }

    fn splits(&self) -> &'static [Split] {
        &[]
    }

    fn max_tokens(&self, len: usize) -> usize {
        len + 1
    }

    fn check_len(&self, _len: usize) -> Result<(), TaskError> {
        Ok(())
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let mut scored = vec![true; len + 1];
        scored[0] = false;
        let tokens = (0..=len).map(|_| rng.random_range(0..self.vocabulary as u32)).collect();
        Sample { tokens, scored, slices: Vec::new() }
    }

    fn eval_set(
        &self,
        _split: &str,
        _len: usize,
        _count: usize,
        _seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_joined_by_medians() {
        let row = |step: f64, peak: u64| -> SpeedRow {
            serde_json::from_value(serde_json::json!({
                "encoding": "rope", "backend": "flex", "engine": "fused", "step_seconds": step,
                "tokens_per_second": 8.0 / step, "peak_bytes": peak,
                "batch": 2, "len": 4, "dim": 8, "heads": 1, "layers": 1, "threads": 1
            }))
            .unwrap()
        };
        let rows = [row(4.0, 7), row(1.0, 9), row(2.0, 8)];
        assert_eq!(SpeedRow::median(&rows), Some(row(2.0, 9)));
        assert_eq!(SpeedRow::median(&[]), None);
    }
}
