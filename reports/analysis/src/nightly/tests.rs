use serde_json::json;

use super::history::{Night, read};
use super::*;
use records::testkit::TestCell;
use records::{Allocations, Status};

const WORKLOADS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// Builds a night of `WORKLOADS` x {alibi, rope} with one seed each.
fn night() -> Vec<RunRecord> {
    night_of(1)
}

fn night_of(seeds: u64) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (index, workload) in WORKLOADS.into_iter().enumerate() {
        for encoding in ["alibi", "rope"] {
            for seed in 0..seeds {
                let config = json!({"encoding": encoding, "task": workload, "seed": seed, "train": {"steps": 9}});
                let value = 0.9 - 0.02 * index as f64 - 0.003 * seed as f64;
                let cell =
                    TestCell::new(workload, encoding, seed).exact(value).token_accuracy(value);
                let counted = |r: &mut RunRecord| {
                    r.config = config;
                    r.step_allocations = Some(Allocations { count: 5000 + seed, bytes: 9_000_000 });
                    r.step_instructions = (index == 0 && seed == 0).then_some(40_000_000);
                };
                records.push(cell.change(counted).record());
            }
        }
    }
    records
}

/// Returns the records of the same night with a change to one encoding.
fn with(
    records: &[RunRecord],
    encoding: &str,
    change: impl Fn(usize, &mut RunRecord),
) -> Vec<RunRecord> {
    let mut records = records.to_vec();
    let of = |r: &&mut RunRecord| r.encoding.name == encoding;
    records.iter_mut().filter(of).enumerate().for_each(|(index, record)| change(index, record));
    records
}

fn judged(night: &[RunRecord], baseline: &[RunRecord]) -> NightlyVerdict {
    judge(night, baseline)
}

fn worse(record: &mut RunRecord, nats: f64, share: f64) {
    for eval in &mut record.evals {
        eval.nll += nats;
        eval.token_accuracy -= share;
        eval.exact_match -= share;
    }
}

#[test]
fn the_same_night_twice_is_quiet() {
    let verdict = judged(&night(), &night());
    assert!(verdict.passes() && verdict.warnings.is_empty() && verdict.slower.is_empty());
    assert_eq!((verdict.compared, verdict.identical), (24, 24));
    assert_eq!(
        verdict.lines(),
        [
            "24 cells compared, 24 of them identical; 0 comparisons of the other cells, 0 of them not separable"
        ]
    );
}

#[test]
fn numbers_that_move_both_ways_are_quiet() {
    let sign = |index: usize| if (index * 7) % 12 < 6 { 1.0 } else { -1.0 };
    let moved = with(&night(), "rope", |i, r| worse(r, 0.02 * sign(i), 0.02 * sign(i)));
    let verdict = judged(&moved, &night());
    assert!(verdict.passes(), "{:?}", verdict.lines());
    assert_eq!((verdict.identical, verdict.not_separable.len()), (12, 2));
    assert_eq!(verdict.not_separable[0].n, 12);
}

#[test]
fn an_encoding_that_is_worse_everywhere_is_caught_with_one_seed() {
    let broken = with(&night(), "rope", |i, r| worse(r, 0.05 + 0.01 * i as f64, 0.1));
    let verdict = judged(&broken, &night());
    assert!(!verdict.passes());
    let scope = Scope::Encoding { encoding: "rope".into() };
    assert!(verdict.losses.iter().all(|change| change.scope == scope));
    // 12 pairs, all worse: 2^-11 by signs, times 2 by Holm.
    assert_eq!(verdict.losses[0].p_holm, Some(2.0 / 2048.0));
    let text = verdict.lines().join("\n");
    assert!(text.contains("FAIL quality: rope, all changed cells, in distribution: nll"), "{text}");
    // With the two nights exchanged it is a gain.
    let verdict = judged(&night(), &broken);
    assert!(verdict.passes() && verdict.gains.len() == 2, "{:?}", verdict.lines());
}

#[test]
fn a_loss_below_what_matters_is_quiet() {
    let moved = with(&night(), "rope", |_, r| worse(r, 0.004, 0.004));
    let verdict = judged(&moved, &night());
    assert!(verdict.passes() && verdict.not_separable.len() == 2, "{:?}", verdict.lines());
    assert!(verdict.not_separable[0].p_holm.unwrap() < 0.01, "separable, and too small to matter");
}

