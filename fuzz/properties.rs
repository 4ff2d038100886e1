//! Properties of the parsers of text: no panic, and a value that was read survives being written and read again.
//! `bench/cli/tests/fuzz.rs` tries mutated inputs, the target of this folder those of libFuzzer. Properties of files that
//! are downloaded are in `properties/files.rs`.
//!
//! Each function returns whether its input was valid, so that a test can tell whether it reaches more than the first
//! line of the parser.

#[path = "properties/files.rs"]
pub(crate) mod files;

use std::path::Path;

use pe_zoo::Combination;
use records::RunRecord;
use records::settings::Settings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tasks::TaskConfig;
use train::experiment::Experiment;
use train::experiment::budget;
use train::flops::config::CostConfig;
use train::suite::{self, Overrides};

/// Lengths up to which a task of a suite is tried, not only read: drawing takes time.
const LONGEST: usize = 4096;

/// Files of published numbers that are short enough to be read ten thousand times.
pub(crate) const PUBLISHED: [&str; 2] = ["cope-vs-rope", "grape"];

/// A property: whether its input was valid.
pub(crate) type Property = fn(&[u8]) -> bool;

/// Every property by name.
pub(crate) const ALL: [(&str, Property); 16] = [
    ("suite", suite),
    ("record", record),
    ("expression", expression),
    ("task", task),
    ("cost-config", cost_config),
    ("command-line", command_line),
    ("published", published),
    ("tokenizer", files::tokenizer),
    ("gguf", files::gguf),
    ("weights", files::weights),
    ("model-config", files::model_config),
    ("parquet", files::parquet),
    ("json-lines", files::json_lines),
    ("questions", files::questions),
    ("checkpoint", files::checkpoint),
    ("named-tensors", files::named_tensors),
];

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Written as JSON and read again, as on the way to a worker, a value must be the same.
fn survives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let json = serde_json::to_string(value).expect("a value that was read can be written");
    let again: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
    assert_eq!(&again, value, "{json}");
}

/// Written as TOML and read again, a value must be the same.
fn survives_toml<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = toml::to_string(value).expect("a value that was read can be written");
    let again: T = toml::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(&again, value, "{text}");
}

/// A suite: TOML to cells; each cell can be checked, counted and named, or is refused.
pub(crate) fn suite(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let Ok(suite) = suite::parse("fuzzed", text, &Overrides::default()) else { return false };
    assert!(!suite.cells.is_empty() && suite.cells.len() <= suite::MOST_CELLS);
    suite.report.check().expect("a suite's criteria are checked");
    for cell in suite.cells.iter().take(2) {
        expression(cell.encoding.to_string().as_bytes());
        survives(&cell.task);
        survives(&cell.model);
        survives(&cell.train);
        survives(&cell.eval);
        survives(&cell.grid);
        survives(&cell.budget);
        planned(cell);
    }
    true
}

/// What a sweep does with a cell before anything is trained.
fn planned(cell: &Experiment) {
    let lens = cell.eval.lens.iter().chain([&cell.train.len]);
    // A text would have to be fetched.
    if cell.task.meta().takes_path || lens.into_iter().any(|len| *len > LONGEST) {
        return;
    }
    let Ok(task) = cell.task.build() else { return };
    if cell.check(&*task).is_err() {
        return;
    }
    let step = train::run::counted_step(cell, &*task);
    assert!(step.params(cell.encoding.param_count(&step.dims).unwrap_or(0)).total > 0);
    let flops = step.count();
    assert!(flops.train_step > 0 && flops.forward_per_token > 0);
    assert_eq!(cell.key(&*task).len(), 16);
}

/// A record's file: what is read is written to a text that stays the same from then on, but for the last digit of
/// numbers with more than 15 digits, which serde_json reads to within one unit (its feature `float_roundtrip` is off).
pub(crate) fn record(bytes: &[u8]) -> bool {
    let path = Path::new("fuzzed.json");
    let Ok(record) = RunRecord::parse(path, bytes) else { return false };
    let text = record.text().expect("a record that was read can be written");
    let again = RunRecord::parse(path, text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
    // Not by `==`: a loss may be no number.
    let again = again.text().expect("as before");
    if again != text {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("a record");
        assert!(nearly_equal(&read(&again), &read(&text)), "{text}\n{again}");
    }
    true
}

/// Whether two values differ by nothing but the last digit of their numbers.
fn nearly_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| nearly_equal(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            // The checksum is one of the digits.
            let equal = |(name, one): (&String, &Value)| {
                name == "sha256" || other.get(name).is_some_and(|other| nearly_equal(one, other))
            };
            one.len() == other.len() && one.iter().all(equal)
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let [one, other] = [one, other].map(|n| n.as_f64().unwrap_or(f64::NAN));
            (one - other).abs() <= 1e-15 * one.abs()
        }
        (one, other) => one == other,
    }
}

/// An expression that names encodings: its canonical text means the same and is its own.
pub(crate) fn expression(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    assert!(Combination::split_list(text).iter().all(|item| text.contains(item)));
    let Ok(read) = Combination::parse(text) else { return false };
    let canonical = read.to_string();
    let again = Combination::parse(&canonical).unwrap_or_else(|e| panic!("{canonical}: {e}"));
    assert_eq!(again, read, "{canonical}");
    assert_eq!(again.to_string(), canonical);
    true
}

/// A task's settings, as JSON or as TOML; the task can be built, or is refused.
pub(crate) fn task(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let json = serde_json::from_str::<TaskConfig>(text).ok();
    let Some(config) = json.or_else(|| toml::from_str(text).ok()) else { return false };
    survives_toml(&config);
    if !config.meta().takes_path {
        // An error is an answer.
        let _ = config.build();
    }
    true
}

/// A model whose cost is asked for.
pub(crate) fn cost_config(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    let Ok(config) = CostConfig::parse("fuzzed", text) else { return false };
    survives_toml(&config);
    assert!(config.model.cost(config.vocabulary, config.len).macs() > 0);
    assert!(config.model.param_count(config.vocabulary) > 0);
    true
}

/// Criteria of a report, and an amount of memory: what the command line reads.
pub(crate) fn command_line(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    if let Ok(bytes) = budget::bytes(text) {
        assert!(bytes > 0);
        return true;
    }
    let Ok(settings) = toml::from_str::<Settings>(text) else { return false };
    if settings.check().is_ok() {
        survives_toml(&settings);
    }
    true
}

/// A file of published numbers: no user writes one, but whoever adds a paper does.
pub(crate) fn published(bytes: &[u8]) -> bool {
    let Some(text) = text(bytes) else { return false };
    PUBLISHED.iter().any(|file| analysis::reproduction::published::parse(file, text).is_ok())
}
