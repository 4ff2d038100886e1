use super::*;
use analysis::ReportMeta;
use records::testkit::TestCell;
use records::{RunRecord, Status};

fn verdicts(records: Vec<RunRecord>) -> Vec<String> {
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    report.workloads.iter().map(|workload| verdict(&report, workload)).collect()
}

/// Cells of eight seeds whose scores are those given, beyond training, and differ by hundredths.
fn of(scores: &[(&str, f64)]) -> Vec<RunRecord> {
    let cells = (0..8_u64).flat_map(|seed| {
        let noise = 0.01 * seed as f64;
        scores
            .iter()
            .map(move |(name, score)| TestCell::new("w", name, seed).beyond(score + noise).record())
    });
    cells.collect()
}

#[test]
fn the_best_has_its_interval_and_who_shares_its_rank() {
    let region = "on other distributions at longer lengths";
    assert_eq!(
        verdicts(of(&[("cope", 0.9), ("rope", 0.6)])),
        [format!(
            "Best exact match {region}: CoPE, 93.5% [91.5, 95.5], chance 50.0%. First rank: CoPE, of 2 encodings."
        )]
    );
    // Two that differ by less than seeds vary, before a third.
    let [verdict] = &verdicts(of(&[("cope", 0.9), ("alibi", 0.9), ("rope", 0.6)]))[..] else {
        panic!()
    };
    assert!(verdict.ends_with("First rank: ALiBi and CoPE, of 3 encodings."), "{verdict}");
}

#[test]
fn what_carries_no_rank_has_none() {
    let mut few = of(&[("cope", 0.9), ("alibi", 0.8), ("rope", 0.6)]);
    few.retain(|record| record.seed < 2);
    let [verdict] = &verdicts(few)[..] else { panic!() };
    assert!(
        verdict.contains("No ranks: with 2 seeds no difference can be significant; at least"),
        "{verdict}"
    );
    let [verdict] = &verdicts(of(&[("cope", 0.2), ("rope", 0.1)]))[..] else { panic!() };
    assert!(verdict.ends_with("Not above chance."), "{verdict}");
    let same = of(&[("cope", 0.9), ("rope", 0.9)]);
    let [verdict] = &verdicts(same)[..] else { panic!() };
    assert!(
        verdict.starts_with("Best exact match")
            || verdict.starts_with("All 2 encodings have the same"),
        "{verdict}"
    );
    let [verdict] = &verdicts(of(&[("cope", 0.9)]))[..] else { panic!() };
    assert!(
        verdict.starts_with(
            "Exact match on other distributions at longer lengths, with one encoding only: CoPE, 93.5%"
        ),
        "{verdict}"
    );
}

#[test]
fn a_workload_without_results_says_why() {
    let failed = |record: &mut RunRecord| {
        record.status = Status::Failed { reason: "no memory".into() };
        record.evals.clear();
    };
    let records = vec![TestCell::new("w", "cope", 0).change(failed).record()];
    assert_eq!(verdicts(records), ["No result: 1 cell not counted."]);
}

#[test]
fn the_lead_is_the_abstract_or_the_verdicts() {
    let report = |records: Vec<RunRecord>| Report::new(records, &ReportMeta::default()).unwrap();
    assert_eq!(lead(&report(Vec::new())), [NOTHING]);
    let one = lead(&report(of(&[("cope", 0.9), ("rope", 0.6)])));
    assert!(one.len() == 1 && one[0].starts_with("w: Best exact match"), "{one:?}");
    assert_eq!(
        lead(&report(records::testkit::two_workloads())).len(),
        4,
        "two workloads are too few to leave one out"
    );
}

/// The best mean is far ahead, but one of two seeds in eight says the opposite.
#[test]
fn an_encoding_far_ahead_that_no_seeds_separate_has_no_rank() {
    let cells = (0..8_u64).flat_map(|seed| {
        let (cope, rope) = if seed < 2 { (0.62, 0.98) } else { (0.98, 0.5) };
        [("cope", cope), ("rope", rope)]
            .map(|(name, score)| TestCell::new("w", name, seed).beyond(score).record())
    });
    let [verdict] = &verdicts(cells.collect())[..] else { panic!() };
    assert!(verdict.ends_with("No ranks: 8 seeds separate no two encodings."), "{verdict}");
}
