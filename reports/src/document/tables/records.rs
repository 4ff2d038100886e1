//! Tables of cells and evaluations, and of missing ones.

use crate::analysis::{CellRow, Report};
use crate::document::table::{Table, texts};
use crate::number::{count, joined};

/// Returns the table of evaluations that were not possible.
pub fn skipped_evaluations(report: &Report) -> Table {
    let list = |values: &[u64]| joined(values, ", ");
    let columns = ["workload", "encoding", "split", "lengths", "seeds", "reason"];
    Table::of(columns, &report.skipped_evals, |s| {
        let encoding = report.display(&s.encoding);
        texts([&s.workload, encoding, &s.split, &list(&s.lens), &list(&s.seeds), &s.reason])
    })
    .in_words()
}

/// Returns the table of cells that are excluded from all numbers.
pub fn not_counted(report: &Report) -> Table {
    let columns = ["workload", "encoding", "seed", "state", "reason", "cell"];
    Table::of(columns, &report.not_counted, |n| {
        let (encoding, seed) = (report.display(&n.encoding), n.seed.to_string());
        texts([&n.workload, encoding, &seed, &n.state, &n.reason, &n.key])
    })
    .in_words()
}

/// Returns the table of the cells of one workload and encoding.
pub fn cells(cells: &[CellRow]) -> Table {
    let columns = ["seed", "state", "cell", "commit", "host", "started (UTC)", "training s"];
    Table::of(columns, cells, |r| {
        let dirty = if r.dirty == Some(true) { " (uncommitted changes)" } else { "" };
        let commit = format!("{}{dirty}", r.commit.as_deref().unwrap_or("unknown"));
        let (threads, jobs) = (count(r.threads, "thread"), count(r.jobs, "concurrent cell"));
        let host = format!("{}, {threads}, {jobs}", r.host_cpu);
        let (seed, seconds) = (r.seed.to_string(), format!("{:.1}", r.train_seconds));
        texts([&seed, &r.status, &r.key, &commit, &host, &r.started_utc, &seconds])
    })
    .in_words()
}

/// Returns the table of the number of cells of each workload and encoding.
pub fn groups(report: &Report) -> Table {
    let columns = ["workload", "encoding", "cells", "done", "seeds"];
    Table::of(columns, report.groups(), |group| {
        let [count, done, seeds] = [group.count, group.done, group.seeds].map(|n| n.to_string());
        texts([&group.workload.name, report.display(group.encoding), &count, &done, &seeds])
    })
    .in_words()
}
