//! Plan of an experiment: training from random weights, then the evaluations.

use records::RunRecord;
use tasks::Task;

use super::counts::step_allocations;
use super::evaluate::EvalRequest;
use super::record::RecordBuilder;
use super::{RunContext, RunPlan, Training, build};
use crate::experiment::Experiment;
use crate::flops::CountedStep;

/// Plan of an experiment: training from random weights, then the evaluations.
pub fn plan<'a>(
    experiment: &'a Experiment,
    task: &'a dyn Task,
    context: &RunContext,
) -> RunPlan<'a> {
    RunPlan {
        record: unfinished_record(experiment, task, context),
        encoding_id: experiment.encoding.id(),
        unstated: Some(counted_step(experiment, task)).filter(|step| !step.is_stated()),
        seed: experiment.seed,
        training: Some(Training {
            config: &experiment.train,
            dropout: experiment.model.dropout,
            task,
        }),
        kept: Some((experiment.training(task), experiment.eval.weights)),
        task,
        requests: requests(experiment, task),
        gates: Some((experiment.train.len, experiment.eval.seed)),
        start: Box::new(move || build(experiment, task)),
        // A failed count does not invalidate the run; `nightly` reports missing counts.
        count: Box::new(move || step_allocations(experiment, task).ok().flatten()),
    }
}

/// Training step of an experiment, for its costs.
pub fn counted_step<'a>(experiment: &'a Experiment, task: &dyn Task) -> CountedStep<'a> {
    CountedStep {
        encoding: &experiment.encoding,
        model: &experiment.model,
        dims: experiment.dims(task),
        vocabulary: task.vocab_size(),
        sequences: experiment.train.batch_size,
        tokens: experiment.token_lens(task)[0],
    }
}

/// Record of an experiment that has not begun.
pub fn unfinished_record(
    experiment: &Experiment,
    task: &dyn Task,
    context: &RunContext,
) -> RunRecord {
    let record = RecordBuilder {
        run: context,
        key: experiment.key(task),
        config: experiment.config(task),
        workload: experiment.workload.clone(),
        name: experiment.name.clone(),
        label: experiment.encoding.card().label.clone(),
        task,
        task_config: serde_json::to_value(&experiment.task).unwrap_or_default(),
        seed: experiment.seed,
        train_len: experiment.train.len,
        batch_size: experiment.train.batch_size,
        step: counted_step(experiment, task),
        backend: &experiment.backend,
        engine: experiment.attending(),
        precision: experiment.train.precision,
    };
    RunRecord { grid: experiment.grid.clone(), ..record.build() }
}

/// Evaluations of an experiment: its splits at its lengths.
fn requests<'a>(experiment: &'a Experiment, task: &dyn Task) -> Vec<EvalRequest<'a>> {
    let all = task.splits().iter().map(|split| split.name).collect::<Vec<_>>();
    let splits = match &experiment.eval.splits {
        Some(splits) => splits.iter().map(String::as_str).collect(),
        None => all,
    };
    let lens = experiment.eval.lens_or(&experiment.train.len);
    splits
        .into_iter()
        .flat_map(|split| lens.iter().map(move |len| (split, *len)))
        .map(|(split, len)| EvalRequest {
            split,
            len,
            samples: experiment.eval.samples_at(task, len),
            batch_size: experiment.eval.batch_size,
            seed: experiment.eval.seed,
            train_len: experiment.train.len,
            slices: true,
        })
        .collect()
}
