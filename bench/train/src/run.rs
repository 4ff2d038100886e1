//! Runner: trains and evaluates a model with random or pretrained weights. Every run returns a record, also if it fails.
//!
//! A [`RunPlan`] describes a run. [`plan()`] builds it from an [`Experiment`]; `extend` builds plans that start from
//! pretrained weights. [`RunHooks`] adds checkpoints, events and time limits to any of them.

pub mod checkpoint;
pub mod counts;
pub mod evaluate;
mod finite;
mod gates;
mod hooks;
pub mod kept;
mod observe;
mod observer;
pub mod optimizer;
mod plan;
mod record;
pub mod scored;
pub mod train;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::{Context as _, Result, anyhow};
use burn::module::Module as _;
use burn::tensor::Device;
use records::{Allocations, RunRecord, SkippedEval, Status, TrainSummary, WeightsAt};
use serde::{Deserialize, Serialize};
use tasks::{Sample, Task};

pub use gates::{GATE_SAMPLES, GateSamples, gate_scores};
pub use hooks::{RunEvent, RunHooks};
pub use observe::{AttentionMap, Look, Observed, observe, observe_at};
pub use plan::{counted_step, plan, unfinished_record};
pub use record::RecordBuilder;

use crate::experiment::{Experiment, TrainConfig, TrainingId};
use crate::flops::CountedStep;
use crate::streams::{Stream, stream};
use crate::{backend, host};
use evaluate::{EvalRequest, evaluate};
use observer::{HookObserver, Reported, best_step, summary};
use pe_zoo::model::Decoder;
use train::{Diverged, Trainer, train};

/// Suite and resources of a run, for its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    /// Name of the suite.
    pub suite: String,
    /// SHA-256 of the suite's text; `None` for cells without a suite.
    pub suite_sha256: Option<String>,
    /// CPU threads of the run.
    pub threads: usize,
    /// Number of runs in parallel on the machine.
    pub jobs: usize,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// The model is being trained.
    Train {
        /// Optimizer steps done so far.
        done: usize,
        /// Total steps, without those that an early stop skips.
        of: usize,
        /// Latest mean loss; `None` if it is not finite.
        loss: Option<f64>,
    },
    /// The model is being evaluated.
    Eval {
        /// Number of evaluations done.
        done: usize,
        /// Number of evaluations in all.
        of: usize,
    },
}

/// Description of a run for [`execute`].
pub struct RunPlan<'a> {
    /// Record before the run; its key names the checkpoints.
    pub record: RunRecord,
    /// Id of the encoding, for errors.
    pub encoding_id: &'a str,
    /// Costs to count on the built model, because the encoding has no formulas for them.
    pub unstated: Option<CountedStep<'a>>,
    /// Seed of data, dropout and random positions in training.
    pub seed: u64,
    /// Training before the evaluation; `None`: no training.
    pub training: Option<Training<'a>>,
    /// Identity of the training for kept weights, and the weights that are evaluated; `None`: weights are not kept.
    pub kept: Option<(TrainingId, WeightsAt)>,
    /// Task of the evaluations.
    pub task: &'a dyn Task,
    /// Evaluations after the training.
    pub requests: Vec<EvalRequest<'a>>,
    /// Length and seed of the gate scores' samples; `None`: gates are not scored.
    pub gates: Option<(usize, u64)>,
    /// Builds the model on its device, with autodiff if there is a training.
    pub start: Box<dyn FnOnce() -> Result<(Decoder, Device)> + 'a>,
    /// Counts the allocations of a training step, after the evaluation.
    pub count: Box<dyn FnOnce() -> Option<Allocations> + 'a>,
}

impl std::fmt::Debug for RunPlan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunPlan")
            .field("key", &self.record.key)
            .field("training", &self.training)
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

/// The training of a run.
#[derive(Debug, Clone, Copy)]
pub struct Training<'a> {
    /// Settings of the training.
    pub config: &'a TrainConfig,
    /// Dropout rate in training.
    pub dropout: f64,
    /// Task of the training.
    pub task: &'a dyn Task,
}

