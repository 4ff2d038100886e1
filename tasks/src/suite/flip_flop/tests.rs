//! Tests of flip-flop.

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

const IGNORE: u32 = 2;

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 a9160368629fa70e5b6e0eff5c414d2baec019bce532cdc64ef1bec62831b9f8";

pub(crate) fn example() -> Example {
    let config = TaskConfig::from(FlipFlopConfig::default());
    let last = FlipFlopConfig { scored: ScoredReads::LastRead, ..FlipFlopConfig::default() };
    Example::synthetic(config, 24, oracle, GOLDEN).with_chance_config(TaskConfig::from(last), 24)
}

/// Reads the whole prefix; after `r`, returns the bit after the last `w`.
fn oracle(prefix: &[String]) -> Option<String> {
    assert_eq!(prefix.last()?, "r");
    let written = prefix.iter().rposition(|text| text == "w")?;
    prefix.get(written + 1).cloned()
}

fn rates(split: &str) -> [f64; 3] {
    let task = FlipFlopConfig::default().build().unwrap();
    let mut counts = [0_u32; 3];
    for sample in task.eval_set(split, 512, 400, 1).unwrap() {
        for instruction in sample.tokens[2..510].iter().step_by(2) {
            counts[*instruction as usize] += 1;
        }
    }
    counts.map(|c| f64::from(c) / f64::from(counts.iter().sum::<u32>()))
}

#[test]
fn instructions_follow_the_probabilities_of_their_split() {
    for (split, ignore) in [("in-distribution", 0.8), ("sparse", 0.98), ("dense", 0.1)] {
        let [write, read, ignored] = rates(split);
        // 101,600 draws: the standard deviation is below 0.0016.
        assert!((ignored - ignore).abs() < 0.006, "{split}: {ignored}");
        assert!((write - read).abs() < 0.012, "{split}: {write} {read}");
    }
}

#[test]
fn expected_reads_are_those_of_the_paper() {
    let task = FlipFlopConfig::default().build().unwrap();
    for (split, expected) in [("in-distribution", 26.4), ("dense", 115.3), ("sparse", 3.54)] {
        let samples = task.eval_set(split, 512, 1000, 2).unwrap();
        let reads: u32 = samples.iter().map(|s| s.slices[0].1).sum();
        let mean = f64::from(reads) / 1000.0;
        assert!((mean - expected).abs() < 0.05 * expected, "{split}: {mean}");
    }
}

#[test]
fn slices_agree_with_the_tokens() {
    let task = FlipFlopConfig::default().build().unwrap();
    for sample in task.eval_set("dense", 40, 50, 3).unwrap() {
        let instructions = || sample.tokens.iter().step_by(2);
        let reads = instructions().filter(|t| **t == READ).count();
        let written = instructions().rposition(|t| *t == WRITE).unwrap();
        let distance = sample.tokens.len() - 2 - 2 * written;
        let expected = vec![("reads", reads as u32), ("distance", distance as u32)];
        assert_eq!(sample.slices, expected);
    }
}

#[test]
fn every_read_has_its_distance() {
    for scored in [ScoredReads::AllReads, ScoredReads::LastRead] {
        let config = FlipFlopConfig { scored, ..FlipFlopConfig::default() };
        let task = config.build().unwrap();
        for sample in task.eval_set("dense", 40, 50, 3).unwrap() {
            let [(name, distances)] = &task.token_slices(&sample)[..] else { panic!() };
            assert_eq!(*name, "read-distance");
            let asked: Vec<usize> = (0..40).filter(|t| sample.scored[*t]).collect();
            assert_eq!(asked.len(), distances.len());
            for (t, distance) in asked.iter().zip(distances) {
                let written = t - *distance as usize;
                assert_eq!((sample.tokens[written - 1], sample.tokens[t - 1]), (WRITE, READ));
                assert_eq!(sample.tokens[written], sample.tokens[*t]);
                let between = &sample.tokens[written + 1..*t];
                assert!(between.iter().step_by(2).all(|instruction| *instruction != WRITE));
            }
            assert_eq!(distances.last(), Some(&sample.slices[1].1));
        }
    }
}

#[test]
fn last_read_scores_the_final_bit_only_and_chance_is_one_half() {
    let config = FlipFlopConfig { scored: ScoredReads::LastRead, ..FlipFlopConfig::default() };
    let task = config.build().unwrap();
    assert_eq!(task.chance(), Some(0.5));
    let samples = task.eval_set("dense", 32, 2000, 4).unwrap();
    for sample in &samples {
        assert_eq!(sample.scored.iter().rposition(|s| *s), Some(31));
        assert_eq!(sample.scored.iter().filter(|s| **s).count(), 1);
    }
    let ones = samples.iter().filter(|s| s.tokens[31] == ZERO + 1).count();
    assert!(ones.abs_diff(1000) < 110, "{ones}");
}

/// The shared check guesses a whole answer; here the number of reads is known and one bit is guessed for all.
#[test]
fn chance_with_all_reads_is_what_one_bit_throughout_gets() {
    let task = FlipFlopConfig::default().build().unwrap();
    for (len, least) in [(4, 0.49), (24, 0.2), (128, 0.01)] {
        let chance = task.chance_at(len).unwrap();
        let set = task.eval_set("in-distribution", len, 20_000, 6).unwrap();
        let all_zero = |s: &&Sample| (0..len).all(|t| !s.scored[t] || s.tokens[t] == ZERO);
        let rate = set.iter().filter(all_zero).count() as f64 / 20_000.0;
        let tolerance = 5.0 * (chance * (1.0 - chance) / 20_000.0).sqrt();
        assert!((rate - chance).abs() < tolerance && chance > least, "{len}: {rate} {chance}");
    }
    assert_eq!(task.chance(), None);
}

#[test]
fn certain_and_impossible_instructions_are_allowed() {
    let config = FlipFlopConfig { ignore: 1.0, ignore_dense: 0.0, ..FlipFlopConfig::default() };
    let task = config.build().unwrap();
    let all = task.eval_set("in-distribution", 64, 20, 5).unwrap();
    assert!(all.iter().all(|s| s.slices == [("reads", 1), ("distance", 62)]));
    let none = task.eval_set("dense", 64, 20, 5).unwrap();
    assert!(none.iter().all(|s| !s.tokens.contains(&IGNORE)));
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    for (json, field) in [
        (r#"{"ignore": 1.5}"#, "ignore is 1.5"),
        (r#"{"ignore_sparse": -0.1}"#, "ignore_sparse is -0.1"),
        (r#"{"ignore_dense": 2}"#, "ignore_dense is 2.0"),
    ] {
        let config: FlipFlopConfig = serde_json::from_str(json).unwrap();
        let said = config.build().unwrap_err().to_string();
        assert_eq!(said, format!("flip-flop: {field}, must be between 0.0 and 1.0"));
    }
    let task = FlipFlopConfig::default().build().unwrap();
    assert!(task.check_len(7).unwrap_err().to_string().contains("must be even, such as 8"));
    assert!(task.check_len(2).unwrap_err().to_string().contains("between 4 and"));
}

#[test]
fn writes_are_what_is_counted() {
    let task = FlipFlopConfig::default().build().unwrap();
    for sample in task.eval_set("dense", 32, 20, 5).unwrap() {
        let counted = task.counted(&sample).unwrap();
        let texts = sample.tokens.iter().map(|token| task.token_text(*token));
        assert!(texts.zip(&counted).all(|(text, counted)| *counted == (text == "w")));
        assert!(counted[0], "the first instruction is a write");
    }
}
