//! Result tables of `pe-bench extend`: one row per encoding, one column per length.

use std::collections::{BTreeMap, BTreeSet};

use records::{EvalPoint, RunRecord, SkippedEval, Status};

use crate::columns::{TerminalTable, width};

pub(super) fn lines(records: &[RunRecord]) -> Vec<String> {
    let mut tasks = Vec::<&RunRecord>::new();
    for record in records {
        if tasks.iter().all(|other| other.workload != record.workload) {
            tasks.push(record);
        }
    }
    let mut lines = Vec::new();
    for first in tasks {
        let rows = records.iter().filter(|record| record.workload == first.workload);
        let rows = rows.collect::<Vec<_>>();
        lines.push(String::new());
        lines.push(format!("{}: {}", first.workload, first.task.headline));
        let columns = TerminalTable { rows: table(&rows), ..TerminalTable::default() };
        lines.extend(columns.lines(width()));
    }
    lines
}

/// Evaluations that were skipped, each with its reason, once for all encodings.
pub(super) fn skipped(records: &[RunRecord]) -> BTreeSet<String> {
    let of = |record: &RunRecord| {
        let line = |skipped: &SkippedEval| {
            format!("{}, length {}: {}", record.workload, skipped.len, skipped.reason)
        };
        record.skipped_evals.iter().map(line).collect::<Vec<_>>()
    };
    records.iter().flat_map(of).collect()
}

fn table(records: &[&RunRecord]) -> Vec<Vec<String>> {
    let lens = records.iter().flat_map(|record| record.evals.iter().map(|point| point.len));
    let lens = lens.collect::<BTreeSet<_>>();
    let mut header = vec!["encoding".to_owned()];
    header.extend(lens.iter().map(u64::to_string));
    header.push("peak MiB".to_owned());
    let mut table = vec![header];
    for record in records {
        let points = record.evals.iter().map(|p| (p.len, p)).collect::<BTreeMap<u64, &EvalPoint>>();
        let value = |len: &u64| match points.get(len) {
            None => "–".to_owned(),
            Some(point) if record.task.headline == "perplexity" => {
                format!("{:.3}", point.perplexity)
            }
            Some(point) => format!("{:.0}%", 100.0 * point.exact_match),
        };
        let mut row = vec![record.encoding.name.clone()];
        row.extend(lens.iter().map(value));
        let peak =
            record.peak_bytes.map(|bytes| format!("{:.0}", bytes as f64 / f64::from(1 << 20)));
        row.push(peak.unwrap_or_else(|| "–".to_owned()));
        if record.status != Status::Done {
            row.push(record.status.name().to_owned());
        }
        table.push(row);
    }
    table
}
