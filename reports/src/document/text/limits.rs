//! Limits of what a report shows, its date and its hosts.

use crate::analysis::{Ends, Report};
use crate::number::{count, si};

/// Start times and hosts, one line each. The date is that of the cells and not of the rendering, so that the same
/// records give the same bytes.
pub(crate) fn about(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    match &report.conditions.ends {
        Some(Ends { first_started: Some(first), last_started: Some(last), .. })
            if first == last =>
        {
            lines.push(format!("Cells started {first}"));
        }
        Some(Ends { first_started: Some(first), last_started: Some(last), .. }) => {
            lines.push(format!("Cells started {first} to {last}"));
        }
        _ => {}
    }
    let hosts = report
        .conditions
        .distinct(|r| format!("Host: {}, {}, {}", r.host_cpu, count(r.threads, "thread"), r.os));
    lines.extend(hosts);
    lines
}

/// Limitations of the report, one sentence each.
pub(crate) fn limits(report: &Report) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some((low, high)) = report.seeds() {
        let n = if low == high { count(low, "seed") } else { format!("{low} to {high} seeds") };
        limits.push(format!(
            "Means are over {n}. An interval from few seeds is wide and assumes normally distributed \
             seeds; a single seed has no interval."
        ));
    }
    if let Some(Ends { least_params: Some(low), most_params: Some(high), .. }) =
        report.conditions.ends
    {
        limits.push(format!(
            "The models have {} to {} parameters and are trained for the steps of this suite. Ranks at \
             this size and budget need not hold at others.",
            si(low as f64),
            si(high as f64)
        ));
    }
    limits.push(
        "Holm's correction runs over the pairs of one workload and region. Each of these is a family \
         of its own: among 20 families without any true difference, one false positive is expected."
            .to_owned(),
    );
    limits.push(
        "The paired t test assumes normally distributed seeds. Seeds that either solve a task or fail it \
         are not: read the fit rate beside the rank."
            .to_owned(),
    );
    limits.push(
        "All encodings of a workload share their settings. An encoding may do better with settings \
         of its own."
            .to_owned(),
    );
    limits.push(
        "Times and memory were measured on the host named here and hold for no other.".to_owned(),
    );
    limits
}
