mod smaller;

use serde_json::{Value, json};

use super::*;
use records::testkit::TestCell;
use records::{GridPoint, RunRecord, Status};

/// A source with one table: 20.3% errors of RoPE (deviation 3.1 over 3 seeds) and 4.9% of CoPE, at 10000 steps.
const TEXT: &str = r#"
[paper]
id = "p"
label = "Paper"
title = "P"
url = "u"
about = "a"
[[table]]
id = "t"
source = "Table 1"
what = "Flip-flop"
metric = "error-percent"
seeds = 3
trust = "The order."
task = "flip-flop"
suite = "paper-flip-flop"
identity = { "task.ignore" = 0.8 }
recipe = { "train.steps" = 10000, "model.width" = 256 }
columns = [{ name = "in", split = "in-distribution" }, { name = "sparse", split = "sparse", length_ratio = 2.0 }]
rows = [
  { encoding = "rope", values = ["1.8", "20.3"], deviations = { sparse = 3.1 } },
  { encoding = "cope", free = ["max_positions"], values = ["0.0", "4.9"] },
]
"#;

fn encodings() -> BTreeMap<String, Identity> {
    serde_json::from_value(json!({
        "rope": {"id": "rope", "settings": {"base": 10000.0}},
        "cope": {"id": "cope", "settings": {"max_positions": 64, "gates": "query-key"}},
    }))
    .unwrap()
}

fn config(encoding: &str, settings: &Value, seed: u64, steps: u64) -> Value {
    json!({
        "encoding": {"id": encoding, "settings": settings},
        "task": {"kind": "flip-flop", "ignore": 0.8},
        "model": {"width": 256},
        "train": {"steps": steps, "len": 64},
        "seed": seed,
        "backend": "flex",
    })
}

/// Builds records of RoPE with these errors beyond training, by seed; all other settings as published.
fn rope(errors: &[f64]) -> Vec<RunRecord> {
    let cell = |(seed, error): (usize, &f64)| {
        TestCell::new("flip-flop", "rope", seed as u64)
            .inside(0.982)
            .beyond(1.0 - error)
            .change(|r| {
                r.config = config("rope", &json!({"base": 1e4}), r.seed, 10000);
                r.key = records::store::cell_key(&r.config);
            })
            .record()
    };
    errors.iter().enumerate().map(cell).collect()
}

/// Gives records another value of a setting.
fn with(mut records: Vec<RunRecord>, section: &str, key: &str, value: u64) -> Vec<RunRecord> {
    for record in &mut records {
        record.config[section][key] = json!(value);
    }
    records
}

fn result(records: &[RunRecord]) -> Reproduction {
    result_of(TEXT, records)
}

/// Compares the numbers of a source with records.
fn result_of(text: &str, records: &[RunRecord]) -> Reproduction {
    let paper = published::parse("p", text).unwrap();
    paper.tables.iter().for_each(|table| assert_eq!(table.check(), Ok(())));
    beside(vec![paper], &encodings(), &Frames::of(records).unwrap()).unwrap()
}

/// The differences of the nearest run of a number.
fn differences(reproduction: &Reproduction, row: usize, column: usize) -> String {
    let table = &reproduction.tables[0];
    table.differences(&table.rows[row][column].runs[0])
}

/// Returns the number of a row and column.
fn at(reproduction: &Reproduction, row: usize, column: usize) -> &NumberResult {
    &reproduction.tables[0].rows[row][column]
}

#[test]
fn a_number_within_the_interval_agrees_and_one_outside_differs() {
    let near = result(&rope(&[0.19, 0.20, 0.21]));
    assert_eq!(at(&near, 0, 1).verdict, Verdict::Agrees);
    let run = &at(&near, 0, 1).runs[0];
    assert!((run.mean.unwrap() - 20.0).abs() < 1e-9);
    // t(0.975, 2) / sqrt(3) = 2.484; the deviation is 1 point.
    let (low, high) = run.interval.unwrap();
    assert!((low - 17.516).abs() < 1e-3 && (high - 22.484).abs() < 1e-3, "{low} {high}");
    assert_eq!(run.text(), "20.0 [17.5, 22.5] n=3");
    let far = result(&rope(&[0.49, 0.50, 0.51]));
    assert_eq!(at(&far, 0, 1).verdict, Verdict::Differs);
    // 1.8% wrong in every seed: without observed spread the resolution is used.
    assert_eq!(at(&far, 0, 0).verdict, Verdict::Agrees);
}

