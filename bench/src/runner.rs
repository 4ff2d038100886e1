//! A cell from configuration to record. Whatever happens, there is a record.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use reports::{RunRecord, SkippedEval, Status, TrainSummary};
use serde::{Deserialize, Serialize};
use tasks::Task;

mod blank;
mod care;

pub(crate) use blank::{Blank, Counted};
pub use care::{Care, News};

use crate::cell::{Cell, TrainConfig};
use crate::checkpoint::Moment;
use crate::counts::step_allocations;
use crate::evaluate::{EvalRequest, evaluate};
use crate::inspect::{GATE_SAMPLES, gate_scores};
use crate::model::Decoder;
use crate::streams::{Stream, stream};
use crate::train::{Course, Diverged, Stop, Trainer, Watch, train};
use crate::{backend, host};

/// Where a cell runs and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    /// Name of the suite.
    pub suite: String,
    /// Threads of this run.
    pub threads: usize,
    /// Runs side by side on the machine.
    pub jobs: usize,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Training steps done, of how many, with the latest loss.
    Train {
        /// Steps done.
        done: usize,
        /// Of how many.
        of: usize,
        /// Latest mean loss; `None` if it is not finite.
        loss: Option<f64>,
    },
    /// Evaluations done, of how many.
    Eval {
        /// Evaluations done.
        done: usize,
        /// Of how many.
        of: usize,
    },
}

/// Trains and evaluates one cell.
///
/// A cell that cannot be built, or whose evaluation breaks, leaves a record with the reason.
pub fn run(
    cell: &Cell,
    task: &dyn Task,
    context: &RunContext,
    progress: &mut dyn FnMut(Progress),
) -> RunRecord {
    let mut news = |news| {
        if let News::Progress(how_far) = news {
            progress(how_far);
        }
    };
    run_with(cell, task, context, Care::new(&mut news))
}

/// Trains and evaluates one cell that is cared for: it goes on from a checkpoint, keeps some, and stops when
/// it must. A record with [`Status::Interrupted`] is of a cell that did not come to its end.
pub fn run_with(
    cell: &Cell,
    task: &dyn Task,
    context: &RunContext,
    mut care: Care<'_>,
) -> RunRecord {
    let mut record = blank(cell, task, context);
    if let Err(reason) = fill(&mut record, cell, task, &mut care) {
        record.status = Status::Failed { reason };
    }
    record.peak_bytes = record.peak_bytes.or_else(host::peak_bytes);
    record
}

/// The record of a cell that has not begun.
pub fn blank(cell: &Cell, task: &dyn Task, context: &RunContext) -> RunRecord {
    let [train_tokens, _] = cell.token_lens(task);
    let blank = Blank {
        run: context,
        key: cell.key(task),
        config: cell.config(task),
        workload: cell.workload.clone(),
        encoding: &cell.encoding,
        name: cell.name.clone(),
        label: cell.encoding.card().label.to_owned(),
        task,
        task_config: serde_json::to_value(&cell.task).unwrap_or_default(),
        seed: cell.seed,
        train_len: cell.train.len,
        batch_size: cell.train.batch_size,
        model: &cell.model,
        dims: cell.dims(task),
        counted: Counted { sequences: cell.train.batch_size, tokens: train_tokens },
        backend: &cell.backend,
        engine: cell.attending(),
        precision: cell.train.precision,
    };
    RunRecord { grid: cell.grid.clone(), ..blank.record() }
}

