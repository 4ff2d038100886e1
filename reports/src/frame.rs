//! Polars frames of records: evaluations and runs.

use polars::prelude::*;

use crate::record::{EvalPoint, RunRecord};

/// Frame with one row for each evaluation of every record, in the order of the records, and all identifying
/// columns; a record without evaluations has one row in which theirs are null. `status` is the state of the record;
/// only `done` rows belong in aggregates.
///
/// # Errors
/// When polars cannot build the frame.
pub fn data_frame(records: &[RunRecord]) -> PolarsResult<DataFrame> {
    let rows: Vec<(&RunRecord, Option<&EvalPoint>)> = records
        .iter()
        .flat_map(|record| {
            let none = record.evals.is_empty().then_some((record, None));
            none.into_iter().chain(record.evals.iter().map(move |eval| (record, Some(eval))))
        })
        .collect();
    macro_rules! column {
        ($f:expr) => {
            rows.iter().map($f).collect::<Vec<_>>()
        };
    }
    macro_rules! eval {
        ($f:expr) => {
            rows.iter().map(|(_, eval)| eval.map($f)).collect::<Vec<_>>()
        };
    }
    df!(
        "suite" => column!(|(r, _)| r.suite.as_str()),
        "workload" => column!(|(r, _)| r.workload.as_str()),
        "task" => column!(|(r, _)| r.task.id.as_str()),
        "task_version" => column!(|(r, _)| r.task.version),
        "headline" => column!(|(r, _)| r.task.headline.as_str()),
        "encoding" => column!(|(r, _)| r.encoding.name.as_str()),
        "encoding_id" => column!(|(r, _)| r.encoding.id.as_str()),
        "seed" => column!(|(r, _)| r.seed),
        "key" => column!(|(r, _)| r.key.as_str()),
        "grid_axis" => column!(|(r, _)| r.grid.as_ref().map(|g| g.axis.as_str())),
        "grid_value" => column!(|(r, _)| r.grid.as_ref().map(|g| g.value)),
        "status" => column!(|(r, _)| r.status.name()),
        "train_len" => column!(|(r, _)| r.train_len),
        "split" => eval!(|e| e.split.as_str()),
        "in_distribution" => eval!(|e| e.in_distribution),
        "len" => eval!(|e| e.len),
        "samples" => eval!(|e| e.samples),
        "scored_tokens" => eval!(|e| e.scored_tokens),
        "exact_match" => eval!(|e| e.exact_match),
        "token_accuracy" => eval!(|e| e.token_accuracy),
        "nll" => eval!(|e| e.nll),
        "perplexity" => eval!(|e| e.perplexity),
        "bits_per_byte" => column!(|(_, e)| e.and_then(|e| e.bits_per_byte)),
        "chance" => column!(|(_, e)| e.and_then(|e| e.chance)),
        "seconds" => eval!(|e| e.seconds),
        "backend" => column!(|(r, _)| r.backend.as_str()),
        "engine" => column!(|(r, _)| r.engine.as_str()),
        "precision" => column!(|(r, _)| r.precision.as_str()),
        "commit" => column!(|(r, _)| r.commit.as_deref()),
        "dirty" => column!(|(r, _)| r.dirty),
        "host_cpu" => column!(|(r, _)| r.host.cpu.as_str()),
    )
}

/// Frame with one row for each record of any status: costs, host, end.
///
/// # Errors
/// When polars cannot build the frame.
pub fn runs_frame(records: &[RunRecord]) -> PolarsResult<DataFrame> {
    macro_rules! column {
        ($f:expr) => {
            records.iter().map($f).collect::<Vec<_>>()
        };
    }
    let reasons: Vec<String> = records.iter().map(|r| r.status.reason()).collect();
    df!(
        "suite" => column!(|r| r.suite.as_str()),
        "workload" => column!(|r| r.workload.as_str()),
        "task" => column!(|r| r.task.id.as_str()),
        "encoding" => column!(|r| r.encoding.name.as_str()),
        "encoding_id" => column!(|r| r.encoding.id.as_str()),
        "seed" => column!(|r| r.seed),
        "key" => column!(|r| r.key.as_str()),
        "status" => column!(|r| r.status.name()),
        "reason" => reasons,
        "train_len" => column!(|r| r.train_len),
        "params_total" => column!(|r| r.params.total),
        "params_encoding" => column!(|r| r.params.encoding),
        "flops_train_step" => column!(|r| r.flops.train_step),
        "flops_forward_per_token" => column!(|r| r.flops.forward_per_token),
        "step_instructions" => column!(|r| r.step_instructions),
        "step_allocations" => column!(|r| r.step_allocations.map(|asked| asked.count)),
        "step_allocated_bytes" => column!(|r| r.step_allocations.map(|asked| asked.bytes)),
        "grid_axis" => column!(|r| r.grid.as_ref().map(|g| g.axis.as_str())),
        "grid_value" => column!(|r| r.grid.as_ref().map(|g| g.value)),
        "solved_step" => column!(|r| r.train.solved.map(|s| s.step)),
        "stopped_early" => column!(|r| r.train.stopped_early),
        "train_steps" => column!(|r| r.train.steps),
        "batch_size" => column!(|r| r.train.batch_size),
        "train_tokens" => column!(|r| r.train.tokens),
        "final_loss" => column!(|r| r.train.final_loss),
        "train_seconds" => column!(|r| r.train.seconds),
        "step_seconds_median" => column!(|r| r.train.step_seconds_median),
        "tokens_per_second" => column!(|r| r.train.tokens_per_second),
        "peak_bytes" => column!(|r| r.peak_bytes),
        "host_cpu" => column!(|r| r.host.cpu.as_str()),
        "threads" => column!(|r| r.host.threads),
        "jobs" => column!(|r| r.host.jobs),
        "backend" => column!(|r| r.backend.as_str()),
        "engine" => column!(|r| r.engine.as_str()),
        "precision" => column!(|r| r.precision.as_str()),
        "commit" => column!(|r| r.commit.as_deref()),
        "dirty" => column!(|r| r.dirty),
        "started_utc" => column!(|r| r.started_utc.as_str()),
    )
}

#[cfg(test)]
mod tests;