#[test]
fn published_uncertainty_counts() {
    // 30 +- 0.25 does not hold 20.3, and 20.3 +- 2.484 * 3.1 ends at 28.05.
    assert_eq!(at(&result(&rope(&[0.30; 3])), 0, 1).verdict, Verdict::Differs);
    assert_eq!(at(&result(&rope(&[0.28; 3])), 0, 1).verdict, Verdict::Agrees);
    let (low, high) = at(&result(&[]), 0, 1).published_interval.unwrap();
    assert!((low - 12.549).abs() < 1e-3 && (high - 28.051).abs() < 1e-3, "{low} {high}");
    // A share cannot be below 0.
    assert_eq!(at(&result(&[]), 1, 0).published_interval, Some((0.0, 0.05)));
}

#[test]
fn nothing_is_claimed_below_three_seeds_or_with_another_recipe() {
    assert_eq!(at(&result(&rope(&[0.203])), 0, 1).verdict, Verdict::TooFewSeeds);
    let found = result(&with(rope(&[0.19, 0.20, 0.21]), "train", "steps", 900));
    assert_eq!(at(&found, 0, 1).verdict, Verdict::OtherRecipe);
    assert_eq!(differences(&found, 0, 1), "train.steps 900 (published: 10000)");
}

#[test]
fn a_run_that_stopped_early_has_another_recipe() {
    let mut records = rope(&[0.19, 0.20, 0.21]);
    records[1].train.stopped_early = true;
    records[1].train.steps = 700;
    let found = result(&records);
    assert_eq!(at(&found, 0, 1).verdict, Verdict::OtherRecipe);
    let told = differences(&found, 0, 1);
    let expected =
        "end of training as soon as solved, at step 700 at the earliest (published: the last step)";
    assert_eq!(told, expected);
}

#[test]
fn what_is_always_different_is_another_recipe() {
    let text =
        TEXT.replace("trust =", "unlike = [\"the model recurs\"]\nneeds = \"depth\"\ntrust =");
    let found = result_of(&text, &rope(&[0.19, 0.20, 0.21]));
    assert_eq!(at(&found, 0, 1).verdict, Verdict::OtherRecipe);
    assert_eq!(differences(&found, 0, 1), "the model recurs");
}

#[test]
fn a_number_whose_deviation_is_not_carried_over_never_differs() {
    let text = TEXT.replace("trust =", "unread_deviations = \"lost\"\ntrust =");
    let found = |errors: &[f64]| result_of(&text, &rope(errors));
    // 1.8% in distribution has no deviation, 20.3% beyond has one.
    let verdicts = |found: &Reproduction| [at(found, 0, 0).verdict, at(found, 0, 1).verdict];
    assert_eq!(verdicts(&found(&[0.203; 3])), [Verdict::Agrees; 2]);
    let mut worse = rope(&[0.5; 3]);
    worse.iter_mut().flat_map(|record| &mut record.evals).for_each(|e| e.exact_match = 0.5);
    let far = result_of(&text, &worse);
    assert_eq!(verdicts(&far), [Verdict::Undecided, Verdict::Differs]);
    worse[0].status = Status::Diverged { step: 3, reason: "NaN".into() };
    worse.extend(rope(&[0.5; 4]).into_iter().skip(3));
    let diverged = result_of(&text, &worse);
    assert_eq!(at(&diverged, 0, 0).verdict, Verdict::Differs);
}

#[test]
fn a_seed_that_diverged_is_no_agreement() {
    let mut records = rope(&[0.19, 0.20, 0.21, 0.20]);
    records[3].status = Status::Diverged { step: 3, reason: "NaN".into() };
    records[3].evals.clear();
    let found = result(&records);
    let run = &at(&found, 0, 1).runs[0];
    assert_eq!((run.seeds(), run.diverged), (3, 1));
    assert_eq!(at(&found, 0, 1).verdict, Verdict::Differs);
}