#[test]
fn with_seeds_one_broken_workload_is_caught_by_itself() {
    let baseline = night_of(6);
    let broken = with(&baseline, "rope", |_, r| {
        let noise = if r.seed % 2 == 0 { 0.001 } else { -0.001 };
        let lost = if r.workload == "c" { 0.3 } else { 0.0 };
        worse(r, noise, lost + noise);
    });
    let verdict = judged(&broken, &baseline);
    let scope = Scope::Workload { encoding: "rope".into(), workload: "c".into() };
    assert!(verdict.losses.iter().any(|change| change.scope == scope), "{:?}", verdict.lines());
    let quiet = with(&baseline, "rope", |_, r| {
        let noise = if r.seed % 2 == 0 { 0.02 } else { -0.02 };
        worse(r, noise, noise);
    });
    assert!(judged(&quiet, &baseline).passes());
}

#[test]
fn numbers_that_are_finite_no_more_fail_without_a_test() {
    let broken = with(&night(), "rope", |i, r| {
        if i == 3 {
            r.evals[0].nll = f64::NAN;
        }
    });
    let verdict = judged(&broken, &night());
    assert_eq!(verdict.losses.len(), 1, "{:?}", verdict.lines());
    assert!(verdict.lines()[0].contains("n/a nats"), "{:?}", verdict.lines());
}

#[test]
fn any_rise_of_a_deterministic_cost_fails_and_a_fall_does_not() {
    let more = with(&night(), "rope", |_, r| r.flops.train_step += 1);
    let verdict = judged(&more, &night());
    assert_eq!((verdict.passes(), verdict.rises.len()), (false, 12));
    assert!(verdict.lines()[0].contains("operations of a training step 1500000000 -> 1500000001"));
    let verdict = judged(&night(), &more);
    assert_eq!((verdict.passes(), verdict.falls.len()), (true, 12));
    let parameters = with(&night(), "alibi", |_, r| r.params.encoding = 9);
    assert!(!judged(&parameters, &night()).passes());
}

#[test]
fn a_step_that_asks_for_more_memory_or_takes_more_instructions_fails() {
    let more = with(&night(), "rope", |i, r| {
        if i == 3 {
            r.step_allocations = Some(Allocations { count: 5006, bytes: 9_000_000 });
        }
    });
    let verdict = judged(&more, &night());
    assert!(!verdict.passes());
    assert_eq!(
        verdict.lines()[0],
        "FAIL cost: rope on `d`: allocations of a training step 5000 -> 5006"
    );
    let verdict = judged(&night(), &more);
    assert_eq!((verdict.passes(), verdict.falls.len()), (true, 1));
    let scatter = with(&night(), "rope", |_, r| {
        r.step_allocations = Some(Allocations { count: 5001, bytes: 9_003_216 });
    });
    assert!(judged(&scatter, &night()).passes(), "a table that grew, or did not");
    let larger =
        with(&night(), "rope", |_, r| r.step_allocations.as_mut().unwrap().bytes += 50_000);
    assert_eq!(judged(&larger, &night()).rises.len(), 12);

    let counted = |times: f64| {
        with(&night(), "alibi", |_, r| {
            r.step_instructions = r.step_instructions.map(|count| (count as f64 * times) as u64);
        })
    };
    assert!(judged(&counted(1.004), &night()).rises.is_empty(), "scatter");
    let verdict = judged(&counted(1.02), &night());
    let text = verdict.lines().join("\n");
    assert!(
        text.contains(
            "FAIL cost: alibi on `a`: instructions of a training step 40000000 -> 40800000"
        ),
        "{text}"
    );
    assert_eq!(judged(&counted(0.9), &night()).falls.len(), 1);
}

#[test]
fn what_was_not_counted_is_told_and_other_processors_are_not_compared() {
    let none = |records: &[RunRecord]| {
        let mut records = records.to_vec();
        for record in &mut records {
            (record.step_allocations, record.step_instructions) = (None, None);
        }
        records
    };
    let verdict = judged(&none(&night()), &none(&night()));
    assert!(verdict.passes() && verdict.uncounted.len() == 3, "{:?}", verdict.lines());
    assert!(
        verdict.lines()[2].ends_with("step: not counted on this machine"),
        "{:?}",
        verdict.lines()
    );
    let text = judged(&none(&night()), &night()).lines().join("\n");
    assert!(
        text.contains(
            "not compared: instructions of a training step: 2 cells counted in the baseline, but not"
        ),
        "{text}"
    );
    let text = judged(&night(), &none(&night())).lines().join("\n");
    assert!(text.contains("allocations of a training step: not counted in the baseline"), "{text}");
    let dearer = with(&night(), "rope", |_, r| {
        r.step_allocations.as_mut().unwrap().count *= 2;
        r.host.cpu = "other".into();
    });
    let verdict = judged(&dearer, &night());
    assert!(verdict.rises.is_empty(), "{:?}", verdict.lines());
    assert!(
        verdict.uncounted[0].contains("the baseline counted 12 cells on a different processor")
    );
}

