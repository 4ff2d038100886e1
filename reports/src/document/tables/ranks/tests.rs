use super::*;
use crate::analysis::ReportMeta;
use crate::frame::Frames;
use crate::record::{RunRecord, Status};
use crate::testkit::TestCell;

fn records() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (encoding, beyond) in [
        ("cope", [0.97, 0.98, 0.99]),
        ("rope", [0.96, 0.99, 0.95]),
        ("nope", [0.10, 0.12, 0.11]),
        ("alibi", [0.10, 0.13, 0.10]),
    ] {
        for (seed, beyond) in (0..).zip(beyond) {
            records.push(
                TestCell::new("flip-flop", encoding, seed)
                    .eval("in-distribution", false, 128, beyond)
                    .change(|r| r.evals[1].exact_match = beyond)
                    .inside(if encoding == "nope" && seed > 0 { 0.7 } else { 1.0 })
                    .record(),
            );
        }
    }
    records.push(
        TestCell::new("flip-flop", "learned", 0)
            .eval("in-distribution", false, 128, 0.0)
            .limited_to(64)
            .record(),
    );
    let diverged = Status::Diverged { step: 9, reason: "NaN".into() };
    records
        .push(TestCell::new("flip-flop", "learned", 1).without_evals().status(diverged).record());
    records
}

fn report(settings: &Settings) -> Report {
    Report::with(Frames::of(&records()).unwrap(), &ReportMeta::default(), settings).unwrap()
}

/// Formats a table as text: cells separated by ` | `, details in braces, bold marked with a star.
fn show(table: &Table) -> String {
    let row = |cells: Vec<String>| cells.join(" | ");
    let mut lines = vec![row(table.columns.clone())];
    lines.extend(table.rows.iter().map(|cells| {
        row(cells
            .iter()
            .map(|c| {
                let star = if c.strong { "*" } else { "" };
                let detail =
                    if c.detail.is_empty() { String::new() } else { format!(" {{{}}}", c.detail) };
                format!("{star}{}{detail}", c.text)
            })
            .collect())
    }));
    lines.extend(table.notes.iter().chain(&table.legends).cloned());
    lines.join("\n")
}

#[test]
fn ranks_are_shared_by_what_cannot_be_separated() {
    let report = report(&Settings::default());
    let expected = "\
encoding | rank | exact match | median | behind the best | p (Holm) | Hedges' g | against the best
*CoPE | *1 | *98.0 % {[95.5 to 100.0] n=3} | *98.0 % {[97.0 to 99.0]} | – | – | – | *best
RoPE | 1 | 96.7 % {[91.5 to 100.0] n=3} | 96.0 % {[95.0 to 99.0]} | 1.3 points {[-4.9 to 7.6]} | 0.91 {paired t} | 0.299 | not separable with n = 3
ALiBi | 2 | 11.0 % {[6.7 to 15.3] n=3} | 10.0 % {[10.0 to 13.0]} | 87.0 points {[82.0 to 92.0]} | 0.00053 {paired t} | 24.5 | separable
NoPE | 2 | 11.0 % {[8.5 to 13.5] n=3} | 11.0 % {[10.0 to 12.0]} | 87.0 points {[84.5 to 89.5]} | 0.00022 {paired t} | 49.1 | separable; not separable with n = 3 from ALiBi
learned | – | – | – | – | – | – | ‡ 0 of 2 evaluations
Test: paired t test with Holm's correction over 6 pairs, because 3 seeds cannot reach 5 % by permutation (minimum p 0.25).
Mean: over n seeds, with its 95 % confidence interval in brackets (Student's t).
Median: with its 95 % bootstrap interval, which is too narrow for few seeds: it covers the true value in 1/2 of all cases with 2 seeds, in 3/4 with 3.
Rank: an encoding shares the rank of the best one that it cannot be separated from.
Behind the best: mean difference paired by seed, with its 95 % confidence interval, not corrected.";
    let workload = &report.workloads[0];
    assert_eq!(show(&ranks(&report, workload, &workload.rankings[1])), expected);
}

#[test]
fn what_seeds_achieved() {
    let settings = Settings { solved_loss: 1.0, ..Settings::default() };
    let report = report(&settings);
    let expected = "\
encoding | fit rate | steps to solve | seconds to solve | effective length | times training length
ALiBi | 100.0 % {3 of 3} | 150 {[100 to 150] n=3} | 3.00 {[2.00 to 3.00] n=3} | 64 {n=3} | 1.00
CoPE | 100.0 % {3 of 3} | 150 {[100 to 150] n=3} | 3.00 {[2.00 to 3.00] n=3} | ≥ 128 {n=3} | ≥ 2.00
learned | 50.0 % {1 of 2} | 100 {n=1} | 2.00 {n=1} | 64 {n=1} | 1.00
NoPE | 33.3 % {1 of 3} | 100 {n=1} | 2.00 {n=1} | 0 {[0 to 64] n=3} | 0.00
RoPE | 100.0 % {3 of 3} | 150 {[100 to 150] n=3} | 3.00 {[2.00 to 3.00] n=3} | ≥ 128 {n=3} | ≥ 2.00
Fit rate: share of seeds that solved training, with an exact match in distribution of at least 99.0 %; diverged seeds did not. To solve: over those seeds, the first point of the training curve with a loss of at most 1 nats per scored token; median [minimum to maximum].
Effective length: the largest evaluated length up to which exact match on the training split is at least 90.0 % at every length; median over seeds [minimum to maximum]. ≥: it is the longest evaluated length. 0: too low at the shortest length.";
    assert_eq!(show(&run_metrics(&report, &report.workloads[0])), expected);
}

#[test]
fn changes_stand_against_their_base() {
    let settings = Settings { ablation_base: Some("rope".into()), ..Settings::default() };
    let report = report(&settings);
    let headings: Vec<String> =
        statistics(&report, &report.workloads[0]).into_iter().map(|(h, _)| h).collect();
    assert_eq!(
        headings,
        [
            "Ranks in distribution",
            "Ranks beyond training",
            "Solving and effective length",
            "Changes of RoPE, in distribution",
            "Changes of RoPE, beyond training"
        ]
    );
    let expected = "\
encoding | exact match | change minus base | p (Holm) | Hedges' g | against the base
RoPE | 96.7 % {[91.5 to 100.0] n=3} | – | – | – | base
ALiBi | 11.0 % {[6.7 to 15.3] n=3} | -85.7 points {[-87.1 to -84.2]} | < 0.0001 {paired t} | -83.7 | worse
CoPE | 98.0 % {[95.5 to 100.0] n=3} | 1.3 points {[-4.9 to 7.6]} | 0.46 {paired t} | 0.299 | not separable with n = 3
learned | – | – | – | – | evaluations or common seeds are missing
NoPE | 11.0 % {[8.5 to 13.5] n=3} | -85.7 points {[-89.5 to -81.9]} | 0.00021 {paired t} | -31.6 | worse
Ablation: each change is paired with the base by seed [95 % interval of the mean difference, not corrected]; Holm's correction runs over the changes.";
    assert_eq!(show(&ablation(&report.workloads[0].ablations[1])), expected);
}
