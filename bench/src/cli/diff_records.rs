//! `pe-bench diff-records`: comparison of the records of two results folders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use reports::RunRecord;
use serde_json::Value;

use super::folders;
use super::out::say;

/// Names of timing fields, ignored at any depth.
const TIMINGS: [&str; 5] =
    ["seconds", "step_seconds_median", "tokens_per_second", "machine_load", "data_parallel"];

/// Top-level fields of a record that describe the machine, time and program of a run.
const PROVENANCE: [&str; 13] = [
    "suite_sha256",
    "device",
    "host_peak_bytes",
    "peak_bytes",
    "step_allocations",
    "step_instructions",
    "host",
    "started_utc",
    "commit",
    "dirty",
    "versions",
    "weights",
    "evaluated_by",
];

/// Maximum number of differences printed; the rest are only counted.
const PRINTED: usize = 50;

/// Arguments of `diff-records`.
#[derive(Args)]
pub(super) struct DiffArgs {
    /// First results folder.
    one: PathBuf,
    /// Second results folder.
    other: PathBuf,
}

/// Prints the differences; the exit status is 1 if there are any.
pub(super) fn diff(arguments: &DiffArgs) -> anyhow::Result<ExitCode> {
    let (one, other) = (records(&arguments.one)?, records(&arguments.other)?);
    let differences = differences(&one, &other);
    for difference in differences.iter().take(PRINTED) {
        say(difference);
    }
    if differences.is_empty() {
        say(&format!("{} records are equal apart from timings and provenance", one.len()));
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("{} differences", differences.len()));
    Ok(ExitCode::FAILURE)
}

fn records(folder: &PathBuf) -> anyhow::Result<BTreeMap<String, Value>> {
    let json = |record: RunRecord| Ok((record.key.clone(), serde_json::to_value(&record)?));
    folders::records(std::slice::from_ref(folder))?.into_iter().map(json).collect()
}

fn differences(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
        match (one.get(key), other.get(key)) {
            (Some(one), Some(other)) => compare(key, one, other, &PROVENANCE, &mut found),
            (Some(_), None) => found.push(format!("{key}: only in the first folder")),
            (None, _) => found.push(format!("{key}: only in the second folder")),
        }
    }
    found
}

/// Differences of two records of one cell, apart from timings and provenance.
///
/// # Errors
/// If a record has no JSON form.
pub(super) fn differences_of(
    one: &RunRecord,
    other: &RunRecord,
) -> serde_json::Result<Vec<String>> {
    let (one_json, other) = (serde_json::to_value(one)?, serde_json::to_value(other)?);
    let mut found = Vec::new();
    compare(&one.key, &one_json, &other, &PROVENANCE, &mut found);
    Ok(found)
}

/// Compares two values recursively; `passed_over` are fields ignored at this depth only.
fn compare(path: &str, one: &Value, other: &Value, passed_over: &[&str], found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                if passed_over.contains(&name.as_str()) || TIMINGS.contains(&name.as_str()) {
                    continue;
                }
                let (a, b) = (a.get(name), b.get(name));
                let missing = Value::Null;
                let (a, b) = (a.unwrap_or(&missing), b.unwrap_or(&missing));
                compare(&format!("{path}.{name}"), a, b, &[], found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, &[], found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: {a} and {b}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn folder(record: Value) -> BTreeMap<String, Value> {
        BTreeMap::from([("k".to_owned(), record)])
    }

    #[test]
    fn timings_and_provenance_may_differ_and_nothing_else() {
        let one = json!({"host": {"cpu": "a"}, "peak_bytes": 1, "train": {"seconds": 1.0, "curve":
            [{"loss": 0.5, "seconds": 1.0}]}, "evals": []});
        let mut other = one.clone();
        other["host"]["cpu"] = json!("b");
        other["peak_bytes"] = json!(null);
        other["train"]["seconds"] = json!(2.0);
        other["train"]["curve"][0]["seconds"] = json!(3.0);
        assert_eq!(differences(&folder(one.clone()), &folder(other.clone())), [] as [String; 0]);
        other["train"]["curve"][0]["loss"] = json!(0.500_000_000_000_001);
        let found = differences(&folder(one.clone()), &folder(other));
        assert_eq!(found, ["k.train.curve[0].loss: 0.5 and 0.500000000000001"]);
        let mut longer = one.clone();
        longer["evals"] = json!([1]);
        longer["train"]["host"] = json!("a field of this name elsewhere counts");
        assert_eq!(differences(&folder(one.clone()), &folder(longer)).len(), 2);
        assert_eq!(differences(&folder(one), &BTreeMap::new()), ["k: only in the first folder"]);
    }
}
