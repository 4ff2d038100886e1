//! Differences between two records of a cell, apart from timings and provenance.

use std::collections::BTreeSet;

use records::RunRecord;
use serde_json::Value;

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

/// Number of elements up to which an array is printed.
const LONG: usize = 8;
/// Number of characters up to which a text is printed, and of which an excerpt of a longer one is made.
const LONG_TEXT: usize = 64;
const EXCERPT: usize = 16;

/// Differences of two records of one cell, apart from timings and provenance.
///
/// # Errors
/// If a record has no JSON form.
pub(super) fn differences_of(
    one: &RunRecord,
    other: &RunRecord,
) -> serde_json::Result<Vec<String>> {
    Ok(differences_of_json(&one.key, &serde_json::to_value(one)?, &serde_json::to_value(other)?))
}

/// [`differences_of`] for records as JSON.
pub(super) fn differences_of_json(key: &str, one: &Value, other: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    compare(key, one, other, &PROVENANCE, &mut differences);
    differences
}

/// Compares two values recursively; `passed_over` are fields ignored at this depth only. Of a long array only the first
/// element that differs is told.
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
        (Value::Array(a), Value::Array(b)) if a.len().max(b.len()) > LONG => {
            let differing = a.iter().zip(b).enumerate().filter_map(|(index, (a, b))| {
                let mut own = Vec::new();
                compare(&format!("{path}[{index}]"), a, b, &[], &mut own);
                own.into_iter().next()
            });
            let differing: Vec<String> = differing.collect();
            let (len, other) = (a.len(), b.len());
            let of = if len == other { len.to_string() } else { format!("{len} and {other}") };
            if let Some(first) = differing.first() {
                let count = differing.len();
                found.push(format!(
                    "{first} (first of {count} differing elements; {of} elements in total)"
                ));
            } else if len != other {
                found.push(format!(
                    "{path}: {of} elements; the elements that both lists have are equal"
                ));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, &[], found);
            }
        }
        (a, b) if a == b => {}
        (Value::String(a), Value::String(b)) if a.len().max(b.len()) > LONG_TEXT => {
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            let from = |text: &str| text.chars().skip(same).take(EXCERPT).collect::<String>();
            let (a, b) = (from(a), from(b));
            found.push(format!(
                "{path}: {a:?} and {b:?}, from character {same} (counted from 0) on"
            ));
        }
        (a, b) => found.push(format!("{path}: {} and {}", brief(a), brief(b))),
    }
}

/// Replaces long arrays and texts in a value by their lengths.
fn brief(value: &Value) -> Value {
    match value {
        Value::Array(all) if all.len() > LONG => format!("{} elements", all.len()).into(),
        Value::Array(all) => all.iter().map(brief).collect(),
        Value::String(text) if text.len() > LONG_TEXT => {
            format!("{} characters", text.chars().count()).into()
        }
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), brief(value))).collect()
        }
        other => other.clone(),
    }
}