/// Builds the model of a cell on its backend's device, with autodiff.
///
/// # Errors
/// The reason, in words.
pub fn build(cell: &Cell, task: &dyn Task) -> Result<(Decoder, burn::tensor::Device), String> {
    cell.check(task).map_err(|error| error.to_string())?;
    let device = backend::device(&cell.backend).map_err(|error| error.to_string())?;
    let device = cell.train.autodiff(device);
    backend::precision(cell.train.precision, &cell.backend, &device)
        .map_err(|error| error.to_string())?;
    let mut model_rng = stream(cell.seed, Stream::Model);
    let mut encoding_rng = stream(cell.seed, Stream::Encoding);
    let model = Decoder::new(
        &cell.model,
        task.vocab_size(),
        &cell.encoding,
        cell.token_lens(task),
        [&mut model_rng, &mut encoding_rng],
        &device,
    );
    let mut model = model.map_err(|error| error.to_string())?;
    model.engine = cell.attending();
    model.factors = cell.train.precision;
    Ok((model, device))
}

/// Counts parameters and products of an encoding that states no formulas for them.
fn count_unstated(
    record: &mut RunRecord,
    cell: &Cell,
    task: &dyn Task,
    model: &Decoder,
) -> Result<(), String> {
    let dims = cell.dims(task);
    if cell.encoding.param_count(&dims).is_none() {
        record.params.total = model.num_params() as u64;
        record.params.encoding = model.encoding.num_params() as u64;
    }
    if cell.encoding.cost(&dims, 1).is_none() {
        let [train_tokens, _] = cell.token_lens(task);
        let (vocabulary, batch_size) = (task.vocab_size(), cell.train.batch_size);
        let counted = crate::flops::measured(
            &cell.encoding,
            &cell.model,
            &dims,
            vocabulary,
            batch_size,
            train_tokens,
        );
        record.flops = counted.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn fill(
    record: &mut RunRecord,
    cell: &Cell,
    task: &dyn Task,
    care: &mut Care<'_>,
) -> Result<(), String> {
    let (model, device) = build(cell, task)?;
    count_unstated(record, cell, task, &model)?;
    let id = cell.encoding.id();
    let mut trainer =
        Trainer::new(model, id, &cell.train, cell.model.dropout, task, cell.seed, &device);
    care.resume(trainer.state_mut());
    let mut watch = Watching { config: &cell.train, care };
    let trained = train(trainer, &mut watch).map_err(|error| error.to_string())?;
    record.train = summary(&trained.course, &cell.train);
    if let Some(Diverged { step, reason }) = trained.course.diverged {
        record.status = Status::Diverged { step: step as u64, reason };
        return Ok(());
    }
    if let Some(stop) = trained.stopped {
        record.status = status_of(stop);
        return Ok(());
    }
    if let Some(parameter) = first_non_finite(&trained.model) {
        record.status = diverged_at_the_end(
            &trained.course,
            &format!("the last update left parameter `{parameter}` without finite values"),
        );
        return Ok(());
    }
    let device = device.inner();
    let requests = requests(cell, task);
    let trained_on = task.splits().first().map(|split| split.name);
    let mut chances = BTreeMap::new();
    for (done, request) in requests.iter().enumerate() {
        let of = requests.len();
        care.tell(News::Progress(Progress::Eval { done, of }));
        if let Some(stop) = care.reason_to_stop(|| format!("{done} of {of} evaluations")) {
            record.status = status_of(stop);
            return Ok(());
        }
        match evaluate(&trained.model, id, task, *request, &device) {
            // Where a model was trained, its predictions are numbers, or its training diverged.
            Ok(point) if point.in_distribution && !point.nll.is_finite() => {
                record.evals.clear();
                record.skipped_evals.clear();
                record.status = diverged_at_the_end(
                    &trained.course,
                    &format!(
                        "after the last update the log-likelihood of split `{}` at length {} is {}",
                        request.split, request.len, point.nll
                    ),
                );
                return Ok(());
            }
            Ok(mut point) => {
                if Some(request.split) == trained_on {
                    let len = request.len;
                    point.chance = *chances.entry(len).or_insert_with(|| task.chance_at(len));
                }
                record.evals.push(point);
            }
            Err(error) => record.skipped_evals.push(SkippedEval {
                split: request.split.to_owned(),
                len: request.len as u64,
                reason: error.to_string(),
            }),
        }
    }
    let sizes = [cell.train.len, GATE_SAMPLES];
    record.gates = gate_scores(&trained.model, id, task, sizes, cell.eval.seed, &device)
        .map_err(|error| format!("gate scores: {error}"))?;
    // Counting takes a model more, which is none of the cell's memory.
    record.peak_bytes = host::peak_bytes();
    drop(trained.model);
    // What is trained and evaluated is done, counted or not; the nightly verdict names what was not.
    record.step_allocations = step_allocations(cell, task).ok().flatten();
    record.status = Status::Done;
    Ok(())
}

/// Status of a training whose losses were finite up to its last step, and whose model is not.
fn diverged_at_the_end(course: &Course, reason: &str) -> Status {
    Status::Diverged { step: course.step.saturating_sub(1) as u64, reason: reason.to_owned() }
}

/// Path of the first parameter with a NaN or an infinity.
fn first_non_finite(model: &Decoder) -> Option<String> {
    #[derive(Default)]
    struct Finder {
        path: Vec<String>,
        found: Option<String>,
    }
    impl ModuleVisitor for Finder {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.found.is_none() && !param.val().is_finite().all().into_scalar::<bool>() {
                self.found = Some(self.path.join("."));
            }
        }
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }
    }
    let mut finder = Finder::default();
    model.visit(&mut finder);
    finder.found
}

