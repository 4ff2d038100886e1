use super::*;
use std::collections::BTreeSet;

use crate::CellRow;
use records::testkit::{TestCell, suite};
use records::{Program, Status};

fn report(records: &[RunRecord]) -> Report {
    Report::new(records, &ReportMeta::default()).unwrap()
}

#[test]
fn costs_are_relative_to_rope_and_absent_without_it() {
    let with = report(&suite());
    let flip_flop = &with.workloads[0];
    let ratio =
        |name: &str| flip_flop.costs.iter().find(|c| c.encoding == name).unwrap().step_ratio;
    assert_eq!((ratio("cope"), ratio("rope")), (Some(2.0), Some(1.0)));
    let without = report(&[TestCell::new("w", "cope", 0).record()]);
    assert_eq!(without.workloads[0].costs[0].step_ratio, None);
}

#[test]
fn a_step_ratio_is_sound_only_if_the_times_of_rope_are() {
    let mut records = suite();
    let sound = |records: &[RunRecord]| {
        let costs = &report(records).workloads[0].costs;
        let cope = costs.iter().find(|cost| cost.encoding == "cope").unwrap();
        (cope.step_ratio, cope.sound_step_ratio(), cope.rope_disturbed)
    };
    assert_eq!(sound(&records), (Some(2.0), Some(2.0), false));
    let ropes = |r: &&mut RunRecord| r.encoding.name == "rope";
    records.iter_mut().filter(ropes).for_each(|r| r.train.steps = 99);
    assert_eq!(sound(&records), (Some(2.0), None, false), "too few steps");
    let mut records = suite();
    records.iter_mut().filter(ropes).last().unwrap().host.jobs = 2;
    assert_eq!(sound(&records).1, Some(2.0), "another workload");
    records.iter_mut().find(|r| r.encoding.name == "rope").unwrap().host.jobs = 2;
    assert_eq!(sound(&records), (Some(2.0), None, true));
}

#[test]
fn training_curves_are_means_over_seeds() {
    let report = report(&suite());
    let cope = &report.workloads[0].training[0];
    // 2 / i + the mean of 0, .01 and .02.
    assert_eq!(cope.points.len(), 4);
    assert_eq!(cope.points[1].step, 100);
    assert!((cope.points[1].value.mean - 1.01).abs() < 1e-12);
}

#[test]
fn display_names_are_unique() {
    let report = report(&suite());
    let names: Vec<_> = report.encodings.iter().map(|e| e.display.as_str()).collect();
    assert_eq!(names, ["ALiBi", "CoPE", "learned-absolute", "NoPE", "RoPE", "rope(linear)"]);
}

#[test]
fn a_name_without_settings_is_shown_in_place_of_a_label_with_settings() {
    let labelled = |name: &str, label: &str| {
        let named = |r: &mut RunRecord| {
            r.encoding.label = label.into();
            r.encoding.id = label.to_lowercase();
        };
        TestCell::new("w", name, 0).change(named).record()
    };
    let report = report(&[
        labelled("rope, YaRN", "RoPE{scaling={factor=2.0}}"),
        labelled("randomized{longest=256}(rope)", "Randomized{longest=256}(RoPE)"),
        labelled("rope as ever", "RoPE"),
    ]);
    let names: Vec<_> = report.encodings.iter().map(|e| e.display.as_str()).collect();
    assert_eq!(names, ["Randomized RoPE", "RoPE", "RoPE, YaRN"]);
    let report = self::report(&[
        labelled("randomized{longest=256}(rope)", "Randomized{longest=256}(RoPE)"),
        labelled("randomized{longest=512}(rope)", "Randomized{longest=512}(RoPE)"),
    ]);
    let names: Vec<_> = report.encodings.iter().map(|e| e.display.as_str()).collect();
    assert_eq!(names, ["Randomized, longest=256 (RoPE)", "Randomized, longest=512 (RoPE)"]);
}

#[test]
fn skipped_evaluations_are_gathered_over_seeds_and_lengths() {
    let report = report(&suite());
    assert_eq!(
        report.skipped_evals,
        [SkippedEvals {
            workload: "flip-flop".into(),
            encoding: "learned-absolute".into(),
            split: "sparse".into(),
            lens: vec![128, 256],
            seeds: vec![0, 1, 2],
            reason: "the table has 64 positions".into(),
        }]
    );
}

#[test]
fn suites_are_kept_apart() {
    let mut other = TestCell::new("w", "rope", 0).exact(0.0).record();
    other.suite = "first-look".into();
    other.key = "0000000000000000".into();
    let report = report(&[TestCell::new("w", "rope", 0).record(), other]);
    let names: Vec<_> = report.workloads.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["first-look: w", "quick: w"]);
    assert!(report.not_counted.is_empty());
}

#[test]
fn an_unknown_headline_is_refused_by_name() {
    let mut record = TestCell::new("w", "rope", 0).record();
    record.task.headline = "exact_match".into();
    let error = Report::new(&[record], &ReportMeta::default()).unwrap_err().to_string();
    assert!(error.contains("`exact_match`") && error.contains("`exact-match`"), "{error}");
}

