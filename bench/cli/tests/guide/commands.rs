//! Every command line of README.md and the guide is run, on small cells that have the names of the real ones, or is
//! listed with the reason why it is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use records::RunRecord;

use crate::document::words;
use crate::program::{BENCH, TINY, text};
use crate::{documents, tiny};

/// Beginnings of the command lines that are not run here.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo test ", "runs all tests, this one too"),
    ("cargo run --manifest-path examples/outside", "run by ci/check.sh"),
    ("cp Cargo.lock examples/outside/", "run by ci/check.sh"),
    ("cargo run --features wgpu", "needs a GPU"),
    ("cargo run --features cuda", "needs a GPU"),
    ("pe-bench data fetch", "needs a network"),
    ("pe-bench run quick --open", "opens a browser; run by bench/cli/tests/terminal.rs"),
    ("pe-bench data tokens rust-code", "needs a network, for the corpus"),
    ("pe-bench nightly ", "judges times; run by bench/cli/tests/nightly.rs"),
    ("python3 doc/data.py", "needs Python's duckdb"),
    ("PE_BENCH=pe-bench python -m pytest ", "needs PyTorch; run by bench/python/tests"),
    ("pe-bench cluster slurm ", "needs Slurm"),
    ("parallel ", "needs GNU parallel"),
    ("hq ", "needs HyperQueue"),
    ("pe-bench status results/contextual --watch", "runs until all cells are settled"),
    ("pe-bench run big.toml --backend cuda", "needs GPUs"),
    ("pe-bench inspect tape-table-8", "hours; its options are run by bench/cli/tests/inspect.rs"),
    ("pe-bench inspect cope-table-8", "hours; its options are run by bench/cli/tests/inspect.rs"),
    ("pe-bench extend MODEL", "names a model of the reader"),
    ("pe-bench benchmark models/NAME", "names a model of the reader"),
    ("pe-bench run zoo --encodings mine", "names an encoding of the reader"),
    (
        "pe-bench run quick --encodings rope,alibi,log-bias",
        "has an encoding that the reader writes",
    ),
];

/// Words that take long, and the ones that are run instead.
const SMALLER: &[(&str, &str)] =
    &[("8192,16384", "64,128"), ("200", "2"), ("5000", "50"), ("smollm2", "./smollm2")];

/// Arguments that are added to commands that begin so: small sizes, and a text that needs no network.
const ADDED: &[(&str, &[&str])] = &[
    (
        "speed --encodings",
        &[
            "--steps", "2", "--batch", "2", "--len", "16", "--dim", "16", "--heads", "2",
            "--layers", "1",
        ],
    ),
    ("speed --suite", &["--steps", "2"]),
    ("generate smollm2 --speed", &["--prefill", "16", "--decode", "4", "--rounds", "1"]),
    ("extend", &["--tasks", "text", "--data", "text.txt", "--samples", "2"]),
    ("stability --pretrained", &["--data", "text.txt", "--len", "32", "--samples", "2"]),
];