/// Runs a plan. The status of the record is [`Status::Interrupted`] if the run was stopped before its end.
pub fn execute(plan: RunPlan<'_>, mut hooks: RunHooks<'_>) -> RunRecord {
    let mut record = plan.record.clone();
    if let Err(reason) = fill(&mut record, plan, &mut hooks) {
        record.status = Status::Failed { reason: reason.to_string() };
    }
    match record.device {
        Some(_) => record.host_peak_bytes = record.host_peak_bytes.or_else(host::peak_bytes),
        None => record.peak_bytes = record.peak_bytes.or_else(host::peak_bytes),
    }
    record
}

/// Builds the model of an experiment with random weights on its backend's device, with autodiff.
///
/// # Errors
/// If the experiment is invalid or the backend is unavailable.
pub fn build(experiment: &Experiment, task: &dyn Task) -> Result<(Decoder, Device)> {
    experiment.check(task)?;
    let device = experiment.train.autodiff(backend::device(&experiment.backend)?);
    backend::precision(experiment.train.precision, &experiment.backend, &device)?;
    let [train_len, max_len] = experiment.built_lens(task);
    let mut model = Decoder::new(
        &experiment.model,
        task.vocab_size(),
        &experiment.encoding,
        &experiment.model.dims(train_len, max_len),
        &mut stream(experiment.seed, Stream::Model),
        &mut stream(experiment.seed, Stream::Encoding),
        &device,
    )?;
    model.engine = experiment.attending();
    model.precision = experiment.train.precision;
    Ok((model, device))
}

fn fill(record: &mut RunRecord, plan: RunPlan<'_>, hooks: &mut RunHooks<'_>) -> Result<()> {
    let RunPlan { encoding_id: id, seed, training, task, requests, gates, start, count, .. } = plan;
    let (mut model, mut device) = start()?;
    record.device = backend::accelerator(&record.backend, &device);
    record.score_form = Some(model.support(&device).id().to_owned());
    if let Some(unstated) = plan.unstated {
        record.params = unstated.params(model.encoding.num_params());
        record.flops = unstated.measured()?;
    }
    let mut last_step = None;
    if let Some(training) = training {
        let training = TrainingRun { id, seed, training, kept: plan.kept };
        match training.model(record, model, &device, hooks)? {
            ControlFlow::Continue(trained) => model = trained,
            ControlFlow::Break(status) => {
                record.status = status;
                return Ok(());
            }
        }
        device = device.inner();
        last_step = Some(record.train.steps.saturating_sub(1));
        note_device_memory(record, &device);
    }
    let trained_on = task.splits().first().map(|split| split.name);
    let mut chances = BTreeMap::new();
    for (done, request) in requests.iter().enumerate() {
        let of = requests.len();
        hooks.tell(RunEvent::Progress(Progress::Eval { done, of }));
        if let Some(stop) = hooks.reason_to_stop(|| format!("{done} of {of} evaluations")) {
            discard_evaluations(record);
            record.status = stop;
            return Ok(());
        }
        match (evaluate(&model, id, task, *request, &device), last_step) {
            // A trained model with non-finite predictions has diverged.
            (Ok(point), Some(step)) if point.in_distribution && !point.nll.is_finite() => {
                discard_evaluations(record);
                let reason = format!(
                    "after the last update the log-likelihood of split `{}` at length {} is {}",
                    request.split, request.len, point.nll
                );
                record.status = Status::Diverged { step, reason };
                return Ok(());
            }
            (Ok(mut point), _) => {
                // Where the task knows the chance, it is not estimated from the questions.
                if Some(request.split) == trained_on {
                    let len = request.len;
                    let known = *chances.entry(len).or_insert_with(|| task.chance_at(len));
                    point.chance = known.or(point.chance);
                }
                record.evals.push(point);
            }
            (Err(error), _) => record.skipped_evals.push(SkippedEval {
                split: request.split.to_owned(),
                len: request.len as u64,
                reason: error.to_string(),
            }),
        }
        note_device_memory(record, &device);
    }
    if let Some((len, seed)) = gates {
        let samples = GateSamples { len, count: GATE_SAMPLES, seed };
        let marked = |sample: &Sample| task.counted(sample);
        record.gates = gate_scores(&model, id, task, &marked, samples, &device)
            .map_err(|error| anyhow!("gate scores cannot be computed: {error}"))?;
    }
    // Counting builds another model, whose memory is not part of the run.
    match record.device {
        Some(_) => record.host_peak_bytes = host::peak_bytes(),
        None => record.peak_bytes = host::peak_bytes(),
    }
    drop(model);
    if !hooks.only_evaluates() {
        record.step_allocations = count();
    }
    record.status = Status::Done;
    Ok(())
}

