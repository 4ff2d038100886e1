//! Measurement of each kind of work.

use std::collections::BTreeMap;
use std::time::Instant;

use burn::tensor::{DType, Device, Distribution, Tensor};
use pe_zoo::attention::Engine;
use pe_zoo::device::{Choices, TimedLaunch, choose, device_time, multiply_on_mma, timed_launches};
use pe_zoo::ops::{self, MatmulPrecision};
use serde_json::{Value, json};
use stats::median;
use train::backend;
use train::speed::{SpeedRequest, SpeedSize, measure, with_trainer};

use crate::attention::{AttentionProblem, AttentionResult, differences, equal};
use crate::network::NetworkProblem;
use crate::plan::{AttentionWork, NetworkWork, PlannedWork, ProductWork, StepWork, Work};

/// Calls before the timed ones.
const WARM_UP: usize = 1;

/// Number of kernels that are listed by name.
const LISTED: usize = 40;

/// State that measurements share.
pub(crate) struct Lab {
    backend: String,
    /// The last attention that others are compared with.
    reference: Option<(AttentionWork, AttentionProblem, AttentionResult)>,
}

impl Lab {
    pub(crate) fn new(backend: &str) -> Self {
        Self { backend: backend.to_owned(), reference: None }
    }

    fn device(&self) -> Result<Device, String> {
        backend::device(&self.backend).map_err(|error| error.to_string())
    }

    /// Measures one line of the plan.
    ///
    /// # Errors
    /// Message, if a setting is invalid or the device fails.
    pub(crate) fn measure(&mut self, planned: &PlannedWork) -> Result<Value, String> {
        match &planned.work {
            Work::Attention(work) => self.attention(work),
            Work::Network(work) => network(work, &self.device()?.autodiff()),
            Work::Product(work) => product(work, &self.device()?),
            Work::Step(work) => {
                let row = measure(&self.request(work)).map_err(|error| error.to_string())?;
                serde_json::to_value(row).map_err(|error| error.to_string())
            }
            Work::Kernels(work) => kernels(&self.request(work)),
        }
    }

    fn request(&mut self, work: &StepWork) -> SpeedRequest {
        // Its tensors would count towards the memory of the step.
        self.reference = None;
        let StepWork { encoding, precision, batch, len, dim, heads, layers, vocab, steps } =
            work.clone();
        SpeedRequest {
            encoding,
            backend: self.backend.clone(),
            engine: Engine::Fused,
            precision,
            size: SpeedSize {
                batch,
                len,
                dim,
                heads,
                layers,
                vocab,
                steps,
                threads: 2,
                attention: false,
            },
        }
    }

    fn attention(&mut self, work: &AttentionWork) -> Result<Value, String> {
        let device = self.device()?.autodiff();
        backend::precision(work.precision, &self.backend, &device)
            .map_err(|error| error.to_string())?;
        let wanted = work.reference();
        if self.reference.as_ref().is_none_or(|(have, ..)| *have != wanted) {
            self.reference = None;
            choose(wanted.choices());
            let problem = AttentionProblem::new(&wanted, &device)?;
            let result = problem.run(&wanted)?;
            self.reference = Some((wanted, problem, result));
        }
        let Some((_, problem, reference)) = &self.reference else { unreachable!("made above") };
        choose(work.choices());
        let began = Instant::now();
        let first = problem.run(work)?;
        device.sync().map_err(|error| format!("{error:?}"))?;
        let first_seconds = began.elapsed().as_secs_f64();
        let second = problem.run(work)?;
        let [output, q, k, v] = differences(&first, reference);
        let same_bits = equal(&first, &second);
        drop((first, second));
        let (step, on_device) = timed(&device, work.repeats, || {
            problem.of_sum(work);
            Ok(())
        })?;
        let (forward, _) = timed(&device, work.repeats, || {
            problem.forward(work);
            Ok(())
        })?;
        choose(Choices::default());
        Ok(json!({
            "step_seconds": step,
            "forward_seconds": forward,
            "timed_on_device": on_device,
            "first_seconds": first_seconds,
            "largest_difference": { "output": output, "q": q, "k": k, "v": v },
            "same_bits": same_bits,
            "device_bytes": device.memory_pool_usage().map(|usage| usage.bytes_reserved),
        }))
    }
}

/// Median seconds of a call between events of the device; by the host's clock where it has none.
fn timed(
    device: &Device,
    repeats: usize,
    mut call: impl FnMut() -> Result<(), String>,
) -> Result<(f64, bool), String> {
    let mut seconds = Vec::new();
    let mut on_device = true;
    for at in 0..repeats.max(1) + WARM_UP {
        device.sync().map_err(|error| format!("{error:?}"))?;
        let began = Instant::now();
        let mut outcome = Ok(());
        let time = device_time(device, || outcome = call());
        outcome?;
        device.sync().map_err(|error| format!("{error:?}"))?;
        if at >= WARM_UP {
            seconds.push(match time {
                Ok(((), time)) => time.as_secs_f64(),
                Err(_) => {
                    on_device = false;
                    began.elapsed().as_secs_f64()
                }
            });
        }
    }
    median(&seconds).map(|seconds| (seconds, on_device)).ok_or_else(|| "no repeats".to_owned())
}

