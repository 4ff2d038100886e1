//! Tables of cells and evaluations, and of missing ones.

use crate::analysis::{CellRow, Report};
use crate::document::table::{Table, TableCell, heads};
use crate::number::count;

/// Returns the table of evaluations that were not possible.
pub fn skipped_evaluations(report: &Report) -> Table {
    let list = |values: &[u64]| values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
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

/// Returns the table of cells that are excluded from all numbers.
pub fn not_counted(report: &Report) -> Table {
    let rows = report
        .not_counted
        .iter()
        .map(|n| {
            vec![
                TableCell::from(&n.workload),
                report.display(&n.encoding).into(),
                n.seed.to_string().into(),
                n.state.clone().into(),
                n.reason.clone().into(),
                n.key.clone().into(),
            ]
        })
        .collect();
    let columns = heads(["workload", "encoding", "seed", "state", "reason", "cell"]);
    Table { columns, rows, words: true, ..Table::default() }
}

/// Returns the table of the cells of one workload and encoding.
pub fn cells(cells: &[CellRow]) -> Table {
    let rows = cells
        .iter()
        .map(|r| {
            let dirty = if r.dirty == Some(true) { " (uncommitted changes)" } else { "" };
            let commit = r.commit.as_deref().unwrap_or("unknown");
            vec![
                TableCell::from(r.seed.to_string()),
                r.status.clone().into(),
                r.key.clone().into(),
                format!("{commit}{dirty}").into(),
                format!(
                    "{}, {}, {}",
                    r.host_cpu,
                    count(r.threads, "thread"),
                    count(r.jobs, "concurrent cell")
                )
                .into(),
                r.started_utc.clone().into(),
                format!("{:.1}", r.train_seconds).into(),
            ]
        })
        .collect();
    let columns = heads(["seed", "state", "cell", "commit", "host", "started (UTC)", "training s"]);
    Table { columns, rows, words: true, ..Table::default() }
}

/// Returns the table of the number of cells of each workload and encoding.
pub fn groups(report: &Report) -> Table {
    let rows = report
        .groups()
        .into_iter()
        .map(|group| {
            vec![
                TableCell::from(&group.workload.name),
                report.display(group.encoding).into(),
                group.count.to_string().into(),
                group.done.to_string().into(),
                group.seeds.to_string().into(),
            ]
        })
        .collect();
    let columns = heads(["workload", "encoding", "cells", "done", "seeds"]);
    Table { columns, rows, words: true, ..Table::default() }
}
