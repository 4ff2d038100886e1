//! Tables of cells and evaluations, and of missing ones.

use crate::document::table::{Table, TableCell};
use analysis::{CellRow, Report};
use records::number::{count, joined};

/// Returns the table of evaluations that were not possible.
pub fn skipped_evaluations(report: &Report) -> Table {
    Table::of(&report.skipped_evals)
        .column("workload", |skipped| skipped.workload.clone())
        .column("encoding", |skipped| report.display(&skipped.encoding))
        .column("split", |skipped| skipped.split.clone())
        .column("lengths", |skipped| joined(&skipped.lens, ", "))
        .column("seeds", |skipped| joined(&skipped.seeds, ", "))
        .column("reason", |skipped| skipped.reason.clone())
        .table()
        .in_words()
}

/// Returns the table of cells that are excluded from all numbers.
pub fn not_counted(report: &Report) -> Table {
    Table::of(&report.not_counted)
        .column("workload", |cell| cell.workload.clone())
        .column("encoding", |cell| report.display(&cell.encoding))
        .column("seed", |cell| cell.seed.to_string())
        .column("state", |cell| cell.state.clone())
        .column("reason", |cell| cell.reason.clone())
        .column("cell", |cell| cell.key.clone())
        .table()
        .in_words()
}

/// Returns the table of the cells of one workload and encoding.
pub fn cells<'a>(cells: impl IntoIterator<Item = &'a CellRow>) -> Table {
    Table::of(cells)
        .column("seed", |cell| cell.seed.to_string())
        .column("state", |cell| cell.status.clone())
        .column("cell", |cell| cell.key.clone())
        .column("commit", |cell| {
            let dirty = if cell.dirty == Some(true) { " (uncommitted changes)" } else { "" };
            format!("{}{dirty}", cell.commit.as_deref().unwrap_or("unknown"))
        })
        .column("host", |cell| {
            let (threads, jobs) =
                (count(cell.threads, "thread"), count(cell.jobs, "concurrent cell"));
            format!("{}, {threads}, {jobs}", cell.host_cpu)
        })
        .column("started (UTC)", |cell| cell.started_utc.clone())
        .column("training time (s)", |cell| format!("{:.1}", cell.train_seconds))
        .table()
        .in_words()
}

/// Returns the table of the number of cells of each workload and encoding.
pub fn groups(report: &Report) -> Table {
    Table::of(report.groups())
        .column("workload", |group| group.workload.name.clone())
        .column("encoding", |group| {
            TableCell::from(report.display(group.encoding))
                .with_cells(group.workload, group.encoding)
        })
        .column("cells", |group| group.count.to_string())
        .column("done", |group| group.done.to_string())
        .column("seeds", |group| group.seeds.to_string())
        .table()
        .in_words()
}