fn network(work: &NetworkWork, device: &Device) -> Result<Value, String> {
    let problem = NetworkProblem::new(work, device);
    let reference = problem.run(work, MatmulPrecision::F32)?;
    let first = problem.run(work, work.precision)?;
    let second = problem.run(work, work.precision)?;
    let (apart, same_bits) = (differences(&first, &reference), equal(&first, &second));
    drop((reference, first, second));
    let (step, on_device) = timed(device, 5, || problem.run(work, work.precision).map(drop))?;
    let (forward, _) = timed(device, 5, || {
        problem.forward(work);
        Ok(())
    })?;
    Ok(json!({
        "step_seconds": step,
        "forward_seconds": forward,
        "timed_on_device": on_device,
        "largest_difference": apart,
        "same_bits": same_bits,
    }))
}

fn product(work: &ProductWork, device: &Device) -> Result<Value, String> {
    let ProductWork { m, k, n, left_transposed, right_transposed, precision, mma, warpgroups } =
        *work;
    let random = |rows: usize, columns: usize, turned: bool| {
        let shape = if turned { [columns, rows] } else { [rows, columns] };
        let drawn = Tensor::<2>::random(shape, Distribution::Uniform(-1.0, 1.0), device);
        let drawn =
            if precision == MatmulPrecision::Bf16 { drawn.cast(DType::BF16) } else { drawn };
        // The kernel for linear maps takes factors as they are in memory.
        if turned && !mma { drawn.swap_dims(0, 1) } else { drawn }
    };
    let (a, b) = (random(m, k, left_transposed), random(k, n, right_transposed));
    let on_mma = || multiply_on_mma([a.clone(), b.clone()], [left_transposed, right_transposed]);
    choose(Choices { warpgroups, ..Choices::default() });
    let apart = mma.then(|| {
        let plain = |factor: &Tensor<2>, turned: bool| {
            let factor = factor.clone().cast(DType::F32);
            if turned { factor.swap_dims(0, 1) } else { factor }
        };
        let exact = ops::product(plain(&a, left_transposed), plain(&b, right_transposed));
        let [apart] = differences(&[on_mma().reshape([m, n])], &[exact]);
        apart
    });
    let multiply = || match precision {
        _ if mma => drop(on_mma()),
        MatmulPrecision::F32 => drop(ops::product(a.clone(), b.clone())),
        MatmulPrecision::Tf32 | MatmulPrecision::Bf16 => drop(a.clone().matmul(b.clone())),
    };
    let (seconds, on_device) = timed(device, 9, || {
        multiply();
        Ok(())
    })?;
    choose(Choices::default());
    Ok(json!({
        "seconds": seconds,
        "timed_on_device": on_device,
        "operations_per_second": 2.0 * (m * k * n) as f64 / seconds,
        "largest_difference": apart,
    }))
}

/// Kernels of the last of a few training steps.
fn kernels(request: &SpeedRequest) -> Result<Value, String> {
    with_trainer(request, |trainer, device| {
        let mut step = || trainer.step().map(drop);
        for _ in 1..request.size.steps.max(2) {
            step()?;
        }
        device.sync().map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let (outcome, launches) = timed_launches(&mut step);
        outcome?;
        Ok(summary(&launches))
    })
    .map_err(|error| error.to_string())
}

fn summary(launches: &[TimedLaunch]) -> Value {
    let mut by_name = BTreeMap::<&str, (usize, f64)>::new();
    let (mut busy, mut end, mut idle) = (0.0, None, 0.0);
    for launch in launches {
        let sum = by_name.entry(&launch.kernel).or_default();
        *sum = (sum.0 + 1, sum.1 + launch.seconds);
        busy += launch.seconds;
        if let Some(end) = end {
            idle += f64::max(0.0, launch.start_seconds - end);
        }
        end = Some(launch.start_seconds + launch.seconds);
    }
    let mut kernels = by_name.into_iter().collect::<Vec<_>>();
    kernels.sort_by(|(_, (_, a)), (_, (_, b))| b.total_cmp(a));
    let names = kernels.len();
    let listed = kernels.into_iter().take(LISTED).map(|(kernel, (launches, seconds))| {
        json!({ "kernel": kernel, "launches": launches, "seconds": seconds })
    });
    json!({
        "launches": launches.len(),
        "names": names,
        "busy_seconds": busy,
        "idle_seconds": idle,
        "timed_on_device": launches.iter().all(|launch| launch.on_device),
        "kernels": listed.collect::<Vec<_>>(),
    })
}
