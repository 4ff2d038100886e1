//! `pe-bench samples` writes what runs train on and what they are evaluated on.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::io::BufRead as _;
use std::path::Path;

use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use pe_zoo::model::ModelConfig;
use polars::prelude::{ParquetReader, SerReader as _};
use program::{done, refused};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::sync::Mutex;
use tasks::{Sample, Split, Task, TaskConfig, TaskError, TaskMeta};
use train::experiment::{Budget, EvalConfig, Experiment, TrainConfig};
use train::run::{self, RunContext, RunHooks};

/// A task that keeps the samples that are drawn from it.
#[derive(Debug)]
struct Recorded {
    task: Box<dyn Task>,
    trained: Mutex<Vec<Sample>>,
    evaluated: Mutex<Vec<Sample>>,
}

impl Task for Recorded {
    fn meta(&self) -> &'static TaskMeta {
        self.task.meta()
    }

    fn vocab_size(&self) -> usize {
        self.task.vocab_size()
    }

    fn token_text(&self, token: u32) -> String {
        self.task.token_text(token)
    }

    fn splits(&self) -> &'static [Split] {
        self.task.splits()
    }

    fn max_tokens(&self, len: usize) -> usize {
        self.task.max_tokens(len)
    }

    fn check_len(&self, len: usize) -> Result<(), TaskError> {
        self.task.check_len(len)
    }

    fn train_sample(&self, len: usize, rng: &mut ChaCha8Rng) -> Sample {
        let sample = self.task.train_sample(len, rng);
        self.trained.lock().unwrap().push(sample.clone());
        sample
    }

    fn eval_set(
        &self,
        split: &str,
        len: usize,
        count: usize,
        seed: u64,
    ) -> Result<Vec<Sample>, TaskError> {
        let samples = self.task.eval_set(split, len, count, seed)?;
        if count > 1 {
            self.evaluated.lock().unwrap().clone_from(&samples);
        }
        Ok(samples)
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_same(samples: &[Sample], printed: &[Value]) {
    assert_eq!(samples.len(), printed.len());
    for (sample, printed) in samples.iter().zip(printed) {
        assert_eq!(serde_json::json!(sample.tokens), printed["tokens"]);
        assert_eq!(serde_json::json!(sample.scored), printed["scored"]);
        for (name, value) in &sample.slices {
            assert_eq!(printed["properties"][name], *value);
        }
    }
}

#[test]
fn samples_are_those_of_a_run() {
    let config = TaskConfig::from_id("counting").unwrap();
    let task = Recorded {
        task: config.build().unwrap(),
        trained: Mutex::default(),
        evaluated: Mutex::default(),
    };
    let cell = Experiment {
        workload: "test".into(),
        name: "nope".into(),
        encoding: Combination::parse("nope").unwrap(),
        task: config,
        model: ModelConfig { layers: 1, width: 16, ..ModelConfig::default() },
        train: TrainConfig { steps: 3, batch_size: 4, len: 24, ..TrainConfig::default() },
        eval: EvalConfig { lens: vec![40], samples: 30, seed: 9, ..EvalConfig::default() },
        grid: None,
        budget: Budget::default(),
        seed: 5,
        backend: "flex".into(),
        engine: Engine::Fused,
    };
    let context = RunContext { suite: "test".into(), suite_sha256: None, threads: 1, jobs: 1 };
    let record = run::execute(run::plan(&cell, &task, &context), RunHooks::new(&mut |_| {}));
    assert_eq!(record.status, records::Status::Done);

    let trained = done(&["samples", "counting", "--len", "24", "--seed", "5", "--count", "12"]);
    assert_same(&task.trained.lock().unwrap()[..12], &lines(&trained));
    let split = task.splits().last().unwrap().name;
    let options = ["--split", split, "--len", "40", "--seed", "9", "--count", "30"];
    let evaluated = done(&[&["samples", "counting"], &options[..]].concat());
    assert_same(&task.evaluated.lock().unwrap(), &lines(&evaluated));
}

/// Data of an array in an archive without compression, after its head.
fn array(archive: &Path, name: &str) -> (String, Vec<u8>) {
    use std::io::Read as _;
    let mut archive = zip::ZipArchive::new(std::fs::File::open(archive).unwrap()).unwrap();
    let mut bytes = Vec::new();
    archive.by_name(&format!("{name}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(start % 64, 0);
    (String::from_utf8(bytes[10..start].to_vec()).unwrap(), bytes[start..].to_vec())
}

#[test]
fn files_have_the_samples_that_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["samples", "counting", "--len", "32", "--count", "7"];
    let printed = lines(&done(&options));
    let write = |name: &str| {
        let path = folder.path().join(name);
        done(&[&options[..], &["--out", path.to_str().unwrap()]].concat());
        path
    };
    assert_eq!(lines(&std::fs::read_to_string(write("x.jsonl")).unwrap()), printed);

    let mut file = std::fs::File::open(write("x.parquet")).unwrap();
    let frame = ParquetReader::new(&mut file).finish().unwrap();
    let tokens = frame.column("tokens").unwrap().list().unwrap();
    assert_eq!(tokens.len(), 7);
    for (at, printed) in printed.iter().enumerate() {
        let row = tokens.get_as_series(at).unwrap();
        let row = row.u32().unwrap().into_no_null_iter().collect::<Vec<_>>();
        assert_eq!(serde_json::json!(row), printed["tokens"]);
    }

    let archive = write("x.npz");
    let longest = printed.iter().map(|row| row["tokens"].as_array().unwrap().len()).max().unwrap();
    let (head, bytes) = array(&archive, "tokens");
    assert!(
        head.contains(&format!(
            "'descr': '<i8', 'fortran_order': False, 'shape': (7, {longest}, )"
        )),
        "{head}"
    );
    let numbers = bytes.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()));
    let numbers = numbers.collect::<Vec<_>>();
    for (row, printed) in numbers.chunks_exact(longest).zip(&printed) {
        let tokens = printed["tokens"].as_array().unwrap();
        assert_eq!(serde_json::json!(row[..tokens.len()]), printed["tokens"]);
        assert!(row[tokens.len()..].iter().all(|padding| *padding == 0));
    }
    assert_eq!(array(&archive, "scored").1.len(), 7 * longest);
}

