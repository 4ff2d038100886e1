//! Tests of selective counting.

use rand::SeedableRng;

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v2 ecf5a69f6e8e947103c04b27bb98b8cf0ce8ee30b2f9cd59707f49840a71cc44";

fn small(answer: NumberFormat) -> SelectiveCountingConfig {
    SelectiveCountingConfig { answer, ..SelectiveCountingConfig::small() }
}

pub(crate) fn example() -> Example {
    let [number, digits] =
        [NumberFormat::Number, NumberFormat::Digits].map(|answer| TaskConfig::from(small(answer)));
    Example::synthetic(number.clone(), 36, oracle, GOLDEN)
        .with_oracle_config(digits, 110)
        .with_chance_config(number, 36)
}

/// Reads the names in the instruction and counts them in the content.
fn counted(prefix: &[String]) -> String {
    let bar = prefix.iter().position(|text| text == "|").unwrap();
    let asked = prefix.iter().position(|text| text == "?").unwrap();
    assert_eq!(prefix[0], "count");
    let names: Vec<&String> = prefix[1..bar].iter().filter(|text| *text != "and").collect();
    prefix[bar..asked].iter().filter(|text| names.contains(text)).count().to_string()
}

/// Returns the next digit of the count.
fn oracle(prefix: &[String]) -> Option<String> {
    let done = prefix.iter().rev().position(|text| text == "?")?;
    let said = counted(prefix);
    Some(said.get(done..=done).unwrap_or(".").to_owned())
}

#[test]
fn hard_mode_has_the_sizes_of_its_source() {
    let task = SelectiveCountingConfig::default().build().unwrap();
    let set = task.eval_set("in-distribution", 1024, 400, 1).unwrap();
    let mut targets = [0_u32; 2];
    let (mut objects, mut content, mut count) = (0, 0, [0.0; 2]);
    for sample in &set {
        assert_eq!(sample.tokens.len(), 1024);
        let named = sample.slices[1].1 as usize;
        targets[named - 1] += 1;
        count[named - 1] += f64::from(sample.slices[0].1);
        let content_tokens = &sample.tokens[2 * named + 1..1022];
        content += content_tokens.len();
        objects += content_tokens.iter().filter(|t| **t < 10).count();
    }
    assert!(targets[0].abs_diff(200) < 60, "{targets:?}");
    let share = objects as f64 / content as f64;
    assert!((share - 0.5).abs() < 0.01, "{share}");
    // A twentieth of about 1018 tokens for each target.
    for (sum, [samples, expected]) in
        count.iter().zip([[f64::from(targets[0]), 50.9], [f64::from(targets[1]), 101.8]])
    {
        assert!((sum / samples - expected).abs() < 3.0, "{count:?}");
    }
    assert!(task.check_len(2048).is_ok());
}

/// The chance is 2.0%: half of the samples have one target, whose count has a standard deviation of 9.8. The largest share
/// of the draws is 2.9%.
#[test]
fn chance_is_not_the_largest_share_of_few_samples() {
    let task = SelectiveCountingConfig::default().build().unwrap();
    let chance = task.chance_at(2048).unwrap();
    assert!((0.015..0.025).contains(&chance), "{chance}");
}

#[test]
fn a_full_count_is_never_exceeded() {
    let config = SelectiveCountingConfig {
        classes: 2,
        max_targets: 1,
        object_rate: 1.0,
        max_count: 10,
        ..small(NumberFormat::Number)
    };
    let task = config.build().unwrap();
    let set = task.eval_set("in-distribution", 25, 500, 2).unwrap();
    let counts: Vec<u32> = set.iter().map(|sample| sample.slices[0].1).collect();
    assert_eq!(counts.iter().max(), Some(&10));
    for sample in &set {
        let target = sample.tokens[1];
        let counted = sample.tokens[3..].iter().filter(|t| **t == target).count();
        assert_eq!(counted as u32, sample.slices[0].1);
        let noise = sample.tokens[3..23].iter().any(|t| *t >= task.0.first_noise());
        assert!(!noise || counted == 10);
    }
}