#[test]
fn records_of_something_else_do_not_count() {
    type Change = fn(&mut RunRecord);
    let changes: [Change; 6] = [
        |r| r.task.id = "copy".into(),
        |r| r.config["task"]["ignore"] = json!(0.5),
        |r| r.config["encoding"]["settings"]["base"] = json!(5e5),
        |r| r.config["encoding"]["id"] = json!("xpos"),
        |r| r.status = Status::Failed { reason: "disk".into() },
        |r| r.evals.clear(),
    ];
    for change in changes {
        let mut records = rope(&[0.19, 0.20, 0.21]);
        records.iter_mut().for_each(change);
        assert_eq!(at(&result(&records), 0, 1).verdict, Verdict::NotRun);
    }
    // The evaluation at twice the length is missing from the records; that in distribution is present.
    let mut records = rope(&[0.19, 0.20, 0.21]);
    for record in &mut records {
        record.evals.retain(|e| e.len == 64);
    }
    let found = result(&records);
    assert_eq!(
        (at(&found, 0, 0).verdict, at(&found, 0, 1).verdict),
        (Verdict::Agrees, Verdict::NotRun)
    );
}

#[test]
fn the_nearest_recipe_stands_first_and_a_repeated_seed_counts_once() {
    let mut records = rope(&[0.19, 0.20, 0.21]);
    let short = with(with(rope(&[0.4; 4]), "train", "steps", 900), "model", "width", 64);
    let mut again = rope(&[0.5]);
    again[0].started_utc = "2020-01-01T00:00:00Z".into();
    // Another engine is no other recipe.
    again[0].config["engine"] = json!("fused");
    records.extend(short);
    records.extend(again);
    let shuffled: Vec<RunRecord> = records.iter().rev().cloned().collect();
    for records in [records, shuffled] {
        let found = result(&records);
        let runs = &at(&found, 0, 1).runs;
        assert_eq!(runs.len(), 2);
        assert_eq!((runs[0].seeds(), runs[0].differences.len()), (3, 0));
        assert_eq!((runs[1].seeds(), runs[1].differences.len()), (4, 2));
        assert!((runs[0].mean.unwrap() - 20.0).abs() < 1e-9);
    }
}

#[test]
fn of_equally_many_differences_the_smallest_stand_first() {
    // 10,000 steps are published; twice as many are nearer than a quarter of them, in either order of age.
    for (twice, quarter) in [("2020-01-01", "2021-01-01"), ("2021-01-01", "2020-01-01")] {
        let mut records = Vec::new();
        for (steps, day) in [(20_000, twice), (2_500, quarter)] {
            for mut record in with(rope(&[0.19, 0.20, 0.21]), "train", "steps", steps) {
                record.started_utc = format!("{day}T00:00:00Z");
                records.push(record);
            }
        }
        let first = differences(&result(&records), 0, 1);
        assert_eq!(first, "train.steps 20000 (published: 10000)");
    }
}

#[test]
fn an_evaluation_of_kept_weights_is_newer_than_its_training() {
    let mut records = rope(&[0.19, 0.20, 0.21]);
    let mut again = rope(&[0.22]).remove(0);
    again.evaluated_by = Some(records::Program {
        commit: None,
        dirty: None,
        versions: again.versions.clone(),
        host: again.host.clone(),
        started_utc: "2026-05-05T00:00:00Z".into(),
    });
    again.config["engine"] = json!("fused");
    records.push(again);
    let found = result(&records);
    let run = &at(&found, 0, 1).runs[0];
    assert_eq!((run.seeds(), run.newest.as_str()), (3, "2026-05-05T00:00:00Z"));
    assert!((run.mean.unwrap() - 21.0).abs() < 1e-9);
}

