use super::*;
use crate::analysis::evaluated::SeedRun;
use crate::analysis::ranking::Region;
use crate::analysis::{Report, ReportMeta};
use crate::frame::Frames;
use crate::record::{RunRecord, Status};
use crate::testkit::{TestCell, counted};
use std::collections::BTreeMap;

/// Region of the evaluation beyond training.
const BEYOND: &str = "on other distributions at longer lengths";

fn say(records: &[RunRecord]) -> String {
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    let frames = Frames::of(records).unwrap();
    let headline = Metric::from_headline(&records[0].task.headline).unwrap();
    let display: BTreeMap<String, String> =
        records.iter().map(|r| (r.encoding.name.clone(), r.encoding.label.clone())).collect();
    let runs = SeedRun::all(&counted(&frames)).unwrap();
    let rankings = Region::ALL.map(|region| Ranking::new(&runs, &display, region, headline));
    let rankings: Vec<Ranking> = rankings.into_iter().filter(|r| !r.points.is_empty()).collect();
    let name = &records[0].workload;
    let (clauses, rest) = clauses(name, "tokens", &rankings, &report.not_counted);
    format!("{name}: {}.{rest}", clauses.join("; "))
}

#[test]
fn every_region_has_a_paragraph_of_its_own() {
    let records = [cells("cope", &[0.9, 0.91, 0.92]), cells("rope", &[0.5, 0.51, 0.52])].concat();
    let report = Report::new(&records, &ReportMeta::default()).unwrap();
    let paragraphs = workload_paragraphs(&report, &report.workloads[0]);
    let whole = workload_sentence(&report, &report.workloads[0]);
    assert_eq!(paragraphs.len(), 3, "{paragraphs:?}");
    assert!(paragraphs[0].contains(BEYOND), "{paragraphs:?}");
    assert!(paragraphs[1].starts_with("In distribution both encodings are equal"));
    assert!(paragraphs[2].starts_with("Test: "));
    let whole = whole.to_lowercase();
    let said = paragraphs.iter().map(|text| text.trim_end_matches('.').to_lowercase());
    assert!(said.into_iter().all(|text| whole.contains(&text)), "{paragraphs:?} {whole}");
}

#[test]
fn a_paragraph_begins_with_a_capital_letter_or_a_name_as_it_is() {
    let mut records = cells("xpos", &[0.9, 0.91, 0.92]);
    for record in &mut records {
        record.encoding.label = "xPos".to_owned();
    }
    let say = |records: &[RunRecord]| {
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        workload_paragraphs(&report, &report.workloads[0])[0].clone()
    };
    assert!(say(&records).starts_with("Only xPos was measured"), "{}", say(&records));
    records.extend(cells("rope", &[0.5, 0.51, 0.52]));
    assert!(say(&records).starts_with("xPos has the best mean"), "{}", say(&records));
}

/// Builds cells with these values beyond training, one per seed, and 100 % in distribution.
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
        "flip-flop: CoPE has the best mean on other distributions at longer lengths (exact match 97.0 % on `sparse` at \
         128 tokens, chance 50.0 %), and with n = 3 seeds it is separable from the runner-up RoPE (63.0 %; difference \
         34.0 points, 95 % interval 29.0 to 39.0, p = 0.031); in distribution both encodings are equal \
         (exact match 100.0 % on `in-distribution` at 64 tokens, chance 50.0 %). Test: paired t test, \
         because 3 seeds cannot reach 5 % by permutation (minimum p 0.25), with p-values of at least 0.031, the least \
         that 3 seeds allow."
    );
}

#[test]
fn a_lead_within_the_noise_is_not_a_win() {
    let records = [
        cells("cope", &[0.97, 0.972, 0.96, 0.965]),
        cells("rope", &[0.943, 0.935, 0.96, 0.95]),
        cells("nope", &[0.5, 0.501, 0.49, 0.5]),
    ]
    .concat();
    let text = say(&records);
    assert!(
        text.starts_with(&format!(
            "flip-flop: CoPE has the best mean {BEYOND} (exact match 96.7 %"
        )) && text.contains(
            "but it is not separable with n = 4 from RoPE (94.7 %; difference 2.0 points"
        ) && text.contains("after Holm), while it is separable from NoPE;"),
        "{text}"
    );
    // A seed less cannot carry three pairs: there is no verdict, and the number that could is said.
    let few: Vec<RunRecord> = records.into_iter().filter(|r| r.seed < 3).collect();
    let text = say(&few);
    assert!(
        text.contains(
            "but 3 seeds cannot carry ranks: a difference among 3 pairs can be significant with 4 seeds \
             (next is RoPE with 94.6 %);"
        ) && text.ends_with("the least that 3 seeds allow, so that nothing is separable."),
        "{text}"
    );
}

#[test]
fn two_seeds_separate_nothing_and_the_sentence_says_so() {
    let text = say(&[cells("cope", &[0.97, 0.972]), cells("rope", &[0.1, 0.11])].concat());
    assert!(
        text.contains("but 2 seeds cannot carry ranks: a difference among 1 pair can be significant with 3 seeds")
            && text.ends_with("Test: none (2 seeds are too few, 3 are needed)."),
        "{text}"
    );
}

