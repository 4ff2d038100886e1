//! Where the numbers come from, and what they do not show.

use crate::model::Report;
use crate::number::si;
use crate::record::RunRecord;
use crate::select::distinct;
use crate::table::{Cell, Table, heads};

/// Where the numbers come from: each fact with its values over all cells.
pub fn provenance(report: &Report) -> Table {
    let mut rows = Vec::new();
    let mut fact = |name: &str, get: &(dyn Fn(&RunRecord) -> String + Sync)| {
        let values = distinct(&report.cells, get);
        let text = values.into_iter().collect::<Vec<_>>().join("; ");
        rows.push(vec![Cell::from(name), text.into()]);
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
    fact("threads; cells at a time", &|r| {
        format!("{} threads, {} at a time", r.host.threads, r.host.jobs)
    });
    fact("versions", &|r| {
        r.versions.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ")
    });
    if !report.meta.command.is_empty() {
        rows.push(vec![Cell::from("command"), report.meta.command.clone().into()]);
    }
    Table { columns: heads(["fact", "value"]), rows, words: true, notes: Vec::new() }
}

/// What the report does not show, one sentence each.
pub fn limits(report: &Report) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some((low, high)) = report.seeds() {
        let n = if low == high { low.to_string() } else { format!("{low} to {high}") };
        limits.push(format!(
            "n is {n} seeds. An interval from few seeds is wide and assumes that seeds scatter \
             normally; a single seed has none."
        ));
    }
    let params = || report.cells.iter().map(|r| r.params.total);
    if let Some((low, high)) = params().min().zip(params().max()) {
        limits.push(format!(
            "The models have {} to {} parameters and train for the steps of this suite. Ranks at \
             this size and budget need not hold at others.",
            si(low as f64),
            si(high as f64)
        ));
    }
    limits.push(
        "Holm's correction runs over the pairs of one workload and region. Each of these is a family \
         of its own: of 20 without any true difference, one is expected to show a false one."
            .to_owned(),
    );
    limits.push(
        "Where the paired t test decided, a difference is separable if seeds scatter normally. Seeds \
         that either solve a task or fail it do not: read the fit rate beside the rank."
            .to_owned(),
    );
    limits.push(
        "All encodings of a workload share their settings. One of them may do better with settings \
         of its own."
            .to_owned(),
    );
    limits.push("Times and memory are those of the host named here, and of no other.".to_owned());
    limits
}
