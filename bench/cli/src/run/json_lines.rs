//! Progress of a sweep as JSON lines: one object per event, each with a field `event`.
//!
//! | event | when | further fields |
//! | --- | --- | --- |
//! | `start` | first, and again before the fresh seeds of a grid | `suite`, `results`, `cells`, `kept`, `jobs`, `shard`, `keep_weights` (`last`, `best` or null) |
//! | `began` | a cell's worker starts | with `--devices`: `devices`, their numbers, and `device`, the first of them |
//! | `resumed` | the cell resumes from a checkpoint | `step` |
//! | `progress` | at most five times a second for each cell | `phase` (`train`, `eval`), `done`, `of`, `loss` or null |
//! | `point` | the training curve has a new point | `step`, `loss` (mean since the last point), `learning_rate`, `seconds` |
//! | `validated` | the model was validated | `step`, `exact_match`, `token_accuracy`, `nll`, `samples`, `seconds` |
//! | `held` | another process is running the cell, or another cell is training its weights | `by` |
//! | `picked-up` | another process has ended the cell | `status`, `reason` or null |
//! | `ended` | the record of the cell is on disk | `status`, `reason` or null, `seconds` of training and evaluation |
//! | `interrupted` | the cell was stopped; the next run resumes it | |
//! | `lost` | another process took over the cell, because its claim was not renewed in time | |
//! | `trouble` | a problem that does not end the cell | `text` |
//! | `finish` | last, unless the sweep breaks | `statuses` (number of cells by status), `open`, `unreadable`, `interrupted`, `report` or null |
//!
//! All but `start` and `finish` have the cell's `key`, `workload`, `encoding` and `seed`.

use std::collections::BTreeMap;
use std::path::Path;

use records::RunRecord;
use serde_json::{Value, json};

use super::table::seconds_of;
use crate::out::say;
use sweep::{CellEvent, CellFile, SweepEvent, SweepOptions, SweepOutcome, SweepPlan};
use train::run::{Progress, RunEvent};

/// Prints the first event.
pub(super) fn start(plan: &SweepPlan, statuses: &[CellFile], options: &SweepOptions) {
    print(json!({
        "event": "start",
        "suite": plan.suite,
        "results": options.out,
        "cells": plan.cells.len(),
        "kept": statuses.iter().filter(|one| one.kept().is_some()).count(),
        "jobs": options.jobs,
        "shard": options.shard.to_string(),
        "keep_weights": options.weights.keep,
    }));
}

/// Prints an event of a cell.
pub(super) fn event(plan: &SweepPlan, event: &SweepEvent) {
    let (name, more) = match &event.what {
        CellEvent::Began { devices } => match devices.as_slice() {
            [] => ("began", json!({})),
            [first, ..] => ("began", json!({ "device": first, "devices": devices })),
        },
        CellEvent::Run(RunEvent::Resumed { step, .. }) => ("resumed", json!({ "step": step })),
        CellEvent::Run(RunEvent::Progress(Progress::Train { done, of, loss })) => {
            ("progress", json!({ "phase": "train", "done": done, "of": of, "loss": loss }))
        }
        CellEvent::Run(RunEvent::Progress(Progress::Eval { done, of })) => {
            ("progress", json!({ "phase": "eval", "done": done, "of": of, "loss": null }))
        }
        CellEvent::Run(RunEvent::Point(point)) => ("point", json!(point)),
        CellEvent::Run(RunEvent::Validated(validation)) => ("validated", json!(validation)),
        CellEvent::Run(RunEvent::Trouble(text)) => ("trouble", json!({ "text": text })),
        CellEvent::Held { by } => ("held", json!({ "by": by })),
        CellEvent::PickedUp(record) => ("picked-up", end_of(record)),
        CellEvent::Ended(record) => {
            let mut end = end_of(record);
            end["seconds"] = json!(seconds_of(record));
            ("ended", end)
        }
        CellEvent::Interrupted => ("interrupted", json!({})),
        CellEvent::Lost => ("lost", json!({})),
    };
    let cell = &plan.cells[event.index].cell;
    let mut line = json!({
        "event": name,
        "key": plan.keys[event.index],
        "workload": cell.workload,
        "encoding": cell.name,
        "seed": cell.seed,
    });
    if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
        line.extend(more);
    }
    print(line);
}

/// Prints the last event.
pub(super) fn finish(plan: &SweepPlan, outcome: &SweepOutcome, report: Option<&Path>) {
    let mut statuses = BTreeMap::<&str, usize>::new();
    for record in &outcome.records {
        *statuses.entry(record.status.name()).or_default() += 1;
    }
    let open = outcome.open.iter().map(|index| plan.keys[*index].as_str());
    let unreadable = outcome.unreadable.iter().map(ToString::to_string);
    print(json!({
        "event": "finish",
        "statuses": statuses,
        "open": open.collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "interrupted": outcome.interrupted,
        "report": report,
    }));
}

fn end_of(record: &RunRecord) -> Value {
    let reason = Some(record.status.reason()).filter(|reason| !reason.is_empty());
    json!({ "status": record.status.name(), "reason": reason })
}

#[expect(clippy::needless_pass_by_value, reason = "values are made for this")]
fn print(line: Value) {
    say(&line.to_string());
}
