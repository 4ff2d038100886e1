//! Provenance of the numbers: suites, commits, hosts, versions.

use crate::analysis::Report;
use crate::analysis::distinct;
use crate::document::table::{Table, TableCell, heads};
use crate::number::count;
use crate::record::{DeviceInfo, RunRecord};

/// Table of facts about the runs, each with its distinct values over all cells.
pub fn provenance(report: &Report) -> Table {
    let mut rows = Vec::new();
    let mut fact = |name: &str, get: &(dyn Fn(&RunRecord) -> String + Sync)| {
        let values = distinct(&report.cells, get);
        let text = values.into_iter().collect::<Vec<_>>().join("; ");
        rows.push(vec![TableCell::from(name), text.into()]);
    };
    fact("suite", &|r| r.suite.clone());
    fact("commit", &|r| r.commit.clone().unwrap_or_else(|| "unknown".into()));
    fact("uncommitted changes", &|r| {
        r.dirty.map_or("unknown", |dirty| if dirty { "yes" } else { "no" }).to_owned()
    });
    fact("backend, engine, precision", &|r| {
        format!("{}, {}, {}", r.backend, r.engine, r.precision)
    });
    fact("host", &|r| {
        format!("{}, {} logical CPUs, {}", r.host.cpu, r.host.logical_cpus, r.host.os)
    });
    if report.cells.iter().any(|r| r.device.is_some()) {
        fact("device", &|r| r.device.as_ref().map_or("processor".to_owned(), DeviceInfo::text));
    }
    fact("threads per cell; concurrent cells", &|r| {
        format!("{}, {}", count(r.host.threads, "thread"), count(r.host.jobs, "concurrent cell"))
    });
    fact("versions", &|r| {
        r.versions.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ")
    });
    if !report.meta.command.is_empty() {
        rows.push(vec![TableCell::from("command"), report.meta.command.clone().into()]);
    }
    Table { columns: heads(["fact", "value"]), rows, words: true, notes: Vec::new() }
}