/// Removes the evaluations of a run that does not finish: a part of them is not a result.
fn discard_evaluations(record: &mut RunRecord) {
    record.evals.clear();
    record.skipped_evals.clear();
}

/// Raises the peak memory of a GPU to what the backend holds there now: it keeps freed memory for later use.
fn note_device_memory(record: &mut RunRecord, device: &Device) {
    if record.device.is_some() {
        let held = device.memory_pool_usage().map(|usage| usage.bytes_reserved);
        record.peak_bytes = record.peak_bytes.max(held);
    }
}

/// Training of a run, and the place of its weights.
struct TrainingRun<'a> {
    /// Id of the encoding, for errors.
    id: &'a str,
    /// Seed of data, dropout and random positions.
    seed: u64,
    training: Training<'a>,
    /// Identity of the training, and the weights that are evaluated.
    kept: Option<(TrainingId, WeightsAt)>,
}

impl TrainingRun<'_> {
    /// Reads or trains the model and describes its training in the record. `model` is the initial one, on an autodiff
    /// device; the trained one is without autodiff. There is none to evaluate if the training ended with a status.
    ///
    /// # Errors
    ///
    /// If the training fails or the weights to evaluate are not there.
    fn model(
        self,
        record: &mut RunRecord,
        model: Decoder,
        device: &Device,
        hooks: &mut RunHooks<'_>,
    ) -> Result<ControlFlow<Status, Decoder>> {
        let Self { id, seed, training: Training { config, dropout, task }, kept } = self;
        let found =
            kept.as_ref().map(|(training, at)| hooks.reusable(training, *at)).transpose()?;
        if let Some(kept) = found.flatten() {
            // Kept weights have no adapters; new ones are zero.
            let model = kept.restore(model.valid().merged())?;
            kept.describe_in(record);
            return Ok(ControlFlow::Continue(model));
        }
        let mut trainer = Trainer::new(model, id, config, dropout, task, seed, device);
        if let Some(replicas) = hooks.replicas(&record.backend, config)? {
            trainer = trainer.across(replicas);
        }
        hooks.resume(trainer.state_mut());
        let reported = Reported::of(&trainer.state().progress);
        let training = kept.as_ref().map(|(training, _)| training);
        let mut observer = HookObserver { config, hooks, record, training, reported };
        let load_before = host::load();
        let trained = train(trainer, &mut observer)?;
        record.train = TrainSummary {
            machine_load: load_before.into_iter().chain(host::load()).reduce(f64::max),
            data_parallel: hooks.data_parallel(),
            ..summary(&trained.progress, config)
        };
        if let Some(Diverged { step, reason }) = trained.progress.diverged {
            return Ok(ControlFlow::Break(Status::Diverged { step: step as u64, reason }));
        }
        if let Some(stop) = trained.stopped {
            return Ok(ControlFlow::Break(stop));
        }
        let model = trained.model.merged();
        let steps = trained.progress.step;
        if let Some(parameter) = finite::first_non_finite(&model) {
            let step = steps.saturating_sub(1) as u64;
            let reason = format!("parameter `{parameter}` is not finite after the last update");
            return Ok(ControlFlow::Break(Status::Diverged { step, reason }));
        }
        let Some((training, at)) = kept else { return Ok(ControlFlow::Continue(model)) };
        if let Some(step) = best_step(&trained.progress) {
            hooks.finish_best(&training, record, step);
        }
        let weights = hooks.keep(&training, &model, record, WeightsAt::Last, steps, true);
        if at == WeightsAt::Last {
            record.weights = weights;
            return Ok(ControlFlow::Continue(model));
        }
        let best = hooks.kept(&training, at)?.context(
            "`eval.weights` is best, but the weights of the best validation were not saved; run the cell with \
             --keep-weights best",
        )?;
        let model = best.restore(model)?;
        record.weights = best.record.weights;
        Ok(ControlFlow::Continue(model))
    }
}
