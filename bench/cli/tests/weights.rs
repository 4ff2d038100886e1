//! Tests of kept weights: they are written after a training and replace it in later runs.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use program::{Place, bench, done, files, refused};
use records::{EvalPoint, RunRecord, WeightsAt};
use serde_json::Value;
use sha2::{Digest, Sha256};
use train::run::kept::KeptTraining;

/// Two cells with validations.
const KEPT: &str = r#"
seeds = [0]
encodings = ["cope", "learned-absolute"]
[train]
steps = 10
len = 12
validation = { every_steps = 4, samples = 8 }
[eval]
lens = [12, 20]
"#;

/// The files of weights, without their settings.
fn weights(place: &Place, out: &str) -> Vec<PathBuf> {
    let mut found = files(&Path::new(&place.path(out)).join("weights"));
    found.retain(|path| path.extension().is_some_and(|e| e == "safetensors"));
    found
}

fn hash(path: &Path) -> String {
    records::store::hex(&Sha256::digest(fs::read(path).unwrap()))
}

/// Losses and times of a training: equal only if it is the same training.
fn course(record: &RunRecord) -> Vec<Value> {
    record.train.curve.iter().map(|point| serde_json::to_value(point).unwrap()).collect()
}

#[test]
fn a_cell_without_record_is_evaluated_from_its_weights() {
    let place = Place::new(KEPT);
    let said = place.run("a", &[]);
    let line = said.lines().find(|line| line.starts_with("weights: saved in")).unwrap();
    assert!(line.contains("KiB") && line.contains("--keep-weights none"), "{line}");
    let (records, files) = (place.records("a"), weights(&place, "a"));
    assert_eq!((records.len(), files.len()), (2, 2));
    for record in &records {
        let weights = record.weights.as_ref().unwrap();
        let file = Path::new(&place.path("a")).join("weights").join(&weights.file);
        assert_eq!(
            (hash(&file), weights.at, weights.step),
            (weights.sha256.clone(), WeightsAt::Last, 10)
        );
        assert_eq!(record.evaluated_by, None);
        let kept = KeptTraining::read(&file).unwrap().unwrap();
        assert_eq!((&kept.record.key, course(&kept.record)), (&record.key, course(record)));
        assert!(kept.record.evals.is_empty() && !record.evals.is_empty());
    }
    // As after a kill between the weights and the record.
    fs::create_dir_all(place.path("b")).unwrap();
    copy(&place.path("a"), &place.path("b"), "weights");
    place.run("b", &[]);
    place.assert_equal("a", "b");
    for (before, after) in records.iter().zip(place.records("b")) {
        assert_eq!(course(before), course(&after), "the cell was trained again");
        let program = after.evaluated_by.unwrap();
        assert_eq!(
            (program.versions, program.commit),
            (before.versions.clone(), before.commit.clone())
        );
        assert_eq!(
            (after.started_utc, after.weights),
            (before.started_utc.clone(), before.weights.clone())
        );
    }
    // A forced run trains again, and none keeps nothing.
    place.run("b", &["--force"]);
    place.assert_equal("a", "b");
    assert!(place.records("b").iter().zip(&records).all(|(b, a)| course(b) != course(a)));
    assert!(place.records("b").iter().all(|record| record.evaluated_by.is_none()));
    let said = place.run("c", &["--keep-weights", "none"]);
    assert!(said.contains("weights: not saved"), "{said}");
    assert!(weights(&place, "c").is_empty() && place.records("c")[0].weights.is_none());
    place.assert_equal("a", "c");
}

