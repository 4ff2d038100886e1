//! Provenance of the numbers: suites, commits, hosts, versions.

use crate::document::table::{Table, heads, texts};
use analysis::{Condition, Report};
use records::number::{count, joined};

/// Returns the table of facts about the runs, each with its distinct values over all cells.
pub fn provenance(report: &Report) -> Table {
    let mut rows = Vec::new();
    let mut fact = |name: &str, get: &dyn Fn(&Condition) -> String| {
        rows.push(texts([name, &joined(report.conditions.distinct(get), "; ")]));
    };
    fact("suite", &|r| r.suite.clone());
    fact("commit", &|r| r.commit.clone().unwrap_or_else(|| "unknown".into()));
    fact("uncommitted changes", &|r| {
        r.dirty.map_or("unknown", |dirty| if dirty { "yes" } else { "no" }).to_owned()
    });
    fact("backend, engine, precision", &|r| {
        format!("{}, {}, {}", r.backend, r.engine, r.precision)
    });
    fact("host", &|r| format!("{}, {} logical CPUs, {}", r.host_cpu, r.logical_cpus, r.os));
    fact("threads per cell; concurrent cells", &|r| {
        format!("{}, {}", count(r.threads, "thread"), count(r.jobs, "concurrent cell"))
    });
    // What `rustc --version` prints begins with the name.
    fact("versions", &|r| r.versions.replace("rustc rustc ", "rustc "));
    if !report.meta.command.is_empty() {
        rows.push(texts(["command", &report.meta.command]));
    }
    Table { columns: heads(["fact", "value"]), rows, words: true, ..Table::default() }
}
