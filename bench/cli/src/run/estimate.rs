//! `--dry-run`: the cells of this shard with their estimated training times, as a table or as JSON lines.

use std::collections::BTreeSet;

use serde_json::json;

use super::output::complain_of_unreadable;
use super::table::{clock, encoding_label};
use crate::columns::{TerminalTable, row};
use crate::out::{counted, say};
use sweep::{CellStatus, SweepOptions, SweepPlan, look_up_all, training_seconds};

/// Number of rows beyond which a table has one row for each workload.
const MOST_ROWS: usize = 60;

/// Cells of one row: those that differ in their seeds, or all of a workload.
#[derive(Default)]
struct CellGroup {
    /// Labels of workload and encoding, or the workload alone.
    names: [String; 2],
    encodings: BTreeSet<String>,
    parameters: BTreeSet<Option<usize>>,
    /// Operations of training each.
    flops: Vec<u64>,
    cells: usize,
    /// Number of cells with a record.
    kept: usize,
    /// Expected seconds of those without a record.
    seconds: f64,
}

impl CellGroup {
    fn row(&self) -> Vec<String> {
        let [workload, encoding] = self.names.clone();
        let encoding = match &*encoding {
            "" => counted(self.encodings.len(), "encoding"),
            _ => encoding,
        };
        let number = |count: &Option<usize>| count.map_or("unknown".to_owned(), |n| n.to_string());
        let ends = [self.parameters.first(), self.parameters.last()];
        let flops = [self.flops.iter().min(), self.flops.iter().max()];
        let flops = flops.map(|ends| ends.map(|flops| format!("{:.2e}", *flops as f64)));
        vec![
            workload,
            encoding,
            self.cells.to_string(),
            self.kept.to_string(),
            range(ends.map(|end| end.map(number))),
            range(flops) + " FLOPs",
            clock(self.seconds),
        ]
    }
}

/// A number, or the least and the largest.
fn range([least, largest]: [Option<String>; 2]) -> String {
    match (least, largest) {
        (Some(least), Some(largest)) if least != largest => format!("{least}–{largest}"),
        (least, _) => least.unwrap_or_default(),
    }
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
    let names = |index: usize| [plan.cells[index].workload_label(), encoding_label(plan, index)];
    let count = own.iter().map(|index| names(*index)).collect::<BTreeSet<_>>().len();
    let by_workload = count > MOST_ROWS;
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
        let names = if by_workload { [cell.workload.clone(), String::new()] } else { names(index) };
        let known = groups.iter().position(|group| group.names == names);
        let at = known.unwrap_or(groups.len());
        if known.is_none() {
            groups.push(CellGroup { names, ..CellGroup::default() });
        }
        let group = &mut groups[at];
        group.encodings.insert(encoding);
        group.parameters.insert(parameters);
        group.flops.push(planned.train_flops());
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
    let rows = groups.iter().map(CellGroup::row).collect();
    let heads = row([
        "workload",
        "encoding",
        "cells",
        "records",
        "parameters",
        "training of one cell",
        "estimate, all cells",
    ]);
    // In the order in which a narrow terminal drops them.
    let spare = ["records", "training of one cell", "parameters"];
    TerminalTable { heads, rows, spare: &spare, numbers: false }.say();
    let shard = if own.len() == plan.cells.len() {
        String::new()
    } else {
        format!(" of {} (shard {})", plan.cells.len(), options.shard)
    };
    say(&format!(
        "{}{shard}; training takes about {} in total, or {} with {} in parallel, and less if cells solve their task \
         and stop early. The times do not include evaluation.",
        counted(own.len(), "cell"),
        clock(total),
        clock(total / options.jobs as f64),
        counted(options.jobs, "cell")
    ));
}
