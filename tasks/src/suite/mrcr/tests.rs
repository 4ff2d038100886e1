//! Tests of MRCR.

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 c7f75bfb6f433f2677a0694c66432d8a68fe9fb0b00bf9e0fce21dbfe6ee1f84";

pub(crate) fn example() -> Example {
    let config = TaskConfig::from(MrcrConfig::default());
    let many = MrcrConfig { keys: 3, max_index: 9, questions: 5, ..MrcrConfig::default() };
    let two = MrcrConfig { values: 4, questions: 2, ..MrcrConfig::default() };
    Example::synthetic(config, 24, oracle, GOLDEN)
        .with_oracle_config(many.into(), 80)
        .with_chance_config(two.into(), 24)
}

/// Lists the values that were written to the last key before the first question, and takes the requested one of them from
/// the first.
fn oracle(prefix: &[String]) -> Option<String> {
    let [.., ask, index, key] = prefix else { return None };
    assert_eq!(ask, "?");
    let writes = prefix.split(|text| text == "?").next()?;
    let of_key = writes.chunks(2).filter(|write| write[0] == *key);
    let index: usize = index.parse().ok()?;
    of_key.map(|write| write[1].clone()).nth(index - 1)
}

/// Texts of the writes to a key, then the number and the value of a question.
fn asked(task: &dyn Task, sample: &Sample) -> (Vec<String>, usize, String) {
    let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
    let end = texts.len() - 4;
    let writes = texts[..end].chunks(2).filter(|write| write[0] == texts[end + 2]);
    (
        writes.map(|write| write[1].clone()).collect(),
        texts[end + 1].parse().unwrap(),
        texts[end + 3].clone(),
    )
}

#[test]
fn writes_are_counted_from_either_end() {
    for from in [CountedFrom::Start, CountedFrom::End] {
        let task = MrcrConfig { from, values: 999, ..MrcrConfig::default() }.build().unwrap();
        for sample in task.eval_set("uniform", 60, 200, 1).unwrap() {
            let (written, index, value) = asked(&task, &sample);
            let place = if from == CountedFrom::Start { index - 1 } else { written.len() - index };
            assert_eq!(written[place], value);
        }
    }
}

#[test]
fn every_number_up_to_the_greatest_is_asked_for_equally_often() {
    // 28 writes to one key: each of its first four is asked for.
    let task = MrcrConfig { keys: 1, ..MrcrConfig::default() }.build().unwrap();
    let mut counts = [0_u32; 5];
    for sample in task.eval_set("uniform", 60, 4000, 2).unwrap() {
        counts[asked(&task, &sample).1] += 1;
    }
    assert_eq!(counts[0], 0);
    assert!(counts[1..].iter().all(|count| count.abs_diff(1000) < 160), "{counts:?}");
}

#[test]
fn slices_and_marks_agree_with_the_tokens() {
    let config = MrcrConfig { questions: 3, ..MrcrConfig::default() };
    let task = config.build().unwrap();
    for sample in task.eval_set("uniform", 50, 100, 3).unwrap() {
        let [(index, numbers), (distance, distances)] = &task.token_slices(&sample)[..] else {
            panic!("two slices");
        };
        assert_eq!((*index, *distance), ("index", "distance"));
        let answers: Vec<usize> = (0..50).filter(|t| sample.scored[*t]).collect();
        assert_eq!(answers, [41, 45, 49]);
        let marks = task.counted(&sample).unwrap();
        for ((t, number), distance) in answers.into_iter().zip(numbers).zip(distances) {
            let [place, key] = [t - *distance as usize, t - *distance as usize - 1];
            assert!(place < 38 && sample.tokens[place] == sample.tokens[t]);
            assert!(sample.tokens[key] == sample.tokens[t - 1] && marks[key]);
            let before = sample.tokens[..=key].iter().filter(|token| **token == sample.tokens[key]);
            assert_eq!(
                (before.count() as u32, task.token_text(sample.tokens[t - 2])),
                (*number, number.to_string())
            );
        }
        let keys = [40, 44, 48].map(|t| sample.tokens[t]);
        let marked = (0..50).filter(|t| marks[*t]).collect::<Vec<_>>();
        let expected = (0..38).filter(|t| keys.contains(&sample.tokens[*t])).collect::<Vec<_>>();
        assert_eq!(marked, expected);
    }
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    for (json, expected) in [
        (r#"{"keys": 27}"#, "keys is 27, must be between 1 and 26"),
        (r#"{"values": 1}"#, "values is 1, must be between 2 and 65536"),
        (r#"{"max_index": 0}"#, "max_index is 0, must be between 1 and 65536"),
        (r#"{"questions": 0}"#, "questions is 0, must be between 1 and 1024"),
    ] {
        let config: MrcrConfig = serde_json::from_str(json).unwrap();
        assert_eq!(config.build().unwrap_err().to_string(), format!("mrcr: {expected}"));
    }
    let unknown = serde_json::from_str::<MrcrConfig>(r#"{"from": "middle"}"#);
    assert!(unknown.unwrap_err().to_string().contains("expected `start` or `end`"));
    let task = MrcrConfig::default().build().unwrap();
    assert!(task.check_len(4).unwrap_err().to_string().contains("between 6 and"));
    assert!(task.check_len(7).unwrap_err().to_string().contains("even, such as 8"));
}