#[test]
fn time_and_memory_warn_on_the_same_machine_alone() {
    let slow = with(&night(), "rope", |_, r| {
        r.train.step_seconds_median = Some(0.03);
        r.peak_bytes = Some(80 << 20);
    });
    let verdict = judged(&slow, &night());
    assert!(verdict.passes(), "{:?}", verdict.lines());
    assert_eq!(verdict.slower.len(), 24);
    let text = verdict.lines().join("\n");
    assert!(text.contains("warning: rope on `a`: step 20.0 ms -> 30.0 ms, 1.50 times"), "{text}");
    assert!(text.contains("peak memory 64.0 MiB -> 80.0 MiB"), "{text}");
    let bit_slower = with(&night(), "rope", |_, r| r.train.step_seconds_median = Some(0.024));
    assert!(judged(&bit_slower, &night()).slower.is_empty());
    let elsewhere = with(&slow, "rope", |_, r| r.host.cpu = "other".into());
    let verdict = judged(&elsewhere, &night());
    assert!(
        verdict.slower.is_empty()
            && verdict.warnings[0].contains("12 cells ran on another machine")
    );
}

#[test]
fn cells_that_are_gone_broken_or_another_question_fail() {
    let mut gone = night();
    gone.pop();
    assert!(judged(&gone, &night()).lines()[0].contains("the cell was not run this night"));
    let failed = Status::Failed { reason: "out of luck".into() };
    let broken = with(&night(), "rope", |_, r| r.status = failed.clone());
    let verdict = judged(&broken, &night());
    assert_eq!(verdict.incomparable.len(), 12);
    assert!(verdict.incomparable[0].reason.contains("failed: out of luck"));
    let other = with(&night(), "rope", |_, r| r.config["train"]["steps"] = 10.into());
    let verdict = judged(&other, &night());
    assert!(!verdict.passes() && verdict.incomparable[0].reason.contains("different train"));
    let lost = with(&night(), "rope", |_, r| {
        r.evals.pop();
    });
    assert!(judged(&lost, &night()).incomparable[0].reason.contains("`sparse` at length 128"));
    // A cell that failed in the baseline does not fail the gate, and new cells warn.
    assert!(judged(&broken, &broken).passes());
    let verdict = judged(&night(), &gone);
    assert!(verdict.passes() && verdict.warnings[0].contains("1 new cell without a baseline"));
}

#[test]
fn what_an_encoding_of_one_name_is_made_of_may_change() {
    let swapped = with(&night(), "rope", |_, r| {
        r.encoding.id = "nope".into();
        r.config["encoding"] = "nope".into();
        r.key = format!("{:016x}", r.seed);
        worse(r, 0.2, 0.2);
    });
    assert!(!judged(&swapped, &night()).losses.is_empty());
}

#[test]
fn nights_are_kept_once_and_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = night();
    let first = Night::of(&records, None).unwrap();
    first.write(folder.path()).unwrap();
    first.write(folder.path()).unwrap();
    for record in &mut records {
        record.started_utc = "2026-01-03T03:04:05Z".into();
        record.commit = Some("<script>alert(1)</script>".into());
        record.workload = format!("{}<img>", record.workload);
    }
    Night::of(&records, Some(false)).unwrap().write(folder.path()).unwrap();
    let nights = read(folder.path()).unwrap();
    assert_eq!(nights.len(), 2);
    // Files hold 15 digits.
    let text = |night: &Night| serde_json::to_string(night).unwrap();
    assert_eq!(text(&nights[0]), text(&first));
    // An editor may have put a byte-order mark before a file.
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&file, format!("\u{feff}{}", std::fs::read_to_string(&file).unwrap())).unwrap();
    assert_eq!(read(folder.path()).unwrap().len(), 2);
    std::fs::write(folder.path().join("x.json"), "{}").unwrap();
    assert!(read(folder.path()).unwrap_err().to_string().contains("x.json is not a night"));
    assert!(read(&folder.path().join("none")).unwrap().is_empty());
}
