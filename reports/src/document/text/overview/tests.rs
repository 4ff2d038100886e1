use crate::analysis::Report;
use crate::analysis::{ReportMeta, Settings};
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
    let mut records = [
        cells("flip-flop", "cope", &[0.96, 0.97, 0.98]),
        cells("flip-flop", "rope", &[0.60, 0.63, 0.66]),
    ]
    .concat();
    let said = say(&records);
    assert_eq!(
        said,
        [
            "On flip-flop, on other distributions at longer lengths, CoPE has the best mean (exact match 97.0 %, chance \
             50.0 %); with 3 seeds the other one is separable from it.",
            "A training step with CoPE takes 2.00 times as long as with RoPE.",
        ]
    );
    // Times of cells that ran concurrently or on a busy machine are not comparable.
    records[0].train.machine_load = Some(9.0);
    assert_eq!(say(&records), said[..1]);
    records[0].train.machine_load = Some(2.0);
    assert_eq!(say(&records).len(), 2);
    for record in &mut records {
        record.host.jobs = 2;
    }
    assert_eq!(say(&records), said[..1]);
}

#[test]
fn who_shares_the_first_rank_is_said_and_many_are_counted() {
    let mut records = cells("w", "rope", &[0.91, 0.93, 0.94, 0.92, 0.93, 0.91]);
    for (i, name) in ["cope", "alibi", "nope", "fire", "fox", "tape"].iter().enumerate() {
        let shift = 0.001 * i as f64;
        records.extend(cells("w", name, &[0.94 - shift, 0.90, 0.93, 0.90, 0.94, 0.91]));
    }
    records.extend(cells("w", "xpos", &[0.10, 0.11, 0.10, 0.12, 0.10, 0.11]));
    let said = say(&records);
    assert!(
        said[0].starts_with(
            "On w, on other distributions at longer lengths, RoPE has the best mean (exact match 92.3 %, chance 50.0 %); \
             with 6 seeds CoPE, ALiBi, NoPE and 3 more are not separable from it, the remaining one is."
        ),
        "{said:?}"
    );
}

#[test]
fn two_seeds_separate_nothing_and_this_is_said() {
    let records = [cells("w", "cope", &[0.9, 0.8]), cells("w", "rope", &[0.1, 0.2])].concat();
    assert_eq!(
        say(&records)[0],
        "On w, on other distributions at longer lengths, CoPE has the best mean (exact match 85.0 %, chance 50.0 %), but 2 \
         seeds cannot separate 2 encodings; at least 3 are needed."
    );
    // One encoding has more seeds than they share.
    let records = [cells("w", "cope", &[0.9; 6]), cells("w", "rope", &[0.1, 0.2])].concat();
    let said = say(&records).remove(0);
    assert!(
        said.ends_with("2 to 6 seeds cannot separate 2 encodings; at least 3 are needed for each."),
        "{said}"
    );
    let records = [cells("w", "cope", &[0.4; 3]), cells("w", "rope", &[0.1; 3])].concat();
    assert!(say(&records)[0].ends_with("which is not above chance."), "{:?}", say(&records));
}

#[test]
fn the_aggregate_leads_and_only_contests_that_separate_are_counted() {
    let records = [
        cells("a", "cope", &[0.96, 0.97, 0.98]),
        cells("a", "rope", &[0.60, 0.63, 0.66]),
        cells("b", "cope", &[0.96, 0.97, 0.98]),
        cells("b", "rope", &[0.97, 0.96, 0.98]),
    ]
    .concat();
    let said = say(&records);
    assert!(
        said[0].starts_with(
            "CoPE has the best interquartile mean above chance over 2 workloads, 94 % ["
        ) || said[0]
            .starts_with("CoPE and RoPE have the best interquartile mean above chance over 2"),
        "{said:?}"
    );
    assert_eq!(
        said[1],
        "1 of 2 workloads separates encodings with these seeds: CoPE is in the first rank of 1 of them, and 1 has a first \
         rank of one encoding alone."
    );
}

#[test]
fn a_workload_that_separates_encodings_of_one_rank_counts_in_no_first_rank() {
    let one_rank = [
        // Not separable from either of the others, which differ in every seed.
        cells("a", "alibi", &[1.0, 0.6, 1.0, 0.6, 1.0, 0.6, 1.0, 0.6, 1.0]),
        cells("a", "cope", &[0.75, 0.76, 0.75, 0.77, 0.76, 0.75, 0.77, 0.76, 0.75]),
        cells("a", "rope", &[0.70, 0.71, 0.71, 0.72, 0.70, 0.71, 0.72, 0.70, 0.71]),
    ]
    .concat();
    let several =
        [cells("b", "cope", &[0.96, 0.97, 0.98]), cells("b", "rope", &[0.60, 0.63, 0.66])].concat();
    let level = [cells("b", "cope", &[0.9; 3]), cells("b", "rope", &[0.9; 3])].concat();
    let said = |other: &[RunRecord]| say(&[one_rank.clone(), other.to_vec()].concat()).join(" ");
    let both = said(&several);
    assert!(
        both.contains(
            "2 of 2 workloads separate encodings with these seeds, 1 of them into several ranks: CoPE is in the first \
             rank of 1 of them"
        ),
        "{both}"
    );
    let one = said(&level);
    assert!(
        one.contains(
            "1 of 2 workloads separates some encodings with these seeds, none into several ranks."
        ),
        "{one}"
    );
}