/// Copies the files of one folder of a results folder to another.
fn copy(from: &str, to: &str, folder: &str) {
    let (from, to) = (Path::new(from).join(folder), Path::new(to).join(folder));
    fs::create_dir_all(&to).unwrap();
    for path in files(&from).into_iter().filter(|path| path.is_file()) {
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn other_lengths_train_again() {
    let place = Place::new(KEPT);
    place.run("a", &[]);
    for lens in ["[12, 20, 30]", "[12]"] {
        place.suite(&KEPT.replace("[12, 20]", lens));
        place.run("a", &[]);
        place.run("b", &[]);
        let records = place.records("b");
        assert_eq!(records.len(), 2);
        for fresh in records {
            let all = place.records("a");
            let kept = all.into_iter().find(|record| record.key == fresh.key).unwrap();
            assert!(kept.evaluated_by.is_none(), "{}: {lens}", fresh.encoding.id);
            let untimed = |record: &RunRecord| {
                let evals = record.evals.iter().cloned();
                evals.map(|eval| EvalPoint { seconds: 0.0, ..eval }).collect::<Vec<_>>()
            };
            assert_eq!(untimed(&kept), untimed(&fresh));
            let losses = |record: &RunRecord| {
                record.train.curve.iter().map(|point| point.loss).collect::<Vec<_>>()
            };
            assert_eq!((losses(&kept), kept.params), (losses(&fresh), fresh.params));
            // The weights have the name that the record gives.
            let (file, sha256) =
                kept.weights.map(|weights| (weights.file, weights.sha256)).unwrap();
            let path = Path::new(&place.path("a")).join("weights").join(&file);
            assert_eq!((hash(&path), file), (sha256, fresh.weights.unwrap().file));
        }
        fs::remove_dir_all(place.path("b")).unwrap();
    }
}

#[test]
fn another_evaluation_takes_the_weights_and_gives_what_a_training_gives() {
    let place = Place::new(KEPT);
    place.run("a", &[]);
    place.suite(&format!("{KEPT}samples = 9\nsplits = [\"sparse\"]"));
    place.run("a", &[]);
    place.run("b", &["--keep-weights", "none"]);
    let records = place.records("a");
    assert_eq!((records.len(), weights(&place, "a").len()), (4, 2));
    let reused = records.iter().filter(|record| record.evaluated_by.is_some()).collect::<Vec<_>>();
    assert_eq!(reused.len(), 2);
    for record in &reused {
        let same = |other: &&RunRecord| other.key != record.key && course(other) == course(record);
        assert_eq!(records.iter().filter(same).count(), 1);
        assert!(record.evals.iter().all(|point| point.split == "sparse" && point.samples == 9));
        let mut alone = (*record).clone();
        alone.evaluated_by = None;
        alone.write(Path::new(&place.path("c"))).unwrap();
    }
    place.assert_equal("b", "c");
}

#[test]
fn damaged_weights_are_not_believed() {
    let place = Place::new(KEPT);
    place.run("a", &[]);
    let files = weights(&place, "a");
    let before = files.iter().map(|file| hash(file)).collect::<Vec<_>>();
    let mut bytes = fs::read(&files[0]).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&files[0], bytes).unwrap();
    fs::write(files[1].with_extension("json"), "{}").unwrap();
    refused(
        &["inspect", files[0].to_str().unwrap()],
        "is damaged: its checksum differs from the one in",
    );
    refused(&["inspect", files[1].to_str().unwrap()], "or run its cell again with --force");
    fs::remove_dir_all(Path::new(&place.path("a")).join("cells")).unwrap();
    let said = place.run("a", &[]);
    assert_eq!(said.matches("the cell is trained again").count(), 2, "{said}");
    assert_eq!(files.iter().map(|file| hash(file)).collect::<Vec<_>>(), before);
    assert!(place.records("a").iter().all(|record| record.evaluated_by.is_none()));
    // Without settings there are no weights.
    fs::remove_file(files[0].with_extension("json")).unwrap();
    refused(&["inspect", files[0].to_str().unwrap()], "the training has not finished");
}

#[test]
fn the_weights_of_the_best_validation_are_kept_beside_the_last() {
    let place = Place::new(KEPT);
    place.run("a", &["--keep-weights", "best"]);
    assert_eq!(weights(&place, "a").len(), 4);
    for record in place.records("a") {
        let last = record.weights.clone().unwrap();
        let best = last.file.replace(".safetensors", "-best.safetensors");
        let best = Path::new(&place.path("a")).join("weights").join(best);
        let kept = KeptTraining::read(&best).unwrap().unwrap();
        let least = record.train.validations.iter().min_by(|a, b| a.nll.total_cmp(&b.nll)).unwrap();
        let weights = kept.record.weights.clone().unwrap();
        assert_eq!((weights.at, weights.step), (WeightsAt::Best, least.step));
        assert_eq!(course(&kept.record), course(&record), "its settings have the whole training");
        assert_eq!(weights.sha256 == last.sha256, least.step == 10);
    }
    let suite = format!("{KEPT}weights = \"best\"");
    place.suite(&suite);
    let said = place.run("a", &[]);
    assert!(said.contains("the best weights are evaluated"), "{said}");
    place.run("b", &[]);
    let at = |record: &RunRecord| record.weights.as_ref().map(|weights| weights.at);
    let best = place.records("a").into_iter().filter(|record| at(record) == Some(WeightsAt::Best));
    let best = best.collect::<Vec<_>>();
    assert_eq!((best.len(), place.records("b").len()), (2, 2));
    for record in best {
        record.write(Path::new(&place.path("c"))).unwrap();
    }
    place.assert_equal("b", "c");
    place.refused("d", &["--keep-weights", "last"], "evaluates the weights of the best");
    place.suite(&suite.replace("every_steps = 4, ", ""));
    place.refused("d", &["--keep-weights", "best"], "train.validation.every_steps");
}

#[test]
fn a_kill_between_weights_and_record_costs_no_training() {
    let place = Place::new(KEPT);
    place.suite(&format!("{}samples = 40000", KEPT.replace(", \"learned-absolute\"", "")));
    let mut sweep = place.command("a", &["--quiet"]);
    let mut sweep = sweep.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let settings = loop {
        assert!(begun.elapsed() < Duration::from_mins(2), "no weights were written");
        if let [file] = &weights(&place, "a")[..]
            && file.with_extension("json").exists()
        {
            break file.with_extension("json");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    assert!(place.records("a").is_empty(), "the evaluation was too fast to be disturbed");
    let trained = RunRecord::read(&settings).unwrap();
    let said = place.run("a", &["--json"]);
    let trained_steps = said.lines().filter(|line| line.contains("\"phase\":\"train\"")).count();
    let record = place.records("a").remove(0);
    assert_eq!((course(&record), trained_steps), (course(&trained), 0), "{said}");
    assert!(!Path::new(&place.path("a")).join("checkpoints").exists());
}

#[test]
fn eval_evaluates_elsewhere_what_was_trained_once() {
    let place = Place::new(KEPT);
    place.suite(&format!("{KEPT}[report]\nsolved_exact_match = 0.75\n"));
    place.run("a", &[]);
    let (a, before) = (place.path("a"), place.records("a"));
    let said = done(&["eval", &a, "--lens", "12,40", "--samples", "9", "--splits", "sparse"]);
    assert!(said.contains("Report:"), "{said}");
    let stored = fs::read(place.path("a-eval/report.json")).unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(stored["settings"]["solved_exact_match"], 0.75, "the criteria of the suite");
    let records = place.records("a-eval");
    assert_eq!(records.len(), 2);
    for record in &records {
        let trained = before.iter().find(|other| other.encoding.id == record.encoding.id).unwrap();
        assert_eq!(course(record), course(trained));
        assert_eq!(record.evaluated_by.as_ref().unwrap().versions, trained.versions);
        assert_eq!(record.weights, trained.weights);
        assert_eq!(record.config["eval"]["trained_for"], 19);
        assert!(record.evals.iter().all(|e| e.split == "sparse" && e.samples == 9));
        let lens = record.evals.iter().map(|e| e.len).collect::<Vec<_>>();
        // A table has no rows beyond those that were trained.
        let refused = record.skipped_evals.iter().map(|e| e.len).collect::<Vec<_>>();
        match record.encoding.id.as_str() {
            "cope" => assert_eq!((lens, refused), (vec![12, 40], vec![])),
            _ => assert_eq!((lens, refused), (vec![12], vec![40])),
        }
    }
    let again = done(&["eval", &a, "--lens", "12,40", "--samples", "9", "--splits", "sparse"]);
    assert!(again.contains("2 cells, 2 of them with a record"), "{again}");
    // Without changes the records are those of the training.
    let out = place.path("same");
    done(&["eval", &a, "--out", &out]);
    place.assert_equal("a", "same");
    refused(&["eval", &a, "--best"], "has no weights of these cells");
    refused(&["eval", &a, "--lens", "5000000000"], "flip-flop");
    refused(&["eval", &a, "--keep-weights", "last"], "`eval` trains nothing");
    refused(&["eval", &place.path("none")], "there is no such folder");
    fs::remove_dir_all(Path::new(&a).join("weights")).unwrap();
    refused(&["eval", &a, "--encodings", "cope"], "keep-weights last`");
}

const TEXT: &str = r#"
seeds = [0]
encodings = ["rope", "alibi"]
[train]
steps = 30
len = 16
[eval]
samples = 4
lens = [16]
[[workload]]
name = "text"
task = { kind = "text", path = "text.txt" }
"#;

#[test]
fn kept_weights_are_a_model_for_every_command_that_takes_one() {
    let place = Place::new(KEPT);
    let words = "Question: the ferry left at nine with 1234567890 passengers, two dogs and a piano?\nAnswer: z.\n";
    place.write("text.txt", &words.repeat(60));
    place.suite(&TEXT.replace("text.txt", &place.path("text.txt")));
    place.run("a", &[]);
    let out = place.path("a");
    let file = |encoding: &str| {
        let records = place.records("a");
        let record = records.iter().find(|r| r.encoding.id == encoding).unwrap();
        let file = &record.weights.as_ref().unwrap().file;
        Path::new(&out).join("weights").join(file).display().to_string()
    };
    let (rope, alibi) = (file("rope"), file("alibi"));
    let made = done(&["generate", &rope, "--prompt", "the ferry", "--tokens", "12"]);
    assert!(made.contains("9 prompt tokens") && made.contains("12 generated tokens"), "{made}");
    let again = bench(&["generate", &rope, "--prompt", "the ferry", "--tokens", "12"]);
    assert_eq!(
        again.stdout,
        bench(&["generate", &rope, "--prompt", "the ferry", "--tokens", "12"]).stdout
    );
    refused(&["generate", &rope, "--prompt", "ÿ"], "ÿ");
    place.write(
        "items.jsonl",
        r#"{"question": "the ferry", "choices": ["left", "zzzz"], "answer": 0}"#,
    );
    let items = place.path("items.jsonl");
    let scored = done(&["benchmark", &alibi, &items]);
    assert!(scored.contains("\"encoding\":\"alibi\"") && scored.contains("accuracy"), "{scored}");
    let text = place.path("text.txt");
    let extended = place.path("extended");
    let common = [
        "--data",
        &text,
        "--lens",
        "16,48",
        "--tasks",
        "text",
        "--samples",
        "2",
        "--out",
        &extended,
    ];
    done(&[&["extend", &rope, "--methods", "as-trained,linear"], &common[..]].concat());
    let names =
        place.records("extended").iter().map(|r| r.encoding.name.clone()).collect::<Vec<_>>();
    assert!(names.contains(&"linear x3".to_owned()) && names.len() == 2, "{names:?}");
    let tuned = ["extend", &alibi, "--tune", "lora", "--steps", "2"];
    done(&[&tuned[..], &common[..]].concat());
    assert_eq!(place.records("extended").len(), 3);
    refused(
        &[&["extend", &alibi, "--methods", "linear"], &common[..]].concat(),
        "trained with `alibi`",
    );
    refused(&["generate", "0123456789abcdef", "--prompt", "a"], "no record");
    let shifted = done(&["stability", &rope, "--samples", "2"]);
    assert!(shifted.contains("rope on text"), "{shifted}");
    place.write("stability.json", &done(&["stability", &rope, "--samples", "2", "--json"]));
    let beside = done(&["reproduce", "--stability", &place.path("stability.json")]);
    let lines = beside.lines().filter(|line| line.contains("ours")).collect::<Vec<_>>();
    // The model has one layer: attention and products of two shifts.
    assert_eq!(lines.len(), 4, "{beside}");
    assert!(lines[0].contains("rope  (a) 1  8.93 1e-2  ours "), "{beside}");
    assert!(lines[3].contains("rope  (b) 1  0.03%  ours 0.00, n=1"), "{beside}");
    // A task without text has symbols between blanks.
    place.suite(KEPT);
    place.run("b", &[]);
    let symbols = weights(&place, "b").remove(0).display().to_string();
    let made = done(&["generate", &symbols, "--prompt", "w 0 i 1 r", "--tokens", "1"]);
    assert!(made.contains("5 prompt tokens"), "{made}");
    refused(
        &["generate", &symbols, "--prompt", "w 7"],
        "`7` is not a symbol of flip-flop, expected one of:",
    );
}

/// Cells that differ only in their evaluation, which needs the weights of the best validation.
fn evaluated_in_four_ways() -> Place {
    let workloads = [6, 7, 8, 9].map(|samples| {
        format!(
            "[[workload]]\nname = \"w{samples}\"\ntask = \"flip-flop\"\n\
             [workload.eval]\nsamples = {samples}\nweights = \"best\"\n"
        )
    });
    let settings = KEPT.replace("steps = 10", "steps = 60").replace(", \"learned-absolute\"", "");
    Place::new(&format!("{settings}{}", workloads.concat()))
}

#[test]
fn cells_with_one_training_train_it_once_also_in_parallel_processes() {
    let place = evaluated_in_four_ways();
    let sweeps = [(); 2].map(|()| {
        let mut sweep = place.command("a", &["--jobs", "2", "--json"]);
        sweep.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for sweep in sweeps {
        let output = sweep.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", program::text(&output));
        assert!(!program::text(&output).contains("not saved"), "{}", program::text(&output));
    }
    let records = place.records("a");
    let trained = records.iter().filter(|record| record.evaluated_by.is_none()).count();
    assert_eq!((records.len(), trained), (4, 1));
    for record in &records {
        assert_eq!(record.weights.as_ref().unwrap().at, WeightsAt::Best);
        assert_eq!(course(record), course(&records[0]));
    }
}
