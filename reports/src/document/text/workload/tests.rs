use super::*;
use crate::analysis::ranking::Region;
use crate::analysis::{Report, ReportMeta};
use crate::frame::Frames;
use crate::record::{RunRecord, Status};
use crate::testkit::{TestCell, counted};
use std::collections::BTreeMap;

fn say(records: &[RunRecord]) -> String {
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    let frames = Frames::of(records).unwrap();
    let headline = Metric::from_headline(&records[0].task.headline).unwrap();
    let display: BTreeMap<String, String> =
        records.iter().map(|r| (r.encoding.name.clone(), r.encoding.label.clone())).collect();
    let ranking = |region| Ranking::new(&counted(&frames), &display, region, headline).unwrap();
    let (inside, beyond) = (ranking(Region::Inside), ranking(Region::Beyond));
    sentence(&records[0].workload, "tokens", &inside, &beyond, &report.not_counted)
}

/// Cells with these values beyond training, one per seed, and 100 % within.
fn cells(encoding: &str, values: &[f64]) -> Vec<RunRecord> {
    values
        .iter()
        .zip(0..)
        .map(|(value, seed)| TestCell::new("flip-flop", encoding, seed).beyond(*value).record())
        .collect()
}

#[test]
fn a_clear_winner_is_named_with_its_margin() {
    let records = [cells("cope", &[0.96, 0.97, 0.98]), cells("rope", &[0.60, 0.63, 0.66])].concat();
    assert_eq!(
        say(&records),
        "flip-flop: CoPE is best beyond training (exact match 97.0 % on `sparse` at 128 tokens), \
         and with n = 3 seeds it is separable from the runner-up RoPE (63.0 %; difference 34.0 \
         points, 95 % interval 29.0 to 39.0, p = 0.0012); in distribution both encodings are equal \
         (exact match 100.0 % on `in-distribution` at 64 tokens). Test: paired t test, \
         because 3 seeds cannot reach 5 % by permutation (minimum p 0.25)."
    );
}

#[test]
fn a_lead_within_the_noise_is_not_a_win() {
    let records = [
        cells("cope", &[0.97, 0.972, 0.96]),
        cells("rope", &[0.943, 0.935, 0.96]),
        cells("nope", &[0.5, 0.501, 0.49]),
    ]
    .concat();
    let text = say(&records);
    assert!(
        text.starts_with(
            "flip-flop: CoPE is best beyond training (exact match 96.7 % on `sparse` at 128 \
             tokens), but it is not separable with n = 3 from RoPE (94.6 %; difference 2.1 \
             points, 95 % interval -2.6 to 6.9, p = 0.19 after Holm), while it is separable from \
             NoPE;"
        ),
        "{text}"
    );
}

#[test]
fn two_seeds_separate_nothing_and_the_sentence_says_so() {
    let text = say(&[cells("cope", &[0.97, 0.972]), cells("rope", &[0.1, 0.11])].concat());
    assert!(
        text.contains("not separable with n = 2 from RoPE (10.5 %; difference 86.6 points")
            && text.ends_with("Test: none (2 seeds are too few, 3 are needed)."),
        "{text}"
    );
}

#[test]
fn many_that_are_level_are_counted_and_not_listed() {
    let two: Vec<RunRecord> = ["alibi", "cope", "nope", "rope", "other"]
        .iter()
        .zip([0.5, 0.9, 0.6, 0.7, 0.65])
        .flat_map(|(name, value)| cells(name, &[value, value - 0.2]))
        .collect();
    assert!(
        say(&two).contains("points in each of 2 seeds) nor from any of the other 3;"),
        "{}",
        say(&two)
    );
}

#[test]
fn six_seeds_of_two_encodings_are_decided_by_permutation() {
    let cope = cells("cope", &[0.9, 0.92, 0.91, 0.93, 0.9, 0.94]);
    let rope = cells("rope", &[0.8, 0.85, 0.83, 0.8, 0.81, 0.82]);
    let text = say(&[cope.clone(), rope.clone()].concat());
    assert!(text.contains("p = 0.031") && text.contains("separable from the runner-up"), "{text}");
    assert!(text.ends_with("Test: sign-flip permutation test over 6 seeds."), "{text}");
    let nope = cells("nope", &[0.1, 0.12, 0.11, 0.1, 0.12, 0.13]);
    let text = say(&[cope, rope, nope].concat());
    assert!(
        text.ends_with(
            "paired t test with Holm's correction over 3 pairs, because 6 seeds cannot reach 5 % \
             over 3 pairs by permutation (minimum p 0.031)."
        ),
        "{text}"
    );
}