#[test]
fn a_diverged_seed_is_in_the_fit_rate_unless_it_was_run_again() {
    let diverged = |seed: u64| {
        let status = Status::Diverged { step: 3, reason: "NaN".into() };
        TestCell::new("w", "rope", seed).without_evals().status(status)
    };
    let again = diverged(1).change(|r| {
        r.key = "0000000000000000".into();
        r.started_utc = "2025-01-01T00:00:00Z".into();
    });
    let records = [
        TestCell::new("w", "rope", 0).record(),
        TestCell::new("w", "rope", 1).record(),
        again.record(),
        diverged(2).record(),
    ];
    let report = report(&records);
    let rope = &report.workloads[0].run_metrics[0];
    assert_eq!((rope.solved, rope.run), (2, 3));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let meta = ReportMeta::default();
    let frames = Frames::of(&suite()).unwrap();
    let wrong = Settings { solved_loss: -1.0, ..Settings::default() };
    let error = Report::with(frames, &meta, &wrong).unwrap_err().to_string();
    assert!(error.contains("`solved_loss` is -1"), "{error}");
}

#[test]
fn every_cell_is_in_one_group() {
    let report = report(&suite());
    let groups = report.groups();
    let cells: u32 = groups.iter().map(|g| g.count).sum();
    assert_eq!(cells as usize, report.frames.cells.height());
    let names: BTreeSet<_> = groups.iter().map(|g| (&g.workload.name, g.encoding)).collect();
    assert_eq!(names.len(), groups.len());
    for group in &groups {
        let config = |key: &str, is: &str| -> bool {
            let cells = report.cells_of(group).unwrap();
            let config = |cell: &CellRow| serde_json::from_str::<Value>(&cell.config).unwrap();
            cells.len() == group.count as usize && cells.iter().all(|cell| config(cell)[key] == is)
        };
        assert!(config("workload", &group.workload.name) && config("encoding", group.encoding));
    }
}

#[test]
fn the_cell_started_last_counts_for_its_seed() {
    let old = TestCell::new("w", "rope", 0).exact(0.1).record();
    let new = TestCell::new("w", "rope", 0)
        .change(|r| {
            r.key = "0000000000000000".into();
            r.started_utc = "2026-02-02T03:04:05Z".into();
        })
        .record();
    let report = report(&[new, old.clone(), TestCell::new("w", "rope", 1).record()]);
    let rope = &report.workloads[0].rows[0];
    assert_eq!((rope.exact_match.mean, rope.exact_match.n), (1.0, 2));
    let told = &report.not_counted[0];
    assert_eq!((report.not_counted.len(), &*told.state, &told.key), (1, "superseded", &old.key));
    assert!(told.reason.starts_with("cell 0000000000000000 of the same"), "{}", told.reason);
}

#[test]
fn an_evaluation_of_kept_weights_is_newer_than_the_training() {
    let mut records = Vec::new();
    for seed in 0..4_u64 {
        let old = TestCell::new("w", "rope", seed).exact(0.1).record();
        let again = TestCell::new("w", "rope", seed).change(|r| {
            r.config["eval"] = 2.into();
            r.key = records::store::cell_key(&r.config);
            r.evaluated_by = Some(Program {
                commit: None,
                dirty: None,
                versions: BTreeMap::new(),
                host: r.host.clone(),
                started_utc: "2026-02-02T03:04:05Z".into(),
            });
        });
        records.extend([again.record(), old]);
    }
    let report = report(&records);
    let rope = &report.workloads[0].rows[0];
    assert_eq!((rope.exact_match.mean, rope.exact_match.n), (1.0, 4));
    assert!(
        report
            .not_counted
            .iter()
            .all(|told| told.reason.ends_with("with another configuration, is newer"))
    );
}

#[test]
fn cells_without_a_result_are_listed_with_their_reason() {
    let failed = Status::Failed { reason: "no corpus".into() };
    let diverged = Status::Diverged { step: 9, reason: "loss is NaN".into() };
    let records = [
        TestCell::new("w", "rope", 0).status(failed).record(),
        TestCell::new("w", "rope", 1).status(diverged).record(),
    ];
    let report = report(&records);
    assert!(report.workloads[0].rows.is_empty());
    let told: Vec<_> = report.not_counted.iter().map(|o| (&*o.state, &*o.reason)).collect();
    assert_eq!(told, [("failed", "no corpus"), ("diverged", "at step 9: loss is NaN")]);
}

#[test]
fn chosen_workloads_are_those_of_the_report_of_all() {
    let records = suite();
    let frames = Frames::of(&records).unwrap();
    let (names, all) = (frames.workloads().unwrap(), report(&records));
    assert_eq!(names, all.workloads.iter().map(|w| w.name.clone()).collect::<Vec<_>>());
    for (name, whole) in names.iter().zip(&all.workloads) {
        let (frames, chosen) = (frames.clone(), std::slice::from_ref(name));
        let meta = ReportMeta::default();
        let own = Report::of_workloads(frames, &meta, &Settings::default(), chosen).unwrap();
        assert_eq!((own.workloads.len(), &own.encodings), (1, &all.encodings));
        let own = &own.workloads[0];
        assert_eq!((&own.name, &own.rows, &own.training), (name, &whole.rows, &whole.training));
        assert_eq!(own.rankings, whole.rankings);
    }
}