#[test]
fn nothing_at_chance_is_a_winner() {
    // Chance is 50 %.
    let below = [cells("cope", &[0.4, 0.41, 0.42]), cells("rope", &[0.1, 0.11, 0.1])].concat();
    assert!(say(&below).contains("chance 50.0 %), which is not above chance;"), "{}", say(&below));
    let near = [cells("cope", &[0.45, 0.6, 0.55]), cells("rope", &[0.1, 0.11, 0.1])].concat();
    assert!(say(&near).contains("whose interval does not exclude chance;"), "{}", say(&near));
}

#[test]
fn many_that_are_level_are_counted_and_not_listed() {
    let six: Vec<RunRecord> = ["alibi", "cope", "nope", "rope", "other"]
        .iter()
        .zip([0.86, 0.9, 0.87, 0.89, 0.88])
        .flat_map(|(name, value)| {
            cells(name, &[value, value - 0.2, value, value - 0.1, value, value - 0.3])
        })
        .collect();
    // Another course over the seeds for each encoding.
    let noisy = |mut r: RunRecord| {
        let mut own = ["alibi", "cope", "nope", "rope", "other"].iter();
        let own = own.position(|name| *name == r.encoding.name).unwrap() as u64;
        r.evals[1].exact_match += 0.03 * ((r.seed * (own + 1) + own * own) % 5) as f64;
        r
    };
    let text = say(&six.into_iter().map(noisy).collect::<Vec<_>>());
    assert!(text.contains(" nor from any of the other 3;"), "{text}");
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
             over 3 pairs by permutation (minimum p 0.031), with p-values of at least 0.00049, the least that 6 seeds \
             allow."
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
        "text: CoPE is ahead on other distributions at longer lengths (perplexity 4.48 on `sparse` at 128 tokens) of RoPE \
         (4.95), but with one seed there is no test; CoPE is ahead in \
         distribution (perplexity 4.06 on `in-distribution` at 64 tokens) of RoPE (4.26), but \
         with one seed there is no test."
    );
}

#[test]
fn ties_are_called_ties() {
    let records = [
        cells("cope", &[0.9, 0.8, 0.85]),
        cells("rope", &[0.8, 0.9, 0.85]),
        cells("nope", &[0.1, 0.2, 0.1]),
    ]
    .concat();
    let text = say(&records);
    let expected = format!("flip-flop: CoPE and RoPE share the best mean {BEYOND}");
    assert!(text.starts_with(&expected), "{text}");
    let all = [cells("cope", &[1.0]), cells("rope", &[1.0])].concat();
    assert!(say(&all).contains(&format!("{BEYOND} both encodings are equal")), "{}", say(&all));
}

#[test]
fn equal_differences_in_all_seeds_are_said() {
    let records = [cells("cope", &[1.0; 3]), cells("rope", &[0.0; 3])].concat();
    let text = say(&records);
    assert!(
        text.contains("RoPE (0.0 %; difference 100.0 points in each of 3 seeds, p = 0.031)"),
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
            "copy: CoPE is ahead on other distributions at longer lengths (token accuracy 90.0 % on `sparse` at 128 \
             tokens; exact match is 0.0 % for all, so token accuracy decides) of RoPE"
        ),
        "{text}"
    );
}

#[test]
fn one_encoding_or_none_is_said_plainly() {
    let text = say(&cells("rope", &[0.5, 0.6]));
    assert!(
        text.contains(&format!("only RoPE was measured {BEYOND} (exact match 55.0 %")),
        "{text}"
    );
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
    let c = crate::stats::decide(&[crate::stats::paired(&nll, &[(0, 1.5)]).unwrap()]);
    let text = difference_text(Metric::Perplexity, &c[0]);
    assert_eq!(text, "its perplexity is 1.05 times as high");
}

#[test]
fn an_interval_of_a_difference_of_shares_ends_at_100_points() {
    let (a, b) = ([(0, 1.0), (1, 1.0), (2, 0.7)], [(0, 0.0), (1, 0.1), (2, 0.1)]);
    let c = crate::stats::decide(&[crate::stats::paired(&a, &b).unwrap()]);
    let text = difference_text(Metric::ExactMatch, &c[0]);
    let expected = "difference 83.3 points, 95 % interval 31.6 to 100.0, p ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn an_encoding_with_too_few_seeds_is_named_at_the_end() {
    let records = [
        cells("alibi", &[0.983]),
        cells("rope", &[0.97, 0.971, 0.972, 0.973, 0.974]),
        cells("nope", &[0.72, 0.721, 0.722, 0.723, 0.724]),
    ]
    .concat();
    let said = say(&records);
    assert!(said.contains("RoPE has the best mean"), "{said}");
    assert!(said.contains("; too few seeds for a rank: ALiBi (98.3 %, n = 1)"), "{said}");
    assert!(!said.contains("with one seed there is no test"), "{said}");
}
