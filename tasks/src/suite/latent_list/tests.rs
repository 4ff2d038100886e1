//! Tests of latent list.

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 d59623bd6396e9894c4b06ca7eef568f460e801f616a64c26a62a9c9f4bfcb5a";

fn asking(question: ListQuestion) -> LatentListConfig {
    LatentListConfig { question, ..LatentListConfig::default() }
}

pub(crate) fn example() -> Example {
    let config = TaskConfig::from(LatentListConfig::default());
    Example::synthetic(config.clone(), 14, oracle, GOLDEN)
        .with_oracle_config(config, 40)
        .with_chance_config(asking(ListQuestion::Length).into(), 12)
}

/// Carries out the operations on two stacks, one of them reversed, from their texts.
fn list_after(operations: &[String]) -> Vec<u32> {
    let mut list = std::collections::VecDeque::new();
    let mut is_reversed = false;
    for operation in operations {
        match (operation.as_str(), is_reversed) {
            ("pass", _) => {}
            ("reverse", _) => is_reversed = !is_reversed,
            ("pop", false) => assert!(list.pop_back().is_some()),
            ("pop", true) => assert!(list.pop_front().is_some()),
            (append, false) => list.push_back(append[1..].parse().unwrap()),
            (append, true) => list.push_front(append[1..].parse().unwrap()),
        }
    }
    let list: Vec<u32> = list.into();
    if is_reversed { list.into_iter().rev().collect() } else { list }
}

fn oracle(prefix: &[String]) -> Option<String> {
    let ask = prefix.iter().position(|text| text == "?")?;
    let list = list_after(&prefix[..ask]);
    let answer = match (prefix[ask + 1].as_str(), prefix.get(ask + 2)) {
        ("length", None) => list.len() as u32,
        ("sum", None) => list.iter().sum::<u32>() % 10,
        ("element", Some(place)) => list[place.parse::<usize>().ok()? - 1],
        other => panic!("{other:?}"),
    };
    Some(answer.to_string())
}

#[test]
fn lists_keep_to_their_bounds_and_have_elements_at_the_end() {
    let config = LatentListConfig { max_size: 3, ..asking(ListQuestion::Length) };
    let task = config.build().unwrap();
    let mut sizes = [0_u32; 4];
    for len in [1, 2, 9, 30] {
        for sample in task.eval_set("uniform", len, 2000, 1).unwrap() {
            assert_eq!(sample.tokens.len(), len + 3);
            let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
            let longest = (1..=len).map(|end| list_after(&texts[..end]).len()).max();
            assert!(longest <= Some(3), "{texts:?}");
            let size = list_after(&texts[..len]).len();
            assert!(size > 0 && sample.slices[1] == ("size", size as u32));
            sizes[size] += u32::from(len == 30);
        }
    }
    // A walk between two walls that is drawn again at 0 and 3 visits each size equally often; 0 is left at the end.
    assert!(sizes[1..].iter().all(|count| *count > 300), "{sizes:?}");
}

#[test]
fn every_operation_and_question_has_its_share() {
    let task = LatentListConfig { max_size: 1024, pass_rate: 0.5, ..LatentListConfig::default() };
    let task = task.build().unwrap();
    let (mut passes, mut questions) = (0, [0_u32; 3]);
    for sample in task.eval_set("uniform", 100, 3000, 2).unwrap() {
        let texts = sample.tokens.iter().map(|t| task.token_text(*t));
        passes += texts.filter(|text| text == "pass").count();
        questions[sample.slices[0].1 as usize] += 1;
    }
    // `pop` is drawn again where there is nothing to remove, which makes `pass` a little more frequent.
    assert!((0.5..0.54).contains(&(passes as f64 / 300_000.0)), "{passes}");
    assert!(questions.iter().all(|count| count.abs_diff(1000) < 130), "{questions:?}");
}

#[test]
fn operations_that_change_the_length_are_marked_if_it_is_asked_for() {
    let task = asking(ListQuestion::Length).build().unwrap();
    for sample in task.eval_set("uniform", 20, 50, 3).unwrap() {
        let marks = task.counted(&sample).unwrap();
        for (token, mark) in sample.tokens.iter().zip(marks) {
            let text = task.token_text(*token);
            assert_eq!(mark, text == "pop" || text.starts_with('+'), "{text}");
        }
    }
    let any = LatentListConfig::default().build().unwrap();
    assert_eq!(any.counted(&any.eval_set("uniform", 9, 1, 0).unwrap()[0]), None);
}

#[test]
fn sums_and_elements_are_uniform() {
    for question in [ListQuestion::Sum, ListQuestion::Element] {
        let task = asking(question).build().unwrap();
        let mut counts = [0_u32; 10];
        for sample in task.eval_set("uniform", 25, 10_000, 4).unwrap() {
            let answer = task.token_text(*sample.tokens.last().unwrap());
            counts[answer.parse::<usize>().unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(1000) < 160), "{question:?} {counts:?}");
    }
}

#[test]
fn training_lengths_are_drawn_from_a_range() {
    let mut rng = <ChaCha8Rng as rand::SeedableRng>::seed_from_u64(5);
    let config = LatentListConfig { min_len: 3, ..asking(ListQuestion::Sum) };
    let task = config.build().unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..8000 {
        *counts.entry(task.train_sample(10, &mut rng).tokens.len() - 3).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), (3..=10).collect::<Vec<_>>());
    assert!(counts.values().all(|count| count.abs_diff(1000) < 160), "{counts:?}");
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    for (json, expected) in [
        (r#"{"values": 1}"#, "values is 1, must be between 2 and 65536"),
        (r#"{"max_size": 0}"#, "max_size is 0, must be between 1 and 1024"),
        (r#"{"pass_rate": 1}"#, "pass_rate is 1.0, must be between 0.0 and 0.9"),
        (r#"{"min_len": 0}"#, "min_len is 0, must be between 1 and 16777216"),
    ] {
        let config: LatentListConfig = serde_json::from_str(json).unwrap();
        assert_eq!(config.build().unwrap_err().to_string(), format!("latent-list: {expected}"));
    }
    let task = LatentListConfig { min_len: 4, ..LatentListConfig::default() }.build().unwrap();
    assert!(task.check_len(3).unwrap_err().to_string().contains("min_len sets the minimum"));
    let unknown = serde_json::from_str::<LatentListConfig>(r#"{"question": "median"}"#);
    assert!(unknown.unwrap_err().to_string().contains("expected one of `any`, `length`"));
}
