//! Limitations of a report, its date and its hosts.

use super::unseen::unseen;
use analysis::{Ends, Report, Workload};
use records::number::{count, listed, si};

/// Returns start times and hosts, one line each. The date is that of the cells and not of the rendering, so that the
/// same records give the same bytes.
pub(crate) fn about(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(Ends { first_started: Some(first), last_started: Some(last), .. }) =
        &report.conditions.ends
    {
        let to = if first == last { String::new() } else { format!(" to {last}") };
        lines.push(format!("Cells started {first}{to}"));
    }
    let hosts = report
        .conditions
        .distinct(|r| format!("Host: {}, {}, {}", r.host_cpu, count(r.threads, "thread"), r.os));
    lines.extend(hosts);
    lines
}

/// Returns a sentence on the error due to the questions.
fn questions(report: &Report) -> &'static str {
    let known = |workload: &Workload| {
        let rows = &workload.rows;
        rows.iter().any(|r| r.exact_match.question_error.or(r.nll.question_error).is_some())
    };
    let measured = report.workloads.iter().filter(|w| known(w)).count();
    if measured == 0 {
        "These records have no answers to individual questions, so intervals include the variation between seeds but \
         not the variation between questions."
    } else if measured < report.workloads.len() {
        "Intervals of means and differences include the variation between seeds and, where records have the answers \
         to individual questions, the variation between questions. Intervals of slices, gates and costs include only \
         the variation between seeds."
    } else {
        "Intervals of means and differences include the variation between seeds and between questions. Intervals of \
         medians, token accuracy, slices, gates and costs include only the variation between seeds."
    }
}

/// Returns the limitations of the report, one sentence each.
pub(crate) fn limits(report: &Report) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some((low, high)) = report.seeds() {
        let n = if low == high { count(low, "seed") } else { format!("{low} to {high} seeds") };
        limits.push(format!(
            "Means are over {n}. An interval from few seeds is wide and assumes that the results of seeds are \
             normally distributed. A single seed has no interval."
        ));
        limits.push(questions(report).to_owned());
    }
    if let Some(Ends { least_params: Some(low), most_params: Some(high), .. }) =
        report.conditions.ends
    {
        limits.push(format!(
            "The models have {} to {} parameters and are trained for at most as many steps as the suite states. The \
             ranks may differ at other sizes and budgets.",
            si(low as f64),
            si(high as f64)
        ));
    }
    if let Some(overall) = &report.overall
        && !overall.without_chance.is_empty()
    {
        let names = overall.without_chance.iter().map(|name| format!("`{name}`"));
        limits.push(format!(
            "The chance of a right guess is not known on {}; it counts as 0 in scores above chance.",
            listed(&names.collect::<Vec<_>>(), "and")
        ));
    }
    for workload in &report.workloads {
        limits.extend(unseen(workload).iter().map(|said| format!("`{}`: {said}", workload.name)));
    }
    let chosen = report.workloads.iter().any(|workload| workload.grid.is_some());
    let but = if chosen {
        ", apart from the setting that validation chose for each encoding"
    } else {
        ""
    };
    limits.push(format!(
        "On each workload, all encodings are trained with the same settings of model, optimizer and budget{but}. An \
         encoding may do better with other settings."
    ));
    limits
}
