//! Tunings of `pe-bench extend`, their weights and folders; reports of several methods.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use records::{RunRecord, Status};
use serde_json::json;

use super::{copy_to, extend, records, tiny};

/// A folder with the model, a text and room for results.
struct Tuned {
    folder: tempfile::TempDir,
}

impl Tuned {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("model")).unwrap();
        copy_to(&folder.path().join("model"));
        let text = "the tale is told in the rain. ".repeat(200);
        fs::write(folder.path().join("text.txt"), text).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn extend(&self, model: &str, out: &str, arguments: &[&str]) -> String {
        let data = self.path("text.txt");
        // The text has no effect on tasks and tunings of items.
        let reads_text = !arguments.contains(&"outputs") || !arguments.contains(&"--tune-data");
        let text: &[&str] = if reads_text { &["--data", &data] } else { &[] };
        let arguments = [text, arguments].concat();
        let (done, said) =
            extend(Path::new(&self.path(model)), Path::new(&self.path(out)), &arguments);
        assert!(done, "{said}");
        said
    }

    fn records(&self, out: &str) -> Vec<RunRecord> {
        records(Path::new(&self.path(out)))
    }

    /// The record of an encoding and task.
    fn record(&self, out: &str, name: &str, task: &str) -> RunRecord {
        let all = self.records(out);
        let found = all.iter().find(|r| r.encoding.name == name && r.task.id == task);
        let names = all.iter().map(|r| &r.encoding.name).collect::<Vec<_>>();
        found.unwrap_or_else(|| panic!("{name} {task}: {names:?}")).clone()
    }
}

/// The fixture's rotation is scaled by YaRN, as Llama 3.1's is by its own rule: methods act on the scaled frequencies.
#[test]
fn scalings_and_cope_stand_side_by_side_in_one_report() {
    let place = Tuned::new();
    let said = place.extend(
        "model",
        "out",
        &[
            "--tasks",
            "text",
            "--methods",
            "as-trained,linear,ntk,dynamic,yarn",
            "--encodings",
            "cope{max_positions=16}+rope{base=500.0}",
        ],
    );
    let names =
        ["as trained", "linear x2", "NTK x2", "dynamic NTK", "YaRN x2", "cope{max_positions=16}"];
    let report = fs::read_to_string(place.path("out/report.md")).unwrap();
    for name in names {
        assert!(said.contains(name) && report.contains(name), "{name}: {said}");
    }
    let all = place.records("out");
    assert_eq!(all.len(), 6);
    let nll = |name: &str| place.record("out", name, "text").evals.iter().map(|p| p.nll).collect();
    let (own, linear): (Vec<f64>, Vec<f64>) = (nll("as trained"), nll("linear x2"));
    assert!(own.iter().zip(&linear).all(|(a, b)| (a - b).abs() > 1e-4), "{own:?} {linear:?}");
    // Within the trained length, dynamic scaling changes nothing.
    let dynamic: Vec<f64> = nll("dynamic NTK");
    assert!((own[0] - dynamic[0]).abs() < 1e-6 && (own[1] - dynamic[1]).abs() > 1e-4);
}