/// A folder with a small suite for each name of a suite in the documents, their results, and a small pretrained model.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        let path = |name: &str| place.folder.path().join(name);
        let suite = TINY
            .replace("[\"alibi\", \"nope\"]", "[\"rope\", \"cope\"]")
            .replace("lens = [8, 16]", "lens = [12, 128]")
            .replace("len = 8", "len = 12")
            + "[[workload]]\nname = \"counting\"\ntask = \"counting\"\n";
        for name in ["quick", "contextual", "ablation-cope", "nightly", "mine", "zoo"] {
            let mut suite = suite.replace("name = \"tiny\"", &format!("name = \"{name}\""));
            if name == "quick" {
                // For `rope/nope`.
                suite = suite.replace("layers = 1", "layers = 2");
            }
            if name == "mine" {
                suite = suite.replace(
                    "[eval]",
                    "micro_batch_size = 2\nvalidation = { every_steps = 2, samples = 4 }\n[eval]",
                );
            }
            fs::write(path(&format!("{name}.toml")), suite).unwrap();
        }
        let scores = "encoding,task,train_len,seed,split,len,score\nmine,sorting,64,0,longer,128,0.6\n\
                      rope,sorting,64,0,longer,128,0.2\n";
        fs::write(path("scores.csv"), scores).unwrap();
        let line = "Question: the ferry left at nine with 1234567890 passengers?\nAnswer: z.\n";
        fs::write(path("text.txt"), line.repeat(1000)).unwrap();
        let language = TINY
            .replace("\"tiny\"", "\"language\"")
            .replace("[\"alibi\", \"nope\"]", "[\"rope\", \"tape\"]")
            .replace("seeds = [0, 1]", "seeds = [0]")
            .replace("name = \"flip-flop\"", "name = \"shakespeare\"")
            .replace("\"flip-flop\"", "{ kind = \"text\", path = \"text.txt\" }");
        fs::write(path("language.toml"), language).unwrap();
        fs::create_dir(path("smollm2")).unwrap();
        tiny::copy_to(&path("smollm2"), &tiny::numbered(tiny::WORDS));
        let item = r#"{"question": "w3 w9", "choices": ["w4", "w7"], "answer": 0}"#;
        fs::write(path("questions.jsonl"), item).unwrap();
        for suite in ["quick", "contextual", "language", "zoo"] {
            place.run(&["run", &format!("{suite}.toml")]);
        }
        place.run(&["run", "nightly.toml", "--out", "results/nights/baseline"]);
        place.run(&["run", "contextual.toml", "--shard", "2/8", "--out", "results/part-2"]);
        place
    }

    fn run(&self, arguments: &[&str]) {
        let cache = self.folder.path().join("cache");
        let output = Command::new(BENCH)
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PE_ZOO_CACHE", cache)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    }

    /// A record of a small suite.
    fn record(&self, suite: &str, encoding: &str) -> RunRecord {
        let records =
            analysis::folder::read_dir(&self.folder.path().join("results").join(suite)).unwrap();
        records.into_iter().find(|record| record.encoding.id == encoding).unwrap()
    }

    /// Arguments of a command of the documents for this folder.
    fn here(&self, arguments: &[String]) -> Vec<String> {
        let line = arguments.join(" ");
        let command = arguments[0].as_str();
        let dry = arguments.iter().any(|word| word == "--dry-run");
        let mut here = Vec::new();
        for (index, word) in arguments.iter().enumerate() {
            let suite = index == 1 && self.folder.path().join(format!("{word}.toml")).exists();
            if suite && !dry && ["run", "inspect", "stability"].contains(&command) {
                here.push(format!("{word}.toml"));
            } else if word == "results/*" {
                let results = fs::read_dir(self.folder.path().join("results")).unwrap();
                let name = |entry: fs::DirEntry| format!("results/{}", entry.file_name().display());
                here.extend(results.map(|entry| name(entry.unwrap())));
            } else if word == "dd59a472" {
                // Texts are generated and extended, any other model is looked into.
                let of_text = ["generate", "extend"].contains(&command);
                let (suite, encoding) =
                    if of_text { ("language", "rope") } else { ("quick", "cope") };
                here.push(self.record(suite, encoding).key);
            } else if Path::new(word).extension().is_some_and(|e| e == "safetensors") {
                let weights = self.record("quick", "cope").weights.unwrap();
                here.push(format!("results/quick/weights/{}", weights.file));
            } else {
                let smaller = SMALLER.iter().find(|(long, _)| long == word);
                here.push(smaller.map_or(word.as_str(), |(_, short)| short).to_owned());
            }
        }
        let added = ADDED.iter().filter(|(beginning, _)| line.starts_with(beginning));
        let added = added.flat_map(|(_, added)| added.iter().map(|word| (*word).to_owned()));
        here.into_iter().chain(added).collect()
    }
}

#[test]
fn commands_run() {
    let place = Place::new();
    let (mut seen, mut listed) = (BTreeSet::new(), BTreeSet::new());
    let mut ran = 0;
    for line in documents().iter().flat_map(|document| document.shell.clone()) {
        if let Some((beginning, _)) = NOT_RUN.iter().find(|(start, _)| line.starts_with(start)) {
            listed.insert(*beginning);
            continue;
        }
        let after = |prefix: &str| line.split_once(prefix).map(|(_, arguments)| arguments);
        let arguments =
            if line.starts_with("cargo run ") { after(" -- ") } else { after("pe-bench ") };
        let Some(arguments) = arguments else { panic!("`{line}` is neither run nor listed") };
        let arguments =
            words(arguments).into_iter().take_while(|word| word != ">").collect::<Vec<_>>();
        if seen.insert(arguments.clone()) {
            let here = place.here(&arguments);
            place.run(&here.iter().map(String::as_str).collect::<Vec<_>>());
            ran += 1;
        }
    }
    assert!(ran > 50, "{ran}");
    assert_eq!(listed.len(), NOT_RUN.len(), "of {NOT_RUN:?} the documents have {listed:?}");
}
