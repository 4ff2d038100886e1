//! `--dry-run`: the cells of this shard with their estimated training times, as a table or as JSON lines.

use std::time::Duration;

use serde_json::json;

use super::table::{clock, encoding_label};
use crate::cli::columns::say_table;
use crate::cli::out::say;
use crate::sweep::{CellStatus, SweepOptions, SweepPlan, look_up_all, training_seconds};

/// An estimated cell.
struct CellEstimate<'a> {
    key: &'a str,
    workload: &'a str,
    /// Workload with the learning rate of a grid.
    label: String,
    encoding: String,
    seed: u64,
    /// Number of parameters, if the encoding knows its own.
    parameters: Option<usize>,
    train_flops: u64,
    /// Status of a finished cell.
    status: Option<&'static str>,
    seconds: f64,
}

/// Prints the estimate. With `json`, each cell is an object with `event` `cell`, and the last one, `total`, has their number
/// and the seconds of training on one worker.
pub(super) fn print(
    plan: &SweepPlan,
    options: &SweepOptions,
    json: bool,
    rate: impl FnOnce() -> f64,
) {
    let statuses = look_up_all(plan, &options.out, &options.retry);
    let seconds = training_seconds(plan, &statuses, options, rate);
    let own = (0..plan.cells.len()).filter(|index| options.shard.has(&plan.keys[*index]));
    let cells = own.map(|index| {
        let (planned, cell) = (&plan.cells[index], &plan.cells[index].cell);
        let model = cell.model.param_count(planned.task.vocab_size());
        let own = cell.encoding.param_count(&cell.dims(&*planned.task));
        CellEstimate {
            key: &plan.keys[index],
            workload: &cell.workload,
            label: planned.workload_label(),
            encoding: encoding_label(plan, index),
            seed: cell.seed,
            parameters: own.map(|own| model + own),
            train_flops: planned.train_flops(),
            status: match &statuses[index].status {
                CellStatus::Kept(record) => Some(record.status.name()),
                CellStatus::Unreadable(_) => Some("damaged"),
                CellStatus::Open => None,
            },
            seconds: seconds[index],
        }
    });
    let cells = cells.collect::<Vec<_>>();
    let total = cells.iter().map(|cell| cell.seconds).sum::<f64>();
    if json { lines(&cells, total, options) } else { table(&cells, total, plan, options) }
}

fn lines(cells: &[CellEstimate<'_>], total: f64, options: &SweepOptions) {
    for cell in cells {
        let line = json!({
            "event": "cell",
            "key": cell.key,
            "workload": cell.workload,
            "encoding": cell.encoding,
            "seed": cell.seed,
            "parameters": cell.parameters,
            "train_flops": cell.train_flops,
            "status": cell.status.unwrap_or("open"),
            "seconds": cell.seconds,
        });
        say(&line.to_string());
    }
    let line = json!({
        "event": "total",
        "cells": cells.len(),
        "seconds": total,
        "jobs": options.jobs,
        "shard": options.shard.to_string(),
    });
    say(&line.to_string());
}

fn table(cells: &[CellEstimate<'_>], total: f64, plan: &SweepPlan, options: &SweepOptions) {
    let header = ["workload", "encoding", "seed", "parameters", "training", "estimate"];
    let rows = cells.iter().map(|cell| {
        vec![
            cell.label.clone(),
            cell.encoding.clone(),
            cell.seed.to_string(),
            cell.parameters.map_or("unknown".to_owned(), |count| count.to_string()),
            format!("{:.2e} FLOPs", cell.train_flops as f64),
            cell.status.map_or_else(|| clock(duration(cell.seconds)), str::to_owned),
        ]
    });
    say_table(header, rows);
    let shard = if cells.len() == plan.cells.len() {
        String::new()
    } else {
        format!(" of {} (shard {})", plan.cells.len(), options.shard)
    };
    say(&format!(
        "{} cells{shard}; about {} of training in total, {} with {} in parallel; evaluation not included",
        cells.len(),
        clock(duration(total)),
        clock(duration(total / options.jobs as f64)),
        options.jobs
    ));
}

/// Converts seconds to a duration, saturating at the longest one.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