#[test]
fn seeds_that_jump_are_named_with_what_follows() {
    let records = [
        cells("cope", &[1.0, 1.0, 0.99]),
        cells("rope", &[0.5, 0.51, 0.5]),
        cells("nope", &[0.5, 1.0, 0.5]),
    ]
    .concat();
    let text = say(&records);
    assert!(
        text.contains("CoPE is best") && text.contains("not separable with n = 3 from NoPE"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "with p-values of at least 0.031, because the seeds of NoPE are bimodal: half of the scale \
             or more apart, so that nothing is separable with n = 3."
        ),
        "{text}"
    );
}

#[test]
fn one_seed_makes_no_claim() {
    let records = [
        TestCell::new("text", "cope", 0).text(1.4, 1.5).record(),
        TestCell::new("text", "rope", 0).text(1.45, 1.6).record(),
    ];
    assert_eq!(
        say(&records),
        "text: CoPE is ahead beyond training (perplexity 4.48 on `sparse` at 128 tokens) of RoPE \
         (4.95), but with one seed there is no test; CoPE is ahead in \
         distribution (perplexity 4.06 on `in-distribution` at 64 tokens) of RoPE (4.26), but \
         with one seed there is no test."
    );
}

#[test]
fn ties_are_called_ties() {
    let records =
        [cells("cope", &[0.9, 0.8]), cells("rope", &[0.8, 0.9]), cells("nope", &[0.1, 0.2])]
            .concat();
    let text = say(&records);
    assert!(text.starts_with("flip-flop: CoPE and RoPE tie for best beyond training"), "{text}");
    let all = [cells("cope", &[1.0]), cells("rope", &[1.0])].concat();
    assert!(say(&all).contains("beyond training both encodings are equal"), "{}", say(&all));
}

#[test]
fn equal_differences_on_two_seeds_are_too_few() {
    let records = [cells("cope", &[1.0, 1.0]), cells("rope", &[0.0, 0.0])].concat();
    let text = say(&records);
    assert!(
        text.contains(
            "not separable with n = 2 from RoPE (0.0 %; difference 100.0 points in each of 2 seeds)"
        ),
        "{text}"
    );
}

#[test]
fn token_accuracy_steps_in_and_says_so() {
    let records = [
        TestCell::new("copy", "cope", 0).exact(0.0).token_accuracy(0.9).record(),
        TestCell::new("copy", "rope", 0).exact(0.0).token_accuracy(0.8).record(),
    ];
    let text = say(&records);
    assert!(
        text.starts_with(
            "copy: CoPE is ahead beyond training (token accuracy 90.0 % on `sparse` at 128 \
             tokens; exact match is 0.0 % for all, so token accuracy decides) of RoPE"
        ),
        "{text}"
    );
}

#[test]
fn one_encoding_or_none_is_said_plainly() {
    let text = say(&cells("rope", &[0.5, 0.6]));
    assert!(text.contains("only RoPE was measured beyond training (exact match 55.0 %"), "{text}");
    let failed = Status::Failed { reason: "no corpus".into() };
    let text = say(&[TestCell::new("text", "rope", 0).status(failed).record()]);
    assert_eq!(text, "text: no cell was finished (1 cell not counted), so there is no result.");
    let text = say(&[TestCell::new("text", "rope", 0).without_evals().record()]);
    assert_eq!(text, "text: nothing was evaluated, so there is no result.");
}

#[test]
fn an_encoding_that_is_not_ranked_is_named() {
    let complete = cells("rope", &[0.5, 0.6]);
    let limited: Vec<RunRecord> = (0..2)
        .map(|seed| TestCell::new("flip-flop", "learned", seed).limited_to(64).record())
        .collect();
    let text = say(&[complete, limited].concat());
    assert!(
        text.contains("there is nothing to compare; not ranked: learned (0 of 1 evaluations);"),
        "{text}"
    );
}

#[test]
fn lost_cells_are_part_of_the_sentence() {
    let diverged = Status::Diverged { step: 3, reason: "NaN".into() };
    let records = [
        cells("cope", &[0.9]),
        cells("rope", &[0.8]),
        vec![TestCell::new("flip-flop", "rope", 1).without_evals().status(diverged).record()],
    ]
    .concat();
    assert!(say(&records).ends_with(" Not counted: rope seed 1 (diverged)."), "{}", say(&records));
}

#[test]
fn a_difference_of_perplexities_is_a_ratio() {
    let nll = [(0, 1.55)];
    let c = crate::stats::decide(
        &[crate::stats::paired(&nll, &[(0, 1.5)]).unwrap()],
        crate::stats::SeedSpread::Unimodal,
    );
    let text = difference_text(Metric::Perplexity, &c[0]);
    assert_eq!(text, "its perplexity is 1.05 times as high");
}