#[test]
fn where_seeds_are_too_few_there_are_no_ranks() {
    let records = [
        cells("a", "cope", &[0.9, 0.8]),
        cells("a", "rope", &[0.1, 0.2]),
        cells("b", "cope", &[0.9, 0.8]),
        cells("b", "rope", &[0.7, 0.8]),
    ]
    .concat();
    let said = say(&records);
    assert_eq!(
        said[1],
        "None of 2 workloads has ranks: with so few seeds no difference can be significant, 3 seeds can separate \
         encodings."
    );
    assert_eq!(
        said[2],
        "A training step with CoPE takes 2.00 times as long as with RoPE, median over 2 workloads."
    );
    let level = [cells("a", "cope", &[0.9; 3]), cells("a", "rope", &[0.9; 3])].concat();
    let both = [
        level.clone(),
        level
            .into_iter()
            .map(|mut r| {
                r.workload = "b".into();
                r
            })
            .collect(),
    ];
    assert_eq!(
        say(&both.concat())[1],
        "No two encodings can be separated on any of 2 workloads with these seeds."
    );
}

#[test]
fn the_question_of_the_suite_is_answered_first() {
    let records = [
        cells("a", "cope", &[0.96, 0.97, 0.98]),
        cells("a", "rope", &[0.60, 0.63, 0.66]),
        cells("b", "cope", &[0.96, 0.97, 0.98]),
        cells("b", "rope", &[0.97, 0.96, 0.98]),
    ]
    .concat();
    let answer = |question: &str| {
        let settings =
            Settings { question: Some(toml::from_str(question).unwrap()), ..Settings::default() };
        let frames = crate::frame::Frames::of(&records).unwrap();
        let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        super::overview(&report)[0].clone()
    };
    let said = answer("encodings = ['cope', 'rope']\ntasks = ['a']");
    assert!(
        said.starts_with(
            "Planned question, CoPE against RoPE: on a, on other distributions at longer lengths, CoPE is better than RoPE \
             (exact match 97.0 % and 63.0 %, chance 50.0 %; difference 34.0 points"
        ),
        "{said}"
    );
    assert_eq!(
        answer("encodings = ['cope', 'rope']"),
        "Planned question, CoPE against RoPE on 2 workloads: CoPE is better on 0, RoPE on 0, and 2 do not separate them."
    );
    assert!(answer("encodings = ['cope', 'fire']").contains("not answered"));
}

#[test]
fn equal_encodings_none_and_one_are_said_plainly() {
    let equal = [cells("w", "cope", &[1.0; 3]), cells("w", "rope", &[1.0; 3])].concat();
    assert!(
        say(&equal)[0].ends_with("all 2 encodings are equal (exact match 100.0 %, chance 50.0 %).")
    );
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

#[test]
fn an_encoding_with_too_few_seeds_does_not_lead() {
    let records = [
        cells("w", "alibi", &[0.983]),
        cells("w", "rope", &[0.97, 0.971, 0.972, 0.973, 0.974]),
        cells("w", "nope", &[0.72, 0.721, 0.722, 0.723, 0.724]),
    ]
    .concat();
    let said = &say(&records)[0];
    assert!(said.contains("RoPE has the best mean (exact match 97.2 %"), "{said}");
    let end =
        "the other one is separable from it; too few seeds for a rank: ALiBi (98.3 %, n = 1).";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn a_planned_question_says_that_workloads_are_missing() {
    let eight = |value: f64| -> Vec<f64> { (0..8).map(|s| value + 0.001 * f64::from(s)).collect() };
    let records: Vec<RunRecord> = ["v", "w"]
        .into_iter()
        .flat_map(|w| [cells(w, "cope", &eight(0.9)), cells(w, "rope", &eight(0.7))].concat())
        .collect();
    let ask = |tasks: &str| {
        let question = format!("encodings = ['cope', 'rope']\ntasks = [{tasks}]");
        let question = Some(toml::from_str(&question).unwrap());
        let settings = Settings { question, ..Settings::default() };
        let frames = crate::frame::Frames::of(&records).unwrap();
        let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        let [_, contrast, ..] = &*crate::document::text::abstract_of(&report) else {
            panic!("no abstract")
        };
        (super::overview(&report).remove(0), contrast.text.clone())
    };
    let (answer, contrast) = ask("'v', 'w'");
    assert!(answer.starts_with("Planned question, CoPE against RoPE on 2 workloads: "), "{answer}");
    assert!(contrast.contains(" CoPE and RoPE on 2 of 2 workloads; "), "{contrast}");
    let (answer, contrast) = ask("'v', 'w', 'x'");
    let so_far = "the 2 workloads computed so far, of 3 planned";
    assert!(
        answer.contains(&format!(" against RoPE on {so_far}: CoPE is better on 2")),
        "{answer}"
    );
    assert!(contrast.contains(&format!(" CoPE and RoPE on 2 of {so_far}; ")), "{contrast}");
    let (answer, _) = ask("'v', 'x', 'y'");
    let so_far = " on the 1 workload computed so far, of 3 planned: on v, ";
    assert!(answer.contains(so_far), "{answer}");
}
