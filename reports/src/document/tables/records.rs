//! Tables of cells and evaluations, and of those that are missing.

use std::collections::BTreeSet;

use crate::analysis::{Group, Report};
use crate::document::table::{Table, TableCell, heads};
use crate::number::count;

/// Table of evaluations that were not possible.
pub fn skipped_evaluations(report: &Report) -> Table {
    let list =
        |values: &BTreeSet<u64>| values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let rows = report
        .skipped_evals
        .iter()
        .map(|s| {
            vec![
                TableCell::from(&s.workload),
                report.display(&s.encoding).into(),
                s.split.clone().into(),
                list(&s.lens).into(),
                list(&s.seeds).into(),
                s.reason.clone().into(),
            ]
        })
        .collect();
    let columns = heads(["workload", "encoding", "split", "lengths", "seeds", "reason"]);
    Table { columns, rows, words: true, ..Table::default() }
}

/// Table of cells that are excluded from all numbers.
pub fn not_counted(report: &Report) -> Table {
    let rows = report
        .not_counted
        .iter()
        .map(|n| {
            vec![
                TableCell::from(&n.workload),
                report.display(&n.encoding).into(),
                n.seed.to_string().into(),
                n.state.into(),
                n.reason.clone().into(),
                n.key.clone().into(),
            ]
        })
        .collect();
    let columns = heads(["workload", "encoding", "seed", "state", "reason", "cell"]);
    Table { columns, rows, words: true, ..Table::default() }
}

/// Table of the cells of one workload and encoding.
pub fn cells(group: &Group<'_>) -> Table {
    let rows = group
        .cells
        .iter()
        .map(|r| {
            let dirty = if r.dirty == Some(true) { " (uncommitted changes)" } else { "" };
            let commit = r.commit.as_deref().unwrap_or("unknown");
            let host = &r.host;
            vec![
                TableCell::from(r.seed.to_string()),
                r.status.name().into(),
                r.key.clone().into(),
                format!("{commit}{dirty}").into(),
                format!(
                    "{}, {}, {}",
                    host.cpu,
                    count(host.threads, "thread"),
                    count(host.jobs, "concurrent cell")
                )
                .into(),
                r.started_utc.clone().into(),
                format!("{:.1}", r.train.seconds).into(),
            ]
        })
        .collect();
    let columns = heads(["seed", "state", "cell", "commit", "host", "started (UTC)", "training s"]);
    Table { columns, rows, words: true, ..Table::default() }
}

/// Table of the number of cells of each workload and encoding.
pub fn groups(report: &Report) -> Table {
    let rows = report
        .groups()
        .into_iter()
        .map(|group| {
            let done = group.cells.iter().filter(|r| r.status.name() == "done").count();
            let seeds: BTreeSet<u64> = group.cells.iter().map(|r| r.seed).collect();
            vec![
                TableCell::from(&group.workload.name),
                report.display(group.encoding).into(),
                group.cells.len().to_string().into(),
                done.to_string().into(),
                seeds.len().to_string().into(),
            ]
        })
        .collect();
    let columns = heads(["workload", "encoding", "cells", "done", "seeds"]);
    Table { columns, rows, words: true, ..Table::default() }
}
