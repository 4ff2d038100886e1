use crate::analysis::Report;
use crate::analysis::ReportMeta;
use crate::record::{RunRecord, Status};
use crate::testkit::{TestCell, suite};

fn say(records: &[RunRecord]) -> Vec<String> {
    super::overview(&Report::new(records, &ReportMeta::default()).unwrap())
}

fn cells(workload: &str, encoding: &str, values: &[f64]) -> Vec<RunRecord> {
    (0..)
        .zip(values)
        .map(|(seed, value)| TestCell::new(workload, encoding, seed).beyond(*value).record())
        .collect()
}

#[test]
fn a_clear_winner_of_one_workload_is_named_with_its_price() {
    let records = [
        cells("flip-flop", "cope", &[0.96, 0.97, 0.98]),
        cells("flip-flop", "rope", &[0.60, 0.63, 0.66]),
    ]
    .concat();
    assert_eq!(
        say(&records),
        [
            "On flip-flop, beyond training, CoPE has the best mean (exact match 97.0 %); with 3 seeds the \
             other one is separable from it.",
            "A training step with CoPE takes 2.00 times as long as with RoPE.",
        ]
    );
}

#[test]
fn who_shares_the_first_rank_is_said_and_many_are_counted() {
    let mut records = cells("w", "rope", &[0.91, 0.93, 0.94]);
    for (i, name) in ["cope", "alibi", "nope", "fire", "fox", "tape"].iter().enumerate() {
        let shift = 0.001 * i as f64;
        records.extend(cells("w", name, &[0.94 - shift, 0.90, 0.93]));
    }
    records.extend(cells("w", "xpos", &[0.10, 0.11, 0.10]));
    let said = say(&records);
    assert!(
        said[0].starts_with("On w, beyond training, RoPE has the best mean (exact match 92.7 %); with 3 \
                             seeds CoPE, ALiBi, NoPE and 3 more are not separable from it, the remaining \
                             one is."),
        "{said:?}"
    );
}

#[test]
fn two_seeds_separate_nothing_and_this_is_said() {
    let records = [cells("w", "cope", &[0.9, 0.8]), cells("w", "rope", &[0.1, 0.2])].concat();
    assert_eq!(
        say(&records)[0],
        "On w, beyond training, CoPE has the best mean (exact match 85.0 %), but 2 seeds cannot separate \
         encodings; at least 3 are needed."
    );
}

#[test]
fn several_workloads_are_counted_first() {
    let records = [
        cells("a", "cope", &[0.96, 0.97, 0.98]),
        cells("a", "rope", &[0.60, 0.63, 0.66]),
        cells("b", "cope", &[0.96, 0.97, 0.98]),
        cells("b", "rope", &[0.97, 0.96, 0.98]),
    ]
    .concat();
    assert_eq!(
        say(&records)[0],
        "CoPE is in the first rank of all 2 workloads; one workload has a first rank of one encoding alone."
    );
}

#[test]
fn where_nothing_is_separable_the_best_means_are_counted() {
    let records = [
        cells("a", "cope", &[0.9, 0.8]),
        cells("a", "rope", &[0.1, 0.2]),
        cells("b", "cope", &[0.9, 0.8]),
        cells("b", "rope", &[0.7, 0.8]),
    ]
    .concat();
    assert_eq!(
        say(&records),
        [
            "No two encodings can be separated on any of 2 workloads; CoPE has the best mean most often, on \
             all 2 workloads.",
            "On a, beyond training, CoPE has the best mean (exact match 85.0 %), but 2 seeds cannot separate \
         encodings; at least 3 are needed.",
            "A training step with CoPE takes 2.00 times as long as with RoPE, median over 2 workloads.",
        ]
    );
}

#[test]
fn equal_encodings_none_and_one_are_said_plainly() {
    let equal = [cells("w", "cope", &[1.0; 3]), cells("w", "rope", &[1.0; 3])].concat();
    assert!(say(&equal)[0].ends_with("all 2 encodings are equal (exact match 100.0 %)."));
    assert_eq!(say(&[]), [super::NOTHING]);
    assert!(say(&cells("w", "rope", &[0.5]))[0].contains("nothing to compare"));
    let failed = Status::Failed { reason: "no corpus".into() };
    let lost = [TestCell::new("w", "rope", 0).without_evals().status(failed).record()];
    assert!(say(&lost)[0].contains("no cell was finished (1 cell not counted)"));
}

#[test]
fn there_are_at_most_three_and_they_are_short() {
    let said = say(&suite());
    assert!((1..=3).contains(&said.len()), "{said:?}");
    assert!(said.iter().all(|s| s.len() < 220), "{said:?}");
}