#[test]
fn training_samples_are_a_stream_that_its_reader_ends() {
    let endless = i64::MAX.to_string();
    let options = ["samples", "counting", "--len", "24", "--seed", "5", "--count", &endless];
    let mut child = std::process::Command::new(program::BENCH)
        .args(options)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let printed = std::io::BufReader::new(child.stdout.take().unwrap());
    let first = printed.lines().take(3).collect::<Result<Vec<_>, _>>().unwrap();
    // The reader has left.
    assert!(child.wait().unwrap().success());
    let three = done(&["samples", "counting", "--len", "24", "--seed", "5", "--count", "3"]);
    assert_eq!(first, three.lines().collect::<Vec<_>>());
    for other in [&["--out", "x.npz"][..], &["--describe"], &["--split", "more-pass"]] {
        refused(&[&options[..], other].concat(), "expected at most 16777216");
    }
}

#[test]
fn wrong_requests_are_refused() {
    refused(&["samples", "countin", "--len", "32"], "did you mean `counting`?");
    refused(
        &["samples", "counting", "--len", "32", "--set", "variable=3"],
        "did you mean `variables`?",
    );
    refused(&["samples", "counting", "--len", "32", "--split", "sparse"], "sparse");
    refused(
        &["samples", "counting", "--len", "32", "--out", "x.csv"],
        "ends with .npz, .parquet or .jsonl",
    );
    refused(
        &["samples", "counting", "--len", "32", "--count", "0", "--out", "x.npz"],
        "--count is 0",
    );
}
