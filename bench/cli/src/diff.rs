//! `pe-bench records diff`: comparison of the records of two results folders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use records::RunRecord;
use serde_json::Value;

use super::differences::differences_of_json;
use super::folders;
use super::out::{counted, say};

/// Maximum number of differences printed; the rest are only counted.
const PRINTED: usize = 50;

/// Arguments of `records diff`.
#[derive(Args)]
pub(super) struct DiffArgs {
    /// First results folder.
    one: PathBuf,
    /// Second results folder.
    other: PathBuf,
}

/// Prints the differences; the exit status is 1 if there are any.
pub(super) fn diff(arguments: &DiffArgs) -> anyhow::Result<ExitCode> {
    let (one, mut errors) = folders::readable(std::slice::from_ref(&arguments.one))?;
    let (other, of_other) = folders::readable(std::slice::from_ref(&arguments.other))?;
    errors.extend(of_other);
    let count = one.len();
    let differences = differences(&by_key(one)?, &by_key(other)?);
    for difference in differences.iter().take(PRINTED) {
        say(difference);
    }
    match differences.len() {
        0 => say(&format!("{count} records are equal apart from timings and provenance")),
        count => say(&counted(count, "difference")),
    }
    folders::refuse_left_out("comparison", &folders::messages(&errors))?;
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn by_key(records: Vec<RunRecord>) -> anyhow::Result<BTreeMap<String, Value>> {
    let json = |record: RunRecord| Ok((record.key.clone(), serde_json::to_value(&record)?));
    records.into_iter().map(json).collect()
}

fn differences(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
        match (one.get(key), other.get(key)) {
            (Some(one), Some(other)) => found.extend(differences_of_json(key, one, other)),
            (Some(_), None) => found.push(format!("{key}: only in the first folder")),
            (None, _) => found.push(format!("{key}: only in the second folder")),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn folder(record: Value) -> BTreeMap<String, Value> {
        BTreeMap::from([("k".to_owned(), record)])
    }

    #[test]
    fn of_long_arrays_and_texts_the_first_difference_is_told() {
        let found = |one: Value, other: Value| {
            differences(&folder(json!({"a": one})), &folder(json!({"a": other})))
        };
        let numbers: Vec<u32> = (0..300).collect();
        let mut others = numbers.clone();
        (others[7], others[250]) = (70, 2500);
        assert_eq!(
            found(json!(numbers), json!(others)),
            ["k.a[7]: 7 and 70 (first of 2 differing elements; 300 elements in total)"]
        );
        assert_eq!(
            found(json!(numbers), json!(numbers[..299])),
            ["k.a: 300 and 299 elements; the elements that both lists have are equal"]
        );
        let points: Vec<Value> =
            numbers.iter().map(|n| json!({"step": n, "loss": 1, "seconds": 0.5})).collect();
        let mut later = points.clone();
        for point in &mut later {
            point["seconds"] = json!(0.6);
        }
        assert!(found(json!(points), json!(later)).is_empty());
        (later[3]["loss"], later[3]["step"]) = (json!(2), json!(4));
        assert_eq!(
            found(json!(points), json!(later)),
            ["k.a[3].loss: 1 and 2 (first of 1 differing elements; 300 elements in total)"]
        );
        assert_eq!(found(json!([1, 2]), json!([3, 2, 1])), ["k.a: [1,2] and [3,2,1]"]);
        let text = "x".repeat(100);
        let nested = json!({"bits": text, "count": 1, "numbers": numbers});
        assert_eq!(
            found(json!(null), nested),
            [
                "k.a: null and {\"bits\":\"100 characters\",\"count\":1,\"numbers\":\"300 elements\"}"
            ]
        );
        assert_eq!(
            found(json!(text), json!(format!("{text}yz"))),
            ["k.a: \"\" and \"yz\", from character 100 (counted from 0) on"]
        );
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
