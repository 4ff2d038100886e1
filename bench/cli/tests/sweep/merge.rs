//! `pe-bench records merge`: folders that were written apart.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::place::{Place, checkpoints, signal, until};
use crate::program::{BENCH, assert_equal, files, text};

fn merge(folders: &[&Path], out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(BENCH);
    command
        .args(["records", "merge"])
        .args(folders)
        .arg("--out")
        .arg(out)
        .args(more)
        .output()
        .unwrap()
}

fn merged(folders: &[&Path], out: &Path) -> Value {
    let output = merge(folders, out, &["--json"]);
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn with_seeds(place: &Place, seeds: &str) {
    let suite = fs::read_to_string(place.suite()).unwrap();
    fs::write(place.suite(), suite.replace("[0]", seeds)).unwrap();
}

#[test]
fn shards_made_apart_are_one_run_with_weights_plan_and_report() {
    let place = Place::new(3);
    with_seeds(&place, "[0, 1, 2, 3]");
    let [whole, a, b, all] = ["whole", "a", "b", "all"].map(|name| place.out(name));
    assert!(place.run(&whole, &["--keep-weights", "last"]).status.success());
    for (out, shard) in [(&a, "1/2"), (&b, "2/2")] {
        let run = place.run(out, &["--shard", shard, "--keep-weights", "last", "--no-report"]);
        assert!(run.status.success(), "{}", text(&run));
    }
    let (in_a, in_b) = (files(&a.join("cells")).len(), files(&b.join("cells")).len());
    let summary = merged(&[&a, &b], &all);
    assert_eq!((&summary["records"], in_a + in_b), (&8.into(), 8));
    assert_eq!(summary["copied"][b.to_str().unwrap()], in_b);
    assert_eq!(summary["weights"], 8);
    assert_equal(&whole, &all);
    for file in files(&a.join("cells")) {
        let there = all.join("cells").join(file.file_name().unwrap());
        assert!(fs::read(file).unwrap() == fs::read(there).unwrap(), "byte for byte");
    }
    let again = merged(&[&a, &b], &all);
    assert_eq!((&again["copied"], &again["equal"]), (&serde_json::json!({}), &8.into()));
    let kept = place.run(&all, &["--json"]);
    assert!(kept.status.success() && text(&kept).contains("\"kept\":8"), "{}", text(&kept));
    let eval = Command::new(BENCH).arg("eval").arg(&all).args(["--lens", "32"]).output().unwrap();
    assert!(eval.status.success(), "the weights are complete: {}", text(&eval));
    let report = fs::read_to_string(all.join("report.md")).unwrap();
    assert!(report.starts_with("# Small\n"), "{report}");
}

#[test]
fn results_come_before_failures_and_what_differs_or_is_damaged_is_told() {
    let place = Place::new(4);
    let [a, b, all] = ["a", "b", "all"].map(|name| place.out(name));
    let late = place.run(&a, &["--cell-seconds", "0.000001", "--no-report", "--quiet"]);
    assert_eq!(late.status.code(), Some(1), "{}", text(&late));
    assert!(place.run(&b, &["--no-report"]).status.success());
    let summary = merged(&[&a, &b], &all);
    assert_eq!(
        (&summary["records"], &summary["copied"][b.to_str().unwrap()]),
        (&2.into(), &2.into())
    );
    assert_equal(&b, &all);

    let mut changed = analysis::folder::read_dir(&b).unwrap().remove(0);
    changed.train.final_loss = Some(0.25);
    changed.write(&b).unwrap();
    fs::write(b.join("cells/0123456789abcdef.json"), "{").unwrap();
    let output = merge(&[&a, &b], &all, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("1 conflict of results"), "{said}");
    assert!(said.contains(&format!("{}.train.final_loss", changed.key)), "{said}");
    assert!(said.contains("0123456789abcdef.json is damaged"), "{said}");
    let kept = analysis::folder::read_dir(&all).unwrap();
    assert!(kept.len() == 2 && kept.iter().all(|record| record.train.final_loss != Some(0.25)));

    for folders in [&[a.as_path(), &place.out("none")][..], &[&place.out("none")]] {
        let refused = merge(folders, &all, &[]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            text(&refused).contains("neither a folder `cells` nor a file records.parquet"),
            "{}",
            text(&refused)
        );
    }
}

#[test]
fn open_cells_resume_from_the_checkpoints_that_got_furthest() {
    let place = Place::new(3_000);
    let [a, b, all] = ["a", "b", "all"].map(|name| place.out(name));
    let more =
        ["--jobs", "1", "--encodings", "rope", "--checkpoint-seconds", "0.05", "--no-report"];
    for out in [&a, &b] {
        let mut sweep = place.start(out, &more);
        until("there is a checkpoint", || !checkpoints(out).is_empty());
        signal("TERM", sweep.id());
        assert_eq!(sweep.wait().unwrap().code(), Some(143));
    }
    let newest = |out: &Path| checkpoints(out).pop().unwrap().file_stem().unwrap().to_owned();
    let summary = merged(&[&a, &b], &all);
    assert_eq!((&summary["records"], &summary["checkpoints"]), (&0.into(), &1.into()));
    assert_eq!(newest(&all), newest(&a).max(newest(&b)));
    let other_way = place.out("other-way");
    merged(&[&b, &a], &other_way);
    assert_eq!(newest(&other_way), newest(&all));
    assert!(files(&all.join("claims")).is_empty());
    let (events, output) = place.events(&all, &more);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(crate::place::named(&events, "resumed").len(), 1);
    let whole = place.out("whole");
    assert!(place.run(&whole, &more).status.success());
    assert_equal(&whole, &all);
}

/// Step of the weights of the best validation so far.
fn best_step(out: &Path) -> u64 {
    let weights = files(&out.join("weights"));
    let settings = weights.iter().find(|path| path.to_str().unwrap().ends_with("-best.json"));
    let record: Value = serde_json::from_slice(&fs::read(settings.unwrap()).unwrap()).unwrap();
    record["weights"]["step"].as_u64().unwrap()
}

#[test]
fn the_best_weights_of_an_open_cell_are_those_of_its_furthest_checkpoint() {
    let place = Place::new(3_000);
    let suite = fs::read_to_string(place.suite()).unwrap();
    let validated = suite.replace(
        "[eval]",
        "validation = { every_steps = 10, samples = 4 }\n[eval]\nweights = \"best\"",
    );
    fs::write(place.suite(), validated).unwrap();
    let [a, b] = ["a", "b"].map(|name| place.out(name));
    let more =
        ["--jobs", "1", "--encodings", "rope", "--checkpoint-seconds", "0.05", "--no-report"];
    for (out, steps) in [(&a, 20), (&b, 1_000)] {
        let mut sweep = place.start(out, &more);
        until("there is a checkpoint", || {
            let newest = checkpoints(out).pop();
            newest.is_some_and(|path| {
                path.file_stem().unwrap().to_str().unwrap().parse::<u64>().unwrap() >= steps
            })
        });
        signal("TERM", sweep.id());
        assert_eq!(sweep.wait().unwrap().code(), Some(143));
    }
    assert!(best_step(&a) < best_step(&b));
    let whole = place.out("whole");
    assert!(place.run(&whole, &more).status.success());
    for (name, folders) in [("ab", [&*a, &*b]), ("ba", [&*b, &*a])] {
        let all = place.out(name);
        merged(&folders, &all);
        assert_eq!(best_step(&all), best_step(&b), "{name}");
        let output = place.run(&all, &more);
        assert!(output.status.success(), "{name}: {}", text(&output));
        assert_equal(&whole, &all);
    }
}

#[test]
fn records_of_a_newer_program_stay_and_damaged_ones_are_set_aside() {
    let place = Place::new(4);
    let [a, all] = ["a", "all"].map(|name| place.out(name));
    assert!(place.run(&a, &["--no-report"]).status.success());
    let [newer, damaged] = files(&a.join("cells")).try_into().unwrap();
    let there = |file: &Path| all.join("cells").join(file.file_name().unwrap());
    fs::create_dir_all(all.join("cells")).unwrap();
    fs::write(there(&newer), "{\"schema\": 99}").unwrap();
    fs::write(there(&damaged), "{").unwrap();
    let output = merge(&[&a], &all, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("record schema 99"), "{}", text(&output));
    assert_eq!(fs::read_to_string(there(&newer)).unwrap(), "{\"schema\": 99}");
    assert!(fs::read(there(&damaged)).unwrap() == fs::read(&damaged).unwrap());
    assert_eq!(fs::read_to_string(there(&damaged).with_extension("json.damaged")).unwrap(), "{");
}

#[test]
fn packing_never_replaces_the_only_copy_of_a_record() {
    let place = Place::new(4);
    let [a, b, kept] = ["a", "b", "kept"].map(|name| place.out(name));
    assert!(place.run(&a, &["--no-report"]).status.success());
    with_seeds(&place, "[1]");
    assert!(place.run(&b, &["--no-report"]).status.success());
    let pack = |from: &Path, more: &[&str]| {
        Command::new(BENCH).args(["records", "pack"]).arg(from).args(more).output().unwrap()
    };
    let out = kept.to_str().unwrap();
    assert!(pack(&a, &["--out", out]).status.success());
    let packed = || fs::read(kept.join("records.parquet")).unwrap();
    let first = packed();
    let refused = pack(&b, &["--out", out]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("2 records that would be lost"), "{}", text(&refused));
    let refused = pack(&kept, &["--lean"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("the only copy"), "{}", text(&refused));
    assert!(first == packed());

    // The same folder by another name keeps its title and criteria.
    fs::write(kept.join("report.json"), fs::read(a.join("report.json")).unwrap()).unwrap();
    let again = format!("{out}/../kept");
    assert!(pack(&kept, &["--out", &again]).status.success());
    assert!(
        fs::read(kept.join("report.json")).unwrap() == fs::read(a.join("report.json")).unwrap()
    );
}