#[test]
fn theta_lora_longlora_and_tape_are_tuned_in_one_command_and_once_for_all_tasks() {
    let place = Tuned::new();
    let items = place.path("items.jsonl");
    fs::write(&items, r#"{"input": "the tale is told", "output": "in the rain"}"#).unwrap();
    let arguments = [
        "--tasks",
        "text,outputs",
        "--items",
        &items,
        "--methods",
        "theta",
        "--encodings",
        "tape{base=500.0,training_shift={type=none}}(yarn{factor=4.0,original_max_position_embeddings=8})",
        "--tune",
        "none,lora,long-lora",
        "--steps",
        "4",
        "--train-len",
        "32",
        "--batch",
        "4",
    ];
    // TAPE acts on more than queries and keys, so that it has no shifted groups.
    let data = place.path("text.txt");
    let model = place.path("model");
    let (done, said) = extend(
        Path::new(&model),
        Path::new(&place.path("out")),
        &[&["--data", &data], &arguments[..]].concat(),
    );
    assert!(!done && said.contains("acts on more than queries and keys"), "{said}");
    let lora = [&arguments[..9], &["none,lora,all"], &arguments[10..]].concat();
    place.extend("model", "out", &lora);
    place.extend(
        "model",
        "out",
        &[&arguments[..6], &["--tune", "long-lora"], &arguments[10..]].concat(),
    );
    let all = place.records("out");
    assert_eq!(all.len(), 2 * 2 * 3 + 2);
    for record in &all {
        assert_eq!(record.status, Status::Done, "{}", record.encoding.name);
        let other = if record.task.id == "text" { "input-output" } else { "text" };
        let other = place.record("out", &record.encoding.name, other);
        let weights = |r: &RunRecord| r.weights.as_ref().map(|weights| weights.sha256.clone());
        assert_eq!(weights(record), weights(&other));
        assert_eq!(record.train.curve, other.train.curve);
        assert_eq!(record.train.steps, if record.encoding.name.contains("tuned") { 4 } else { 0 });
    }
    // One cell of each pair was trained, the other evaluated its weights.
    let evaluated = all.iter().filter(|record| record.evaluated_by.is_some()).count();
    assert_eq!(evaluated, 5);
}

#[test]
fn micro_batches_and_recomputation_change_no_tuning() {
    let place = Tuned::new();
    let tune = |out: &str, more: &[&str]| {
        let arguments = [
            "--tasks",
            "text",
            "--methods",
            "as-trained",
            "--tune",
            "all",
            "--steps",
            "6",
            "--train-len",
            "32",
            "--batch",
            "4",
        ];
        place.extend("model", out, &[&arguments[..], more].concat());
        place.records(out).remove(0).evals[0].nll
    };
    let whole = tune("whole", &[]);
    let recomputed = tune("recomputed", &["--gradient-checkpointing"]);
    assert_eq!(whole.to_bits(), recomputed.to_bits());
    let parts = tune("parts", &["--micro-batch", "2"]);
    assert!((whole - parts).abs() < 1e-4, "{whole} {parts}");
    let (done, said) = extend(
        Path::new(&place.path("model")),
        Path::new(&place.path("none")),
        &[
            "--data",
            &place.path("text.txt"),
            "--tasks",
            "text",
            "--tune",
            "all",
            "--batch",
            "2",
            "--micro-batch",
            "3",
        ],
    );
    assert!(!done && said.contains("train.micro_batch_size is 3, expected 1 to 2"), "{said}");
}

#[test]
fn tuned_models_are_folders_that_load_again() {
    let place = Tuned::new();
    let models = place.path("models");
    let tune = |encodings: &[&str]| {
        let arguments = [
            "--tasks",
            "text",
            "--tune",
            "all",
            "--steps",
            "4",
            "--train-len",
            "32",
            "--batch",
            "4",
            "--learning-rate",
            "1e-2",
            "--export",
            &models,
        ];
        place.extend("model", "out", &[encodings, &arguments[..]].concat());
    };
    tune(&["--methods", "as-trained"]);
    tune(&["--encodings", "cope{max_positions=16}+rope{base=500.0}"]);
    let folders = fs::read_dir(&models).unwrap().map(|entry| entry.unwrap().path());
    let mut folders = folders.collect::<Vec<_>>();
    folders.sort();
    assert_eq!(folders.len(), 2);
    for (folder, name, kind) in [
        (&folders[0], "as trained, tuned (all)", "llama"),
        (&folders[1], "cope{max_positions=16}+rope{base=500.0}, tuned (all)", "pe-zoo-llama"),
    ] {
        let config: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(folder.join("config.json")).unwrap()).unwrap();
        assert_eq!(config["model_type"], kind);
        let out = format!("again-{kind}");
        let again = Path::new(&folder).strip_prefix(place.folder.path()).unwrap();
        place.extend(
            again.to_str().unwrap(),
            &out,
            &["--tasks", "text", "--methods", "as-trained"],
        );
        let nll = |record: RunRecord| record.evals.iter().map(|p| p.nll).collect::<Vec<_>>();
        let (tuned, again) =
            (nll(place.record("out", name, "text")), nll(place.records(&out).remove(0)));
        assert!(tuned.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-6), "{tuned:?} {again:?}");
    }
    // Weights of the encoding belong to the encoding that the settings name.
    let config = folders[1].join("config.json");
    let text = fs::read_to_string(&config).unwrap().replace("max_positions=16", "max_positions=8");
    fs::write(&config, text).unwrap();
    let said = tiny::open(&folders[1]).unwrap_err().to_string();
    assert!(said.contains("encoding.") && said.contains("expected"), "{said}");
}

