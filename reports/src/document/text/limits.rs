//! Limits of what a report shows, its date and its hosts.

use crate::analysis::{Report, distinct};
use crate::number::si;

/// When and where, a line each. The date is that of the cells, not of the
/// rendering, so that the same records give the same bytes.
pub(crate) fn about(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let started = || report.cells.iter().map(|r| r.started_utc.as_str());
    match (started().min(), started().max()) {
        (Some(first), Some(last)) if first == last => {
            lines.push(format!("Cells started {first}"));
        }
        (Some(first), Some(last)) => lines.push(format!("Cells started {first} to {last}")),
        _ => {}
    }
    let hosts = distinct(&report.cells, |r| {
        format!("Host: {}, {} threads, {}", r.host.cpu, r.host.threads, r.host.os)
    });
    lines.extend(hosts);
    lines
}

/// What the report does not show, one sentence each.
pub(crate) fn limits(report: &Report) -> Vec<String> {
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
