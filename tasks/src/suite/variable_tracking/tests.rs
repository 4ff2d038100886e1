//! Tests of variable tracking.

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v2 8d3c83f7dbcac914cff2b8155e1a3a9d49803456280f2ab148102a00019bbc2f";

fn chains(chains: u32, hops: u32, names: u32) -> VariableTrackingConfig {
    VariableTrackingConfig { chains, hops, names, ..VariableTrackingConfig::default() }
}

pub(crate) fn example() -> Example {
    let config = TaskConfig::from(VariableTrackingConfig::default());
    Example::synthetic(config, 36, oracle, GOLDEN)
        .with_oracle_config(TaskConfig::from(chains(3, 4, 20)), 120)
        .with_chance_config(TaskConfig::from(chains(2, 1, 6)), 30)
}

/// Runs the statements in order and lists who holds the value that is asked for.
fn oracle(prefix: &[String]) -> Option<String> {
    let asked = prefix.iter().rposition(|text| text == "?")? + 1;
    let mut held = std::collections::BTreeMap::new();
    let mut holders = Vec::new();
    for t in (0..asked).filter(|t| prefix[*t] == "=") {
        let (name, source) = (&prefix[t - 1], &prefix[t + 1]);
        let value = held.get(source).unwrap_or(source).clone();
        assert!(held.insert(name.clone(), value.clone()).is_none(), "{name} twice");
        if value == prefix[asked] {
            holders.push(name.clone());
        }
    }
    let done = prefix.len() - asked - 1;
    Some(holders.get(done).cloned().unwrap_or_else(|| ";".to_owned()))
}

#[test]
fn slices_agree_with_the_tokens() {
    let task = chains(2, 3, 10).build().unwrap();
    let mut spans = 0;
    for sample in task.eval_set("uniform", 90, 50, 1).unwrap() {
        assert_eq!(sample.tokens.len(), 90);
        let answer = sample.scored.iter().position(|s| *s).unwrap();
        assert_eq!(sample.scored.iter().filter(|s| **s).count(), 5);
        let defined = |name: u32| {
            let at = |t: &usize| sample.tokens[*t] == name && sample.tokens[t + 1] == EQUALS;
            (0..answer).find(at).unwrap()
        };
        let [first, last] = [0, 3].map(|k| defined(sample.tokens[answer + k]));
        let expected = [("span", (last - first) as u32), ("distance", (answer - first) as u32)];
        assert_eq!(sample.slices, expected);
        assert_eq!(task.token_slices(&sample), [("hop", vec![0, 1, 2, 3, 4])]);
        spans += last - first;
    }
    assert!(spans > 50 * 9);
}

/// With one chain, the token before each `=` is the answer.
#[test]
fn names_in_order_of_assignment_are_not_the_answer_by_default() {
    let task = VariableTrackingConfig::default().build().unwrap();
    let mut same = 0;
    for sample in task.eval_set("uniform", 60, 50, 5).unwrap() {
        let answer = sample.scored.iter().position(|s| *s).unwrap();
        let assigned = (1..answer).filter(|t| sample.tokens[*t] == EQUALS);
        let assigned: Vec<u32> = assigned.map(|t| sample.tokens[t - 1]).collect();
        assert_eq!(assigned.len(), 6);
        same += usize::from(sample.tokens[answer..].starts_with(&assigned[..3]));
    }
    // One order in twenty has the three statements of the asked chain first.
    assert!(same < 12, "{same} of 50");
}

#[test]
fn chains_are_mixed() {
    let task = chains(2, 1, 10).build().unwrap();
    let set = task.eval_set("uniform", 17, 600, 2).unwrap();
    // Without filler: four statements of three tokens, a a b b or one of the other five orders.
    let apart = set.iter().filter(|sample| {
        let heads = [0, 3, 6, 9].map(|t| sample.tokens[t + 2] >= task.0.first_value());
        heads == [true, false, true, false]
    });
    assert!(apart.count().abs_diff(200) < 60);
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    let said = |json| {
        let config: VariableTrackingConfig = serde_json::from_str(json).unwrap();
        config.build().unwrap_err().to_string()
    };
    let expected = "variable-tracking: hops is 0, must be between 1 and 1024";
    assert_eq!(said(r#"{"hops": 0}"#), expected);
    assert!(said(r#"{"chains": 65}"#).contains("chains is 65, must be between 1 and 64, the"));
    assert!(said(r#"{"values": 0}"#).contains("values is 0, must be between 1 and 65536"));
    let needed = said(r#"{"chains": 20, "hops": 4}"#);
    assert!(needed.contains("names is 64, must be between 100, which 20 chains"), "{needed}");
    let task = VariableTrackingConfig::default().build().unwrap();
    assert!(task.check_len(23).unwrap_err().to_string().contains("between 24 and"));
}