/// All answers are one letter, which a short tuning learns; the benchmark then scores the tuned folder.
#[test]
fn inputs_and_outputs_are_tuned_on_and_scored() {
    let place = Tuned::new();
    let items = place.path("items.jsonl");
    let lines = ["a tie", "no rain", "the hat", "a line"]
        .map(|input| json!({ "input": input, "output": "t" }).to_string());
    fs::write(&items, lines.join("\n")).unwrap();
    let models = place.path("models");
    place.extend(
        "model",
        "out",
        &[
            "--tasks",
            "outputs",
            "--items",
            &items,
            "--methods",
            "as-trained",
            "--tune",
            "none,all",
            "--tune-data",
            &items,
            "--steps",
            "60",
            "--train-len",
            "32",
            "--batch",
            "4",
            "--learning-rate",
            "1e-2",
            "--export",
            &models,
        ],
    );
    let nll = |name: &str| place.record("out", name, "input-output").evals[0].nll;
    assert!(nll("as trained, tuned (all)") < 0.1, "{}", nll("as trained, tuned (all)"));
    assert!(nll("as trained") > 1.0);
    let folder = fs::read_dir(&models).unwrap().next().unwrap().unwrap().path();
    let output = Command::new(env!("CARGO_BIN_EXE_pe-bench"))
        .arg("benchmark")
        .arg(folder)
        .args([&*items, "--tokens", "4"])
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(
        (&said["written"]["items"], &said["written"]["exact_match"]),
        (&json!(4), &json!(1.0))
    );
    assert_eq!(said["written"]["exact_match_standard_error"], json!(0.0));
}

fn program(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pe-bench")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Weights in a results folder.
fn weights(out: &str) -> PathBuf {
    let files = fs::read_dir(Path::new(out).join("weights")).unwrap();
    let mut files = files.map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|e| e == "safetensors")).unwrap()
}

/// Trains a model of characters with these settings by `run` and returns the path of its weights within the folder.
fn trained(place: &Tuned, model: &str) -> String {
    let (suite, own) = (place.path("own.toml"), place.path("own"));
    let text = format!(
        "name = \"own\"\ntitle = \"Own\"\nabout = \"For tests.\"\nseeds = [0]\nencodings = [\"rope\"]\n\
         [model]\nlayers = 1\nwidth = 16\nheads = 2\n{model}\n\
         [train]\nsteps = 4\nbatch_size = 2\nlen = 32\n[eval]\nlens = [32]\nsamples = 2\n\
         [[workload]]\nname = \"text\"\n\
         task = {{ kind = \"text\", path = {:?}, tokenizer = \"chars\" }}\n",
        place.path("text.txt")
    );
    fs::write(&suite, text).unwrap();
    let (done, said) = program(&["run", &suite, "--out", &own]);
    assert!(done, "{said}");
    weights(&own).strip_prefix(place.folder.path()).unwrap().to_str().unwrap().to_owned()
}

const TUNE_ONCE: [&str; 10] = [
    "--tasks",
    "text",
    "--methods",
    "as-trained",
    "--tune",
    "all",
    "--steps",
    "2",
    "--train-len",
    "32",
];