fn requests<'a>(cell: &'a Cell, task: &dyn Task) -> Vec<EvalRequest<'a>> {
    let all = task.splits().iter().map(|split| split.name).collect::<Vec<_>>();
    let splits = match &cell.eval.splits {
        Some(splits) => splits.iter().map(String::as_str).collect(),
        None => all,
    };
    let lens = cell.eval.lens_or(&cell.train.len);
    splits
        .into_iter()
        .flat_map(|split| lens.iter().map(move |len| (split, *len)))
        .map(|(split, len)| EvalRequest {
            split,
            len,
            samples: cell.eval.samples_at(task, len),
            batch_size: cell.eval.batch_size,
            seed: cell.eval.seed,
            train_len: cell.train.len,
            slices: true,
        })
        .collect()
}

fn status_of(stop: Stop) -> Status {
    match stop {
        Stop::TimedOut { reason } => Status::TimedOut { reason },
        Stop::Interrupted => Status::Interrupted,
    }
}

/// Cares for a training, step by step.
struct Watching<'a, 'b> {
    config: &'a TrainConfig,
    care: &'a mut Care<'b>,
}

impl Watch for Watching<'_, '_> {
    fn stepped(&mut self, trainer: &Trainer<'_>, loss: f64) -> ControlFlow<Stop> {
        let course = &trainer.state().course;
        let (done, of) = (course.step, course.end(self.config));
        self.care.tell(News::Progress(Progress::Train { done, of, loss: Some(loss) }));
        let stop = self.care.reason_to_stop(|| format!("{done} of {of} steps"));
        let moment = match (&stop, course.is_over(self.config)) {
            (Some(_), _) => Moment::Stop,
            (None, true) => Moment::End,
            (None, false) => Moment::Step,
        };
        self.care.keep(trainer, moment);
        stop.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}

/// What a record keeps of a training.
pub(crate) fn summary(course: &Course, config: &TrainConfig) -> TrainSummary {
    let median = median(&course.step_seconds);
    let steps = course.step_seconds.len();
    TrainSummary {
        steps: steps as u64,
        batch_size: config.batch_size as u64,
        tokens: course.tokens,
        final_loss: course.curve.last().map(|point| point.loss),
        seconds: course.seconds(),
        step_seconds_median: median,
        tokens_per_second: median
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| course.tokens as f64 / steps as f64 / seconds),
        curve: course.curve.clone(),
        validations: course.validations.clone(),
        solved: course.solved,
        stopped_early: course.stops_early(config),
    }
}

/// The middle value; the mean of the middle two where there are two.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn an_even_number_of_values_has_the_mean_of_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[]), None);
    }
}
