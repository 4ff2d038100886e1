use super::*;
use analysis::ReportMeta;
use analysis::frame::Frames;
use records::testkit::TestCell;
use records::{RunRecord, Status};

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
fn three_seeds_carry_no_ranks_of_four_encodings_and_it_is_said() {
    let report = report(&Settings::default());
    let workload = &report.workloads[0];
    insta::assert_snapshot!("ranks", show(&ranks(&report, workload, workload.deciding().unwrap())));
}

#[test]
fn what_seeds_achieved() {
    let settings = Settings { solved_loss: 1.0, ..Settings::default() };
    let report = report(&settings);
    let expected = "\
encoding | fit rate | steps to solve | seconds to solve | effective length | relative to the trained length
ALiBi | 100.0% {3 of 3} | 150 {[100, 150] n=3} | 3.00 {[2.00, 3.00] n=3} | 64 {n=3} | 1.00
CoPE | 100.0% {3 of 3} | 150 {[100, 150] n=3} | 3.00 {[2.00, 3.00] n=3} | ≥ 128 {n=3} | ≥ 2.00
learned | 50.0% {1 of 2} | 100 {n=1} | 2.00 {n=1} | 64 {n=1} | 1.00
NoPE | 33.3% {1 of 3} | 100 {n=1} | 2.00 {n=1} | 0 {[0, 64] n=3} | 0.00
RoPE | 100.0% {3 of 3} | 150 {[100, 150] n=3} | 3.00 {[2.00, 3.00] n=3} | ≥ 128 {n=3} | ≥ 2.00
Fit rate: the share of seeds that solved training, that is, reached an exact match of at least 99.0% in distribution. Diverged seeds count as not solved. Steps and seconds to solve: median over the solved seeds, with minimum and maximum in brackets. They are counted up to the first point of the training curve with a loss of at most 1 nats per scored token. Seeds without such a point are left out.
Effective length: the largest evaluated length up to which exact match on the training split is at least 90.0% at every length; median over seeds, with minimum and maximum in brackets. ≥: this share is reached even at the longest evaluated length. 0: exact match is below this share already at the shortest length.";
    assert_eq!(show(&run_metrics(&report, &report.workloads[0])), expected);
}

#[test]
fn disturbed_seconds_to_solve_are_marked() {
    let settings = Settings { solved_loss: 1.0, ..Settings::default() };
    let mut records = records();
    // Seed 1 of NoPE did not solve training.
    let disturbed =
        |r: &&mut RunRecord| ["cope", "nope"].contains(&&*r.encoding.name) && r.seed == 1;
    records.iter_mut().filter(disturbed).for_each(|r| r.host.jobs = 2);
    let frames = Frames::of(&records).unwrap();
    let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
    let table = run_metrics(&report, &report.workloads[0]);
    let row = |name: &str| table.rows.iter().find(|row| row[0].text == name).unwrap();
    assert_eq!((&*row("CoPE")[2].text, &*row("CoPE")[3].text), ("150", "3.00 †"));
    assert_eq!(row("NoPE")[3].text, "2.00");
    assert!(table.notes[0].starts_with('†'), "{:?}", table.notes);
}

#[test]
fn changes_stand_against_their_base() {
    let settings = Settings { ablation_base: Some("rope".into()), ..Settings::default() };
    let report = report(&settings);
    let ranking = &report.workloads[0].rankings[1];
    insta::assert_snapshot!("ablation", show(&ablation(ranking, "rope")));
    assert_eq!(ablation(ranking, "xpos"), Table::default(), "no record has this base");
}

#[test]
fn a_change_without_the_evaluations_of_the_base_is_not_compared() {
    let mut records = vec![TestCell::new("w", "learned", 0).limited_to(64).record()];
    records.extend((0..3).map(|seed| TestCell::new("w", "rope", seed).beyond(0.9).record()));
    let report = Report::new(&records, &ReportMeta::default()).unwrap();
    let table = ablation(report.workloads[0].deciding().unwrap(), "rope");
    assert_eq!(table.rows[1].last().unwrap().text, "evaluations or common seeds are missing");
}

#[test]
fn an_encoding_with_too_few_seeds_has_no_rank_and_stands_last() {
    let mut records = vec![TestCell::new("w", "alibi", 0).beyond(0.983).record()];
    for seed in 0..5_u64 {
        let noise = 0.001 * seed as f64;
        for (encoding, value) in [("rope", 0.97), ("nope", 0.72)] {
            records.push(TestCell::new("w", encoding, seed).beyond(value + noise).record());
        }
    }
    let report = Report::new(&records, &ReportMeta::default()).unwrap();
    let workload = &report.workloads[0];
    let table = ranks(&report, workload, workload.deciding().unwrap());
    let shown: Vec<_> = table
        .rows
        .iter()
        .map(|row| (&*row[0].text, &*row[1].text, &*row.last().unwrap().text))
        .collect();
    assert_eq!(
        shown,
        [
            ("RoPE", "1", "best mean"),
            ("NoPE", "2", "worse than the best"),
            ("ALiBi", "–", "too few seeds for a rank")
        ]
    );
    assert!(table.notes.iter().any(|note| note.starts_with("Rank –: too few seeds")));
    let summary = crate::document::tables::summary(&report);
    let alibi = summary.rows.iter().find(|row| row[0].text == "ALiBi").unwrap();
    assert!(alibi[1].detail.contains("rank –"), "{alibi:?}");
    assert!(summary.notes.iter().any(|note| note.starts_with("Rank –: too few seeds")));
}

#[test]
fn the_best_means_come_first_with_or_without_a_rank() {
    let mut records = Vec::new();
    for seed in 0..8_u32 {
        let noise = 0.001 * f64::from(seed);
        // Twice as far from the mean as from the best one.
        let scattered = if seed % 2 == 0 { 0.99 } else { 0.2 };
        let values = [
            ("cope", 0.9),
            ("rope", 0.3),
            ("nope", 0.2),
            ("alibi", 0.1),
            ("tape", 0.05),
            ("fire", 0.01),
        ];
        let values = values.map(|(name, value)| (name, value + noise));
        for (name, value) in values.into_iter().chain([("path", scattered)]) {
            records.push(TestCell::new("w", name, u64::from(seed)).beyond(value).record());
        }
    }
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    let workload = &report.workloads[0];
    let shown = best(&report, workload, workload.deciding().unwrap());
    let texts = |column: usize| shown.rows.iter().map(|row| &*row[column].text).collect::<Vec<_>>();
    assert_eq!(shown.columns, ["encoding", "rank", "exact match"]);
    assert_eq!(texts(0), ["CoPE", "path", "RoPE", "NoPE", "ALiBi"]);
    assert_eq!(texts(1)[..3], ["1", "–", "2"]);
}