/// A model of characters that `run` trained: its tuning is exported with a tokenizer, and a benchmark reads the folder. The
/// weights that the tuning keeps are refused with the command that makes a model of them.
#[test]
fn what_run_trained_is_tuned_exported_and_scored() {
    let place = Tuned::new();
    let model = trained(&place, "norm = \"rms-norm\"\nactivation = \"swi-glu\"\nbias = false");
    place.extend(&model, "out", &TUNE_ONCE);
    let (items, models) = (place.path("items.jsonl"), place.path("models"));
    fs::write(&items, r#"{"input": "the tale ", "output": "is told"}"#).unwrap();
    let tuned = weights(&place.path("out")).display().to_string();
    let (done, said) = program(&["benchmark", &tuned, &items, "--tokens", "2"]);
    assert!(!done && said.contains("--export DIR"), "{said}");
    let said = place.extend(&model, "out", &[&TUNE_ONCE[..], &["--export", &models]].concat());
    assert!(said.contains(": has a record from an earlier run"), "{said}");
    let folder = fs::read_dir(&models).unwrap().next().unwrap().unwrap().path();
    let (done, said) =
        program(&["benchmark", &folder.display().to_string(), &items, "--tokens", "2"]);
    assert!(done && said.contains("\"items\":1"), "{said}");

    // Under each scaling and under an encoding with a table for the longest sequence, too.
    let of_scalings = "--tasks text --methods linear,dynamic,yarn --factors 2 --encodings learned-absolute --tune all \
                       --steps 2 --train-len 32 --export";
    let scaled = place.path("scaled");
    let arguments = of_scalings.split(' ').chain([&*scaled]).collect::<Vec<_>>();
    place.extend(&model, "out", &arguments);
    let folders = fs::read_dir(&scaled).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.map(|folder| folder.display().to_string()).collect::<Vec<_>>();
    assert_eq!(folders.len(), 4, "{folders:?}");
    for folder in folders {
        let (done, said) = program(&["benchmark", &folder, &items, "--tokens", "2"]);
        assert!(done && said.contains("\"items\":1"), "{folder}: {said}");
    }
}

#[test]
fn what_cannot_be_exported_is_refused_before_the_tuning() {
    let place = Tuned::new();
    let model = trained(&place, "norm = \"layer-norm\"");
    let (data, models) = (place.path("text.txt"), place.path("models"));
    let arguments = [&["--data", &data], &TUNE_ONCE[..], &["--export", &models]].concat();
    let out = place.path("out");
    let (done, said) = extend(Path::new(&place.path(&model)), Path::new(&out), &arguments);
    assert!(!done && said.contains("cannot be written as a folder for transformers"), "{said}");
    assert!(!Path::new(&out).exists(), "something was tuned: {said}");
    // A folder that cannot be made.
    let within = format!("{data}/models");
    let arguments = [&["--data", &data], &TUNE_ONCE[..], &["--export", &within]].concat();
    let (done, said) = extend(Path::new(&place.path("model")), Path::new(&out), &arguments);
    assert!(!done && said.contains("--export: cannot create"), "{said}");
    assert!(!Path::new(&out).exists(), "something was tuned: {said}");
    // A folder with other files.
    place.extend("model", "first", &[&TUNE_ONCE[..], &["--export", &models]].concat());
    let folder = fs::read_dir(&models).unwrap().next().unwrap().unwrap().path();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let arguments = [&["--data", &data], &TUNE_ONCE[..], &["--export", &models]].concat();
    let (done, said) = extend(Path::new(&place.path("model")), Path::new(&out), &arguments);
    assert!(!done && said.contains("--export: ") && said.contains("did not export"), "{said}");
    assert!(!Path::new(&out).exists(), "something was tuned: {said}");
}

#[test]
fn items_fill_shifted_groups_and_force_tunes_once_for_all_tasks() {
    let place = Tuned::new();
    let items = place.path("items.jsonl");
    let lines = ["a tie", "no rain at all", "the hat"]
        .map(|input| json!({ "input": input, "output": "t" }).to_string());
    fs::write(&items, lines.join("\n")).unwrap();
    let arguments = [
        "--tasks",
        "text,outputs",
        "--items",
        &items,
        "--methods",
        "as-trained",
        "--tune",
        "long-lora",
        "--tune-data",
        &items,
        "--steps",
        "2",
        "--train-len",
        "32",
        "--batch",
        "2",
        "--force",
    ];
    for _ in 0..2 {
        place.extend("model", "out", &arguments);
        let records = place.records("out");
        assert!(records.iter().all(|record| record.status == Status::Done));
        let evaluated = records.iter().filter(|record| record.evaluated_by.is_some()).count();
        assert_eq!((records.len(), evaluated), (2, 1));
    }
}

/// Windows of text have one token more than outputs of the same length; the table of positions is that of both.
#[test]
fn tasks_of_other_lengths_share_one_tuning() {
    let place = Tuned::new();
    let items = place.path("items.jsonl");
    fs::write(&items, r#"{"input": "the tale is told", "output": "in the rain"}"#).unwrap();
    let arguments = ["--tasks", "text,outputs", "--items", &items];
    let tuned = ["--encodings", "learned-absolute", "--tune", "encoding", "--steps", "2"];
    place.extend("model", "out", &[&arguments[..], &tuned, &["--train-len", "32"]].concat());
    let records = place.records("out");
    assert_eq!(records.len(), 2);
    let reasons = records.iter().map(|record| record.status.reason()).collect::<Vec<_>>();
    assert!(records.iter().all(|record| record.status == Status::Done), "{reasons:?}");
}

#[test]
fn a_text_too_short_for_a_length_is_told() {
    let place = Tuned::new();
    let (data, out) = (place.path("text.txt"), place.path("out"));
    let arguments =
        ["--data", &data, "--tasks", "text", "--methods", "as-trained", "--lens", "99999"];
    let (_, said) =
        program(&[&["extend", &place.path("model"), "--out", &out], &arguments[..]].concat());
    assert!(said.contains("length 99999: ") && said.contains("or a longer text"), "{said}");
}