#[test]
fn numbers_are_counted_and_so_is_the_slice() {
    for answer in [NumberFormat::Number, NumberFormat::Digits] {
        let config = SelectiveCountingConfig { max_count: 400, ..small(answer) };
        let task = config.build().unwrap();
        for sample in task.eval_set("in-distribution", 300, 60, 3).unwrap() {
            let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
            let asked = texts.iter().position(|text| text == "?").unwrap();
            assert_eq!(texts[asked + 1..].concat().trim_end_matches('.'), counted(&texts));
            assert_eq!(sample.slices[0].1.to_string(), counted(&texts));
        }
    }
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    for (json, expected) in [
        (r#"{"classes": 27}"#, "classes is 27, must be between 1 and 26"),
        (r#"{"object_rate": 1.5}"#, "object_rate is 1.5, must be between 0.0 and 1.0"),
        (r#"{"noise": 0}"#, "noise is 0, must be between 1 and 65536"),
        (r#"{"max_count": 0}"#, "max_count is 0, must be between 1 and 65536"),
        (r#"{"max_targets": 11}"#, "max_targets is 11, must be between 1 and 10, the value"),
        (r#"{"min_targets": 3}"#, "min_targets is 3, must be between 1 and 2, the value"),
        (
            r#"{"shared_tokens": 1000}"#,
            "shared_tokens is 1000, must be between 0 and 999, the smaller",
        ),
        (
            r#"{"shared_tokens": 1, "answer": "digits"}"#,
            "shared_tokens is 1, must be between 0 and 0",
        ),
        (r#"{"min_len": 8, "first_token": true}"#, "min_len is 8, must be between 9 and"),
        (r#"{"min_len": 7}"#, "min_len is 7, must be between 8 and"),
        (r#"{"min_len": 8, "answer": "digits"}"#, "min_len is 8, must be between 9 and"),
        (
            r#"{"min_len": 1024, "max_count": 1}"#,
            "min_len is 1024, must be at most 17 tokens, because",
        ),
    ] {
        let config: SelectiveCountingConfig = serde_json::from_str(json).unwrap();
        let said = config.build().unwrap_err().to_string();
        assert!(said.starts_with(&format!("selective-counting: {expected}")), "{said}");
    }
    let task = small(NumberFormat::Number).build().unwrap();
    assert!(task.check_len(7).unwrap_err().to_string().contains("between 8 and"));
    assert!(task.check_len(263).is_ok());
    let said = task.check_len(264).unwrap_err().to_string();
    assert!(said.contains("at most 263 tokens") && said.contains("raise max_count"), "{said}");
    assert!(small(NumberFormat::Digits).build().unwrap().check_len(100_000).is_ok());
}

#[test]
fn as_many_tokens_are_marked_as_the_answer_says() {
    let task = small(NumberFormat::Number).build().unwrap();
    for sample in task.eval_set("in-distribution", 60, 50, 3).unwrap() {
        let marked = task.counted(&sample).unwrap();
        assert_eq!(marked.iter().filter(|marked| **marked).count() as u32, sample.slices[0].1);
        assert_eq!(marked.len(), sample.tokens.len());
    }
}

#[test]
fn a_first_token_and_shared_numbers_are_those_of_the_replication() {
    let config = SelectiveCountingConfig {
        first_token: true,
        max_count: 30,
        shared_tokens: 8,
        object_rate: 0.9,
        ..SelectiveCountingConfig::small()
    };
    let task = config.build().unwrap();
    let first_token = task.vocab_size() as u32 - 1;
    let plain = SelectiveCountingConfig { max_count: 30, ..SelectiveCountingConfig::small() };
    assert_eq!(task.vocab_size(), plain.build().unwrap().vocab_size() - 8 + 1);
    let mut shared = 0;
    for sample in task.eval_set("in-distribution", 60, 200, 3).unwrap() {
        assert_eq!((sample.tokens[0], sample.tokens.len()), (first_token, 60));
        let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
        assert_eq!(texts[0], "^");
        let count: u32 = counted(&texts[1..]).parse().unwrap();
        // The numbers 0 to 22 are tokens of their own, 23 is `n0`.
        let said = count.checked_sub(23).map_or(count.to_string(), |noise| format!("n{noise}"));
        assert_eq!((texts.last(), sample.slices[0].1), (Some(&said), count));
        shared += u32::from(count >= 23);
        let marked = task.counted(&sample).unwrap();
        assert_eq!(marked.iter().filter(|marked| **marked).count() as u32, count);
    }
    assert!(shared > 5, "{shared}");
    let json = serde_json::to_value(plain).unwrap();
    assert!(json.get("first_token").is_none() && json.get("shared_tokens").is_none());
}

#[test]
fn training_lengths_are_drawn_from_a_range_and_evaluation_lengths_are_exact() {
    let lens = |min_len| {
        let task = SelectiveCountingConfig { min_len, ..SelectiveCountingConfig::small() };
        let task = task.build().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..8000 {
            *counts.entry(task.train_sample(15, &mut rng).tokens.len()).or_insert(0_u32) += 1;
        }
        let set = task.eval_set("in-distribution", 15, 50, 6).unwrap();
        assert!(set.iter().all(|sample| sample.tokens.len() == 15));
        counts
    };
    let drawn = lens(None);
    assert_eq!(drawn.keys().copied().collect::<Vec<_>>(), (8..=15).collect::<Vec<_>>());
    assert!(drawn.values().all(|count| count.abs_diff(1000) < 160), "{drawn:?}");
    assert_eq!(lens(Some(15)).len(), 1);
    let task = SelectiveCountingConfig { min_len: Some(20), ..SelectiveCountingConfig::small() };
    let said = task.build().unwrap().check_len(19).unwrap_err().to_string();
    assert!(said.contains("min_len sets the minimum"), "{said}");
    let json = serde_json::to_value(SelectiveCountingConfig::default()).unwrap();
    assert!(json.get("min_len").is_none());
}
