use super::*;
use records::testkit::TestCell;
use records::{GridPoint, SliceUnit, Slices, Status, Validation};

fn request(a: &str, b: &str) -> Request {
    Request { a: a.into(), b: b.into(), ..Request::default() }
}

/// Builds a cell whose configuration depends on the workload only.
fn cell(workload: &str, encoding: &str, seed: u64, beyond: f64) -> RunRecord {
    let config = serde_json::json!({"encoding": encoding, "task": workload, "seed": seed});
    let key = records::store::cell_key(&config);
    let cell = TestCell::new(workload, encoding, seed).beyond(beyond);
    cell.change(|r| (r.config, r.key) = (config, key)).record()
}

fn cells(workload: &str, encoding: &str, beyond: &[f64]) -> Vec<RunRecord> {
    (0..).zip(beyond).map(|(seed, value)| cell(workload, encoding, seed, *value)).collect()
}

fn found(records: &[RunRecord], a: &str, b: &str) -> HeadToHead {
    compare(records, &request(a, b)).unwrap()
}

#[test]
fn differences_are_paired_by_seed_and_stated_from_the_first() {
    let records = [
        cells("w", "cope", &[0.80, 0.90, 0.70]),
        cells("w", "rope", &[0.50, 0.61, 0.39]),
        cells("w", "nope", &[0.1, 0.2, 0.3]),
    ]
    .concat();
    let there = found(&records, "cope", "rope");
    let beyond = &there.comparisons[0].regions[1].difference;
    // Differences 0.30, 0.29, 0.31: t = 51.96 at 2 degrees, p = 3.7e-4; three seeds allow no less than 1 / 32.
    assert!((beyond.difference - 0.3).abs() < 1e-12);
    assert_eq!((beyond.p, beyond.seeds_needed, beyond.chance), (Some(0.03125), None, Some(0.5)));
    assert_eq!((beyond.family, beyond.p, beyond.test), (1, beyond.p_holm, "paired t"));
    assert_eq!((beyond.won, beyond.lost, beyond.tied), (3, 0, 0));
    assert_eq!(beyond.better, Better::A);
    let (low, high) = beyond.ci95.unwrap();
    assert!((high - 0.3 - 4.302_65 * 0.01 / 3_f64.sqrt()).abs() < 1e-6 && low < 0.3);
    // Hedges' g: 0.3 / 0.01 times Gamma(1) / (1 Gamma(1/2)) = 30 / sqrt(pi).
    let g = beyond.effect.unwrap();
    assert!((g - 30.0 / std::f64::consts::PI.sqrt()).abs() < 1e-9);
    let (low, high) = beyond.effect_ci95.unwrap();
    assert!(low > 0.0 && low < g && g < high, "{low} {high}");

    let back = found(&records, "rope", "cope");
    let mirrored = &back.comparisons[0].regions[1].difference;
    assert_eq!((mirrored.difference, mirrored.better), (-beyond.difference, Better::B));
    assert_eq!((mirrored.won, mirrored.lost, mirrored.p), (0, 3, beyond.p));
    let inside = &there.comparisons[0].regions[0].difference;
    assert_eq!((inside.tied, inside.better), (3, Better::NotSeparable));
}

#[test]
fn the_better_of_two_must_be_above_chance() {
    // CoPE's interval includes the chance of 50%, RoPE's does not.
    let records = [
        cells("w", "cope", &[0.53, 0.53, 0.53, 0.53, 0.53, 0.53, 0.53, 0.99]),
        cells("w", "rope", &[0.51; 8]),
    ]
    .concat();
    let difference = &found(&records, "cope", "rope").comparisons[0].regions[1].difference;
    assert_eq!((difference.won, difference.better), (8, Better::NotSeparable));
    assert!(difference.p_holm.unwrap() < 0.01);
}

#[test]
fn less_perplexity_wins_and_is_compared_as_nll() {
    let text = |encoding: &str, seed: u64, nll: f64| {
        let config = serde_json::json!({"encoding": encoding, "seed": seed});
        let cell = TestCell::new("t", encoding, seed).text(1.4, nll);
        cell.change(|r| r.config = config).record()
    };
    let records: Vec<RunRecord> = (0..3)
        .flat_map(|s| {
            [text("cope", s, 1.5 + 0.01 * s as f64), text("rope", s, 1.7 + 0.012 * s as f64)]
        })
        .collect();
    let found = found(&records, "cope", "rope");
    let beyond = &found.comparisons[0].regions[1].difference;
    assert_eq!((beyond.metric, beyond.won, beyond.better), ("nll", 3, Better::A));
    assert!(beyond.difference < 0.0);
}