#[test]
fn cells_that_chose_the_rate_are_no_results_beside_fresh_seeds() {
    let mut records = rope(&[0.2, 0.2, 0.2, 0.9]);
    let mut seeds = |fresh: [bool; 4]| {
        for (record, fresh) in records.iter_mut().zip(fresh) {
            let axis = "train.optimizer.learning_rate".to_owned();
            record.grid = Some(GridPoint { axis, value: 1e-3, default: true, fresh });
        }
        at(&result(&records), 0, 1).runs[0].seeds()
    };
    assert_eq!(seeds([true, true, true, false]), 3);
    assert_eq!(seeds([false; 4]), 4);
}

#[test]
fn without_records_every_published_number_is_there_and_not_run() {
    let found = reproduction(&Frames::of(&[]).unwrap()).unwrap();
    let numbers = || found.tables.iter().flat_map(TableResult::numbers).map(|(.., number)| number);
    let verdicts: Vec<Verdict> = numbers().map(|number| number.verdict).collect();
    assert_eq!(verdicts.len(), 363);
    let not_run = [Verdict::NotRun, Verdict::Elsewhere, Verdict::Unread];
    assert!(verdicts.iter().all(|verdict| not_run.contains(verdict)));
    // Each number lies within its own interval.
    for number in numbers() {
        let held = number.published_interval.zip(number.published.value);
        assert!(
            held.is_none_or(|((low, high), value)| low <= value && value <= high),
            "{number:?}"
        );
        assert_eq!(held.is_none(), number.verdict == Verdict::Unread);
    }
}

#[test]
fn an_encoding_without_settings_is_told_with_the_way_out() {
    let paper = published::parse("p", &TEXT.replace("\"rope\"", "\"xpos\"")).unwrap();
    let error =
        beside(vec![paper], &encodings(), &Frames::of(&[]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("`xpos`") && error.contains("--test published"), "{error}");
}

#[test]
fn an_unpublished_setting_is_chosen_freely_told_and_never_chosen_by_result() {
    let cope = |max_positions: u64| {
        let mut records = rope(&[0.05; 3]);
        for record in &mut records {
            let settings = json!({"max_positions": max_positions, "gates": "query-key"});
            record.config["encoding"] = json!({"id": "cope", "settings": settings});
        }
        records
    };
    let mut records = cope(16);
    records.extend(cope(64).into_iter().map(|mut record| {
        record.evals.iter_mut().for_each(|e| e.exact_match = 0.5);
        record
    }));
    let found = result(&records);
    let runs = &at(&found, 1, 1).runs;
    assert_eq!(
        (runs[0].choices.len(), runs[1].choices.as_slice()),
        (0, &["max_positions 16".to_owned()][..])
    );
    assert_eq!(at(&found, 1, 1).verdict, Verdict::Differs);
    assert_eq!(at(&result(&cope(16)), 1, 1).verdict, Verdict::Agrees);
    let text = runs[1].text();
    assert!(text.ends_with("n=3, max_positions 16"), "{text}");
}

#[test]
fn a_refused_encoding_is_compared_with_the_one_that_stands_for_it() {
    let text =
        TEXT.replace("{ encoding = \"cope\",", "{ encoding = \"cope\", trained_as = \"rope\",");
    let text = text.replace("free = [\"max_positions\"], ", "");
    let found = result_of(&text, &rope(&[0.04, 0.05, 0.06]));
    assert_eq!((at(&found, 1, 1).runs.len(), at(&found, 1, 1).verdict), (1, Verdict::Agrees));
    assert_eq!(found.tables[0].table.rows[1].title(), "cope");
}

#[test]
fn a_text_is_found_by_a_part_of_its_path() {
    let text = TEXT.replace(
        "identity = { \"task.ignore\" = 0.8 }",
        "identity = { \"task.path\" = { contains = \"wikitext-103\" } }",
    );
    for (path, runs) in [("data/wikitext-103-raw-v1", 1), ("data/wikitext-2-raw-v1", 0)] {
        let mut records = rope(&[0.19, 0.20, 0.21]);
        for record in &mut records {
            record.config["task"] = json!({"kind": "flip-flop", "path": path});
        }
        assert_eq!(at(&result_of(&text, &records), 0, 1).runs.len(), runs, "{path}");
    }
}
