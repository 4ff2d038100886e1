//! Tests of addition.

use std::collections::BTreeMap;

use rand::SeedableRng;

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 94144722c9d2e9ca2d7f71f7bb1a38f80ae7d9f94c7993106704f823fbba7fd3";

fn config(order: DigitOrder) -> TaskConfig {
    TaskConfig::from(AdditionConfig { order })
}

pub(crate) fn example() -> Example {
    Example::synthetic(config(DigitOrder::Reversed), 7, oracle, GOLDEN)
        .with_chance_config(config(DigitOrder::Plain), 1)
}

fn number(text: &[String]) -> u128 {
    text.concat().parse().unwrap()
}

/// Adds the numbers as integers and returns the digits of the sum in the order of the problem.
fn sum_of(problem: &[String], reversed: bool) -> Vec<String> {
    let plus = problem.iter().position(|text| text == "+").unwrap();
    let turned = |digits: &[String]| {
        let mut digits = digits.to_vec();
        if reversed {
            digits.reverse();
        }
        digits
    };
    let sum = number(&turned(&problem[..plus])) + number(&turned(&problem[plus + 1..]));
    let digits: Vec<String> = sum.to_string().chars().map(String::from).collect();
    [turned(&digits), vec![".".to_owned()]].concat()
}

fn oracle(prefix: &[String]) -> Option<String> {
    let equals = prefix.iter().position(|text| text == "=")?;
    sum_of(&prefix[..equals], true).get(prefix.len() - equals - 1).cloned()
}

#[test]
fn plain_order_is_right_too_and_places_count_from_the_right() {
    let task = config(DigitOrder::Plain).build().unwrap();
    for sample in task.eval_set("grid", 12, 200, 1).unwrap() {
        let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
        let equals = texts.iter().position(|text| text == "=").unwrap();
        assert_eq!(texts[equals + 1..], sum_of(&texts[..equals], false));
        let slices = task.token_slices(&sample);
        let digits = (texts.len() - equals - 2) as u32;
        let expected: Vec<u32> = (0..digits).rev().chain([digits]).collect();
        assert_eq!(slices, [("place", expected)]);
    }
}

#[test]
fn grid_meets_every_cell_equally_often_and_evenly_from_the_start() {
    let task = AdditionConfig::default().build().unwrap();
    let counts = |n: usize, count| {
        let mut counts = BTreeMap::new();
        for sample in task.eval_set("grid", n, count, 2).unwrap() {
            *counts.entry([sample.slices[0].1, sample.slices[1].1]).or_insert(0) += 1;
        }
        counts
    };
    for n in [1, 2, 7, 10] {
        let full = counts(n, 3 * n * n);
        assert_eq!(full.len(), n * n);
        assert!(full.values().all(|c| *c == 3));
    }
    // A third of the cells: no quarter of the grid is missed or crowded.
    let part = counts(40, 533);
    assert_eq!(part.len(), 533);
    for (rows, columns) in [(0, 0), (0, 20), (20, 0), (20, 20)] {
        let inside = |cell: &&[u32; 2]| {
            (rows + 1..=rows + 20).contains(&cell[0])
                && (columns + 1..=columns + 20).contains(&cell[1])
        };
        assert!(part.keys().filter(inside).count().abs_diff(133) < 25);
    }
}

#[test]
fn diagonal_has_all_digits_and_numbers_never_start_with_zero() {
    let task = AdditionConfig::default().build().unwrap();
    for sample in task.eval_set("diagonal", 9, 200, 3).unwrap() {
        assert_eq!(sample.slices[..2], [("digits-a", 9), ("digits-b", 9)]);
        assert!(sample.tokens[8] > 0 && sample.tokens[18] > 0);
    }
    let trained: Vec<&str> =
        task.splits().iter().filter(|s| s.in_distribution).map(|s| s.name).collect();
    assert_eq!(trained, ["grid"], "training draws both sizes");
}

#[test]
fn training_sizes_are_uniform_and_independent() {
    let task = AdditionConfig::default().build().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut counts = BTreeMap::new();
    for _ in 0..9000 {
        let sample = task.train_sample(3, &mut rng);
        *counts.entry([sample.slices[0].1, sample.slices[1].1]).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.len(), 9);
    assert!(counts.values().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
}

#[test]
fn chance_is_that_of_the_commonest_sum_among_all_problems() {
    let task = AdditionConfig::default().build().unwrap();
    for n in [1, 2, 3_u32] {
        let mut sums = BTreeMap::new();
        let numbers = |digits: u32| 10_u32.pow(digits - 1)..10_u32.pow(digits);
        for i in 1..=n {
            for j in 1..=n {
                let problems = f64::from(n * n) * (numbers(i).len() * numbers(j).len()) as f64;
                for a in numbers(i) {
                    for b in numbers(j) {
                        *sums.entry(a + b).or_insert(0.0) += 1.0 / problems;
                    }
                }
            }
        }
        let commonest = sums.into_values().reduce(f64::max).unwrap();
        assert!((task.chance_at(n as usize).unwrap() - commonest).abs() < 1e-9, "{n}");
    }
}

#[test]
fn carries_are_the_longest_run() {
    let task = AdditionConfig::default().build().unwrap();
    for sample in task.eval_set("diagonal", 6, 300, 5).unwrap() {
        let [mut carry, mut run, mut longest] = [0; 3];
        for k in 0..6 {
            carry = (sample.tokens[k] + sample.tokens[7 + k] + carry) / 10;
            run = if carry == 1 { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        assert_eq!(sample.slices[2], ("carries", longest));
    }
}

#[test]
fn bad_settings_and_lengths_are_refused() {
    let unknown = serde_json::from_str::<AdditionConfig>(r#"{"order": "backwards"}"#);
    assert!(unknown.unwrap_err().to_string().contains("expected `reversed` or `plain`"));
    let task = AdditionConfig::default().build().unwrap();
    assert!(task.check_len(0).unwrap_err().to_string().contains("the maximum number of digits"));
}