#[test]
fn points_of_a_region_are_one_family_and_slices_of_a_property_another() {
    let with_slices = |encoding: &str, seed: u64, value: f64| {
        let mut record = cell("w", encoding, seed, value);
        record =
            TestCell::from(record).eval("sparse", false, 256, value - 0.01 * seed as f64).record();
        for eval in &mut record.evals {
            let slices = Slices {
                name: "distance".into(),
                unit: SliceUnit::Tokens,
                values: vec![2, 9],
                counts: vec![100, 50],
                accuracy: vec![0.9, value],
                nll: vec![0.1, 0.9],
            };
            eval.slices.push(slices);
        }
        record
    };
    let records: Vec<RunRecord> = (0..3)
        .flat_map(|s| [with_slices("cope", s, 0.9), with_slices("rope", s, 0.6 + 0.001 * s as f64)])
        .collect();
    let comparison = &found(&records, "cope", "rope").comparisons[0];
    let families: Vec<(u64, u32)> =
        comparison.points.iter().map(|line| (line.place.len, line.difference.family)).collect();
    assert_eq!(families, [(64, 1), (128, 2), (256, 2)]);
    assert_eq!(comparison.slices.len(), 6, "three evaluations, two values");
    assert!(comparison.slices.iter().all(|line| line.difference.family == 6));
    let far = comparison.slices.iter().find(|line| line.place.value == 9).unwrap();
    assert!((far.difference.difference - 0.299).abs() < 1e-12);
    assert_eq!((far.place.count, far.difference.metric), (50, "token accuracy"));
    let near = comparison.slices.iter().find(|line| line.place.value == 2).unwrap();
    assert_eq!((near.difference.tied, near.difference.difference), (3, 0.0));
}

#[test]
fn only_the_same_conditions_pair_and_the_newest_of_them_count() {
    let other = |r: &mut RunRecord| {
        r.config["task"] = "longer".into();
        r.started_utc = "2026-03-03T00:00:00Z".into();
    };
    let newer: Vec<RunRecord> = ["cope", "rope"]
        .into_iter()
        .map(|encoding| {
            let mut record = cell("w", encoding, 0, if encoding == "cope" { 0.2 } else { 0.1 });
            other(&mut record);
            record
        })
        .collect();
    let records =
        [cells("w", "cope", &[0.8, 0.9]), cells("w", "rope", &[0.5, 0.6]), newer.clone()].concat();
    let found_ = found(&records, "cope", "rope");
    assert_eq!(found_.comparisons[0].seeds, [0]);
    assert!((found_.comparisons[0].regions[1].difference.mean_a - 0.2).abs() < 1e-12);
    assert!(found_.left_out[0].contains("1 older configuration"), "{:?}", found_.left_out);

    let apart = [cells("w", "cope", &[0.8]), vec![newer[1].clone()]].concat();
    let error = compare(&apart, &request("cope", "rope")).unwrap_err().to_string();
    assert!(
        error.contains("cope has seed 0, and rope has seed 0; the two have no seed in common"),
        "{error}"
    );
}

#[test]
fn seeds_that_do_not_pair_are_told() {
    let records = [
        cells("w", "cope", &[0.8, 0.9]),
        vec![cell("w", "rope", 7, 0.5)],
        cells("v", "cope", &[0.8, 0.8]),
        vec![cell("v", "rope", 1, 0.5), cell("v", "rope", 2, 0.5)],
    ]
    .concat();
    let found = found(&records, "cope", "rope");
    assert_eq!(found.comparisons.len(), 1);
    let comparison = &found.comparisons[0];
    assert_eq!(
        (&comparison.seeds[..], &comparison.only_a[..], &comparison.only_b[..]),
        (&[1][..], &[0][..], &[2][..])
    );
    assert_eq!(comparison.regions[1].difference.p, None, "one seed claims nothing");
    assert_eq!(found.left_out.len(), 1);
    assert!(found.left_out[0].contains("cope has seeds 0, 1, and rope has seed 7"));
}

#[test]
fn names_are_resolved_with_the_nearest_that_there_is() {
    let records = [cells("flip-flop", "cope", &[0.8]), cells("flip-flop", "rope", &[0.8])].concat();
    let error = |request: &Request| compare(&records, request).unwrap_err().to_string();
    let text = error(&request("cpoe", "rope"));
    assert!(text.contains("encoding `cpoe` (did you mean `cope`?)"), "{text}");
    assert!(error(&request("cope", "zzzzzz")).ends_with("there are: cope, rope"));
    assert!(error(&request("cope", "cope")).contains("with itself"));
    let workload = Request { workloads: vec!["flipflop".into()], ..request("cope", "rope") };
    assert!(error(&workload).contains("did you mean `flip-flop`?"));
    let task = Request { tasks: vec!["copy".into()], ..request("cope", "rope") };
    assert!(error(&task).contains("no record has the task `copy`"));
}

/// Builds a cell at a learning rate with the exact match of its validation.
fn tuned(encoding: &str, rate: f64, validation: Option<f64>, beyond: f64) -> RunRecord {
    let mut record = cell("w", encoding, 0, beyond);
    record.config["train"] = serde_json::json!({ "rate": rate });
    record.key = records::store::cell_key(&record.config);
    record.grid = Some(GridPoint {
        axis: "train.rate".into(),
        value: rate,
        default: rate < 0.05,
        fresh: false,
    });
    record.train.validations = validation
        .map(|exact_match| Validation {
            step: 9,
            exact_match,
            token_accuracy: exact_match,
            nll: 1.0 - exact_match,
            samples: 10,
            seconds: 1.0,
        })
        .into_iter()
        .collect();
    record
}

