//! `--dry-run`: the cells of this shard with their estimated training times, as a table or as JSON lines.

use serde_json::json;

use super::output::complain_of_unreadable;
use super::table::{clock, encoding_label};
use crate::columns::say_table;
use crate::out::{counted, say};
use sweep::{CellStatus, SweepOptions, SweepPlan, look_up_all, training_seconds};

/// Cells that differ in their seeds.
#[derive(Default)]
struct CellGroup {
    /// Labels of workload and encoding.
    names: [String; 2],
    parameters: String,
    /// Operations of training one.
    flops: f64,
    cells: usize,
    /// Number of cells with a record.
    kept: usize,
    /// Expected seconds of those without a record.
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
    let statuses = look_up_all(plan, &options.out, &options.retry, options.packed);
    complain_of_unreadable(&statuses);
    let seconds = training_seconds(plan, &statuses, options, rate);
    let own = (0..plan.cells.len()).filter(|index| options.shard.has(&plan.keys[*index]));
    let own = own.collect::<Vec<_>>();
    let mut groups: Vec<CellGroup> = Vec::new();
    for &index in &own {
        let (planned, cell) = (&plan.cells[index], &plan.cells[index].cell);
        let encoding = encoding_label(plan, index);
        // Unknown if the encoding does not know its own number.
        let of_encoding = cell.encoding.param_count(&cell.dims(&*planned.task));
        let parameters =
            of_encoding.map(|own| cell.model.param_count(planned.task.vocab_size()) + own);
        let status = match &statuses[index].status {
            CellStatus::Kept(record) => Some(record.status.name()),
            CellStatus::Unreadable(_) => Some("unreadable"),
            CellStatus::Open => None,
        };
        if json {
            let line = json!({
                "event": "cell",
                "key": plan.keys[index],
                "workload": cell.workload,
                "encoding": encoding,
                "seed": cell.seed,
                "parameters": parameters,
                "train_flops": planned.train_flops(),
                "status": status.unwrap_or("open"),
                "seconds": seconds[index],
            });
            say(&line.to_string());
            continue;
        }
        let names = [planned.workload_label(), encoding];
        let known = groups.iter().position(|group| group.names == names);
        let at = known.unwrap_or(groups.len());
        if known.is_none() {
            groups.push(CellGroup {
                names,
                parameters: parameters.map_or("unknown".to_owned(), |count| count.to_string()),
                flops: planned.train_flops() as f64,
                ..CellGroup::default()
            });
        }
        let group = &mut groups[at];
        group.cells += 1;
        group.kept += usize::from(status.is_some());
        group.seconds += seconds[index];
    }
    let total = own.iter().map(|index| seconds[*index]).sum::<f64>();
    if json {
        let line = json!({
            "event": "total",
            "cells": own.len(),
            "seconds": total,
            "jobs": options.jobs,
            "shard": options.shard.to_string(),
        });
        say(&line.to_string());
        return;
    }
    let rows = groups.into_iter().map(|group| {
        let [workload, encoding] = group.names;
        let (cells, kept) = (group.cells.to_string(), group.kept.to_string());
        let flops = format!("{:.2e} FLOPs", group.flops);
        vec![workload, encoding, cells, kept, group.parameters, flops, clock(group.seconds)]
    });
    let heads =
        ["workload", "encoding", "cells", "kept", "parameters", "training of one", "estimate"];
    say_table(heads, rows);
    let shard = if own.len() == plan.cells.len() {
        String::new()
    } else {
        format!(" of {} (shard {})", plan.cells.len(), options.shard)
    };
    say(&format!(
        "{}{shard}; about {} of training in total, {} with {} in parallel; evaluation not included",
        counted(own.len(), "cell"),
        clock(total),
        clock(total / options.jobs as f64),
        options.jobs
    ));
}
