//! Tests of selective copy.

use rand::SeedableRng;

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 d5f086a72d6d3f2f001d46394ff34a5b59a1369278692d8082c0b1f602b09f9a";

fn parse(json: &str) -> SelectiveCopyConfig {
    serde_json::from_str(json).unwrap()
}

pub(crate) fn example() -> Example {
    let mad = parse(r#"{"preset": "mad", "copied": 5, "train_samples": 300}"#);
    let s4 = parse(r#"{"preset": "s4", "copied": 3, "symbols": 3}"#);
    Example::synthetic(TaskConfig::from(parse("{}")), 16, oracle, GOLDEN)
        .with_oracle_config(TaskConfig::from(mad), 30)
        .with_chance_config(TaskConfig::from(s4), 10)
}

/// Removes the blanks before the sign and returns the symbol after those already in the answer.
fn oracle(prefix: &[String]) -> Option<String> {
    let sign = prefix.iter().position(|text| text == "|")?;
    let symbols: Vec<&String> = prefix[..sign].iter().filter(|text| *text != "_").collect();
    symbols.get(prefix.len() - sign - 1).map(|symbol| (*symbol).clone())
}

#[test]
fn sizes_are_those_of_the_papers() {
    let shape = |json, split: &str, len| {
        let task = parse(json).build().unwrap();
        let sample = &task.eval_set(split, len, 1, 1).unwrap()[0];
        let count = |token| sample.tokens.iter().filter(|t| **t == token).count();
        let [blank, sign] = [0, 1].map(|k| task.0.symbols() + k);
        let asked = sample.scored.iter().filter(|s| **s).count();
        (task.vocab_size(), asked, count(blank), count(sign), sample.tokens.len())
    };
    // 15 symbols and one blank are the 16 of the paper; the sign comes on top.
    assert_eq!(shape("{}", "in-distribution", 512), (17, 256, 256, 1, 769));
    assert_eq!(shape("{}", "dense", 512), (17, 256, 128, 1, 641));
    assert_eq!(shape("{}", "sparse", 512), (17, 256, 512, 1, 1025));
    assert_eq!(shape(r#"{"preset": "mad"}"#, "in-distribution", 239), (16, 16, 223, 1, 256));
    assert_eq!(shape(r#"{"preset": "s4"}"#, "in-distribution", 4112), (15, 16, 4096, 0, 4128));
}

#[test]
fn marker_free_answers_are_the_symbols_in_order() {
    let task = parse(r#"{"preset": "s4", "copied": 4}"#).build().unwrap();
    for sample in task.eval_set("in-distribution", 12, 100, 2).unwrap() {
        let symbols: Vec<u32> = sample.tokens[..12].iter().copied().filter(|t| *t != 14).collect();
        assert_eq!(symbols, sample.tokens[12..]);
        assert_eq!(sample.scored.iter().rposition(|s| !*s), Some(11));
    }
}

#[test]
fn all_orders_are_equally_likely_but_for_mad_whose_context_ends_with_a_symbol() {
    let places = |preset: &str| {
        let json = format!(r#"{{"preset": "{preset}", "copied": 2}}"#);
        let task = parse(&json).build().unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for sample in task.eval_set("in-distribution", 4, 6000, 3).unwrap() {
            let is_symbol: Vec<bool> =
                sample.tokens[..4].iter().map(|t| *t != task.0.blank()).collect();
            *counts.entry(is_symbol).or_insert(0_u32) += 1;
        }
        counts
    };
    let s4 = places("s4");
    assert_eq!(s4.len(), 6);
    assert!(s4.values().all(|c| c.abs_diff(1000) < 160), "{s4:?}");
    // Each of two blanks before the first or the second symbol: 1/4, 1/2, 1/4.
    let mad = places("mad");
    assert_eq!(mad.len(), 3);
    assert!(mad.keys().all(|order| order[3]));
    assert!(mad[&vec![false, true, false, true]].abs_diff(3000) < 200, "{mad:?}");
}

#[test]
fn slices_agree_with_the_tokens() {
    let task = parse("{}").build().unwrap();
    for split in ["in-distribution", "dense", "sparse"] {
        for sample in task.eval_set(split, 20, 20, 4).unwrap() {
            let sign = sample.tokens.iter().position(|t| *t == 16).unwrap();
            let blanks = sample.tokens.iter().filter(|t| **t == 15).count() as u32;
            assert_eq!(sample.slices, [("copied", 10), ("blanks", blanks)]);
            let [(_, index), (_, distance)] = &task.token_slices(&sample)[..] else { panic!() };
            assert_eq!(*index, (0..10).collect::<Vec<_>>());
            for (index, distance) in index.iter().zip(distance) {
                let answer = sign + 1 + *index as usize;
                let place = answer - *distance as usize;
                assert_eq!(sample.tokens[place], sample.tokens[answer]);
                let before = sample.tokens[..place].iter().filter(|t| **t != 15).count();
                assert_eq!(before, *index as usize);
            }
        }
    }
}

#[test]
fn finite_training_set_is_kept_to() {
    let task = parse(r#"{"preset": "mad", "train_samples": 7}"#).build().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let seen: std::collections::BTreeSet<Vec<u32>> =
        (0..300).map(|_| task.train_sample(60, &mut rng).tokens).collect();
    assert_eq!(seen.len(), 7);
}

#[test]
fn presets_survive_a_round_trip_and_mixing_their_settings_is_refused() {
    for json in [
        r#"{"preset":"cope","symbols":15,"blanks":1.0,"blanks_dense":0.5,"blanks_sparse":2.0}"#,
        r#"{"preset":"mad","symbols":14,"copied":16}"#,
        r#"{"preset":"mad","symbols":14,"copied":16,"train_samples":12800}"#,
        r#"{"preset":"s4","symbols":14,"copied":16}"#,
    ] {
        assert_eq!(serde_json::to_string(&parse(json)).unwrap(), json);
    }
    let said = |json| serde_json::from_str::<TaskConfig>(json).unwrap_err().to_string();
    let mixed = said(r#"{"kind": "selective-copy", "copied": 3}"#);
    assert!(mixed.starts_with("selective-copy: unknown field `copied`, expected"), "{mixed}");
    let mixed = said(r#"{"kind": "selective-copy", "preset": "s4", "blanks": 2}"#);
    assert!(mixed.contains("unknown field `blanks`, expected `symbols` or `copied`"), "{mixed}");
    let unknown = said(r#"{"kind": "selective-copy", "preset": "copes"}"#);
    let expected = "selective-copy: unknown preset \"copes\" (did you mean `cope`?); \
                    known presets: cope, mad, s4";
    assert_eq!(unknown, expected);
    assert!(said(r#"{"kind": "selective-copy", "preset": 3}"#).contains("unknown preset 3;"));
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    let said = |json| parse(json).build().unwrap_err().to_string();
    let expected = "selective-copy: symbols is 1, must be between 2 and 65536";
    assert_eq!(said(r#"{"symbols": 1}"#), expected);
    assert!(said(r#"{"blanks": -1}"#).contains("blanks is -1.0, must be between 0.0"));
    assert!(said(r#"{"blanks_sparse": 1001}"#).contains("blanks_sparse is 1001.0"));
    assert!(said(r#"{"preset": "mad", "copied": 0}"#).contains("copied is 0"));
    assert!(said(r#"{"preset": "mad", "train_samples": 0}"#).contains("train_samples is 0"));
    let task = parse(r#"{"preset": "s4"}"#).build().unwrap();
    assert!(task.check_len(15).unwrap_err().to_string().contains("between 16 and"));
    assert!(parse("{}").build().unwrap().check_len(0).is_err());
    let task = parse(r#"{"blanks": 1000}"#).build().unwrap();
    let said = task.check_len(500).unwrap_err().to_string();
    assert!(said.contains("between 501 and") && said.contains("one symbol with its"), "{said}");
    assert_eq!(task.eval_set("in-distribution", 501, 1, 1).unwrap()[0].slices[0], ("copied", 1));
    for (json, least) in [("{}", 1), (r#"{"blanks": 0}"#, 1), (r#"{"blanks": 2.5}"#, 2)] {
        let task = parse(json).build().unwrap();
        assert!(task.check_len(least).is_ok() && task.check_len(least - 1).is_err(), "{json}");
    }
    let said = |json| serde_json::from_str::<TaskConfig>(json).unwrap_err().to_string();
    let mistyped = said(r#"{"kind": "selective-copy", "blanks": "x"}"#);
    assert!(mistyped.starts_with("selective-copy: blanks: invalid type: string"), "{mistyped}");
}

#[test]
fn symbols_are_counted_and_as_many_lie_between_each_and_its_copy() {
    for json in ["{}", r#"{"preset": "mad"}"#, r#"{"preset": "s4"}"#] {
        let task = parse(json).build().unwrap();
        for sample in task.eval_set("in-distribution", 40, 20, 4).unwrap() {
            let counted = task.counted(&sample).unwrap();
            let blank = |t: usize| ["_", "|"].contains(&&*task.token_text(sample.tokens[t]));
            assert!((0..counted.len()).all(|t| counted[t] != blank(t)), "{json}");
            let distance = task.token_slices(&sample).swap_remove(1).1;
            let answers = (0..counted.len()).filter(|t| sample.scored[*t]);
            let between = answers.zip(distance).map(|(t, distance)| {
                counted[t - distance as usize..t].iter().filter(|counted| **counted).count() as u32
            });
            assert!(between.into_iter().all(|count| count == sample.slices[0].1), "{json}");
        }
    }
}

#[test]
fn a_length_of_0_is_refused() {
    for preset in ["cope", "mad", "s4"] {
        let task = parse(&format!(r#"{{"preset": "{preset}"}}"#)).build().unwrap();
        assert!(task.max_train_tokens(0) > 0, "{preset}");
        assert!(task.check_len(0).is_err(), "{preset}");
    }
}