#[test]
fn of_a_grid_the_chosen_values_count_and_they_may_differ() {
    let records = [
        tuned("cope", 0.1, Some(0.9), 0.8),
        tuned("cope", 0.01, Some(0.6), 0.7),
        tuned("rope", 0.1, Some(0.2), 0.3),
        tuned("rope", 0.01, Some(0.5), 0.4),
    ];
    let found_ = found(&records, "cope", "rope");
    let comparison = &found_.comparisons[0];
    assert!((comparison.regions[1].difference.difference - 0.4).abs() < 1e-12, "{comparison:?}");
    assert_eq!(
        comparison.notes[0],
        "rate of each encoding, chosen by validation: cope 0.1; rope 0.01."
    );
    assert_eq!(found_.left_out.len(), 2);
    assert!(found_.left_out[0].contains("train.rate = 0.01 was not chosen"), "{found_:?}");
    // The seeds that chose do not count where fresh ones stand for the result.
    let mut fresh = [tuned("cope", 0.1, None, 0.8), tuned("rope", 0.01, None, 0.4)];
    for record in &mut fresh {
        record.seed = 9;
        record.config["seed"] = 9.into();
        record.key = records::store::cell_key(&record.config);
        record.grid.as_mut().unwrap().fresh = true;
    }
    let with_fresh = found(&[&records[..], &fresh[..]].concat(), "cope", "rope");
    assert_eq!(with_fresh.comparisons[0].seeds, [9]);
    let told = |reason: &&String| reason.contains("(this seed took part in choosing `train.rate`)");
    assert_eq!(with_fresh.left_out.iter().filter(told).count(), 1, "{with_fresh:?}");
    assert!(with_fresh.left_out[0].contains("of cope and rope is left out"), "{with_fresh:?}");
    // Without validations the default is used.
    let records = [
        tuned("cope", 0.1, None, 0.8),
        tuned("cope", 0.01, None, 0.7),
        tuned("rope", 0.01, None, 0.4),
    ];
    let plain = found(&records, "cope", "rope");
    assert!((plain.comparisons[0].regions[1].difference.difference - 0.3).abs() < 1e-12);
    assert!(plain.comparisons[0].notes[0].contains("cope 0.01 (default, not chosen)"));
}

#[test]
fn what_is_not_done_does_not_count() {
    let mut failed = cell("w", "cope", 1, 0.9);
    failed.status = Status::Failed { reason: "broke".into() };
    let records =
        [vec![failed, cell("w", "cope", 0, 0.8)], cells("w", "rope", &[0.5, 0.5])].concat();
    let found = found(&records, "cope", "rope");
    assert_eq!((&found.comparisons[0].seeds[..], found.left_out.len()), (&[0][..], 1));
    assert!(found.left_out[0].contains("seed 1 of cope is left out (failed)"));
}

#[test]
fn exact_matches_that_are_all_equal_make_room_for_token_accuracy() {
    let low = |encoding: &str, seed: u64, tokens: f64| {
        let config = serde_json::json!({"encoding": encoding, "seed": seed});
        let cell = TestCell::new("w", encoding, seed).exact(0.0).token_accuracy(tokens);
        cell.change(|r| r.config = config).record()
    };
    let records: Vec<RunRecord> =
        (0..3).flat_map(|s| [low("cope", s, 0.9), low("rope", s, 0.7)]).collect();
    let comparison = &found(&records, "cope", "rope").comparisons[0];
    let inside = &comparison.regions[0].difference;
    assert_eq!((inside.metric, inside.better), ("token accuracy", Better::A));
    assert!(comparison.notes[0].contains("exact match is 0.0%"), "{:?}", comparison.notes);
}

#[test]
fn evaluations_that_one_cannot_run_are_left_out_and_told() {
    let mut limited = cell("w", "learned", 0, 0.5);
    limited.evals.retain(|eval| eval.len <= 64);
    let found = found(&[limited, cell("w", "rope", 0, 0.5)], "learned", "rope");
    let comparison = &found.comparisons[0];
    assert_eq!((comparison.regions.len(), comparison.points.len()), (1, 1));
    assert!(
        comparison.notes.iter().any(|note| note.contains("sparse at length 128")),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn the_json_has_flat_lines() {
    let records = [cells("w", "cope", &[0.9]), cells("w", "rope", &[0.8])].concat();
    let json = serde_json::to_value(found(&records, "cope", "rope")).unwrap();
    let line = &json["duels"][0]["regions"][1];
    assert_eq!(line["region"], "on other distributions at longer lengths");
    assert_eq!(line["outcome"], "not-separable");
    assert!((line["difference"].as_f64().unwrap() - 0.1).abs() < 1e-12);
    assert_eq!(json["duels"][0]["points"][0]["split"], "in-distribution");
}
