//! Tests of MQAR.

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v2 e93fb5299dede4c79159afebf6c709ab0947a3b08f17703f548ed1c4f8a7ece8";

fn small(pairs: u32, vocab: u32) -> MqarConfig {
    MqarConfig { pairs, vocab, ..MqarConfig::default() }
}

pub(crate) fn example() -> Example {
    let few = TaskConfig::from(small(4, 30));
    Example::synthetic(TaskConfig::from(MqarConfig::default()), 24, oracle, GOLDEN)
        .with_oracle_config(few, 40)
        .with_chance_config(TaskConfig::from(small(2, 12)), 20)
}

/// Returns the value after the first occurrence of the last key.
fn oracle(prefix: &[String]) -> Option<String> {
    let (key, before) = prefix.split_last()?;
    assert!(key.starts_with('k'));
    let found = before.iter().position(|text| text == key)?;
    assert!(found.is_multiple_of(2) && before[found + 1].starts_with('v'));
    before.get(found + 1).cloned()
}

#[test]
fn every_pair_is_asked_once_in_a_slot_of_its_own() {
    // As many slots as pairs: all are taken.
    for (gaps, filler) in [(Gaps::PowerLaw, SlotFiller::Blank), (Gaps::Uniform, SlotFiller::Random)]
    {
        let config = MqarConfig { filler, gaps, ..small(6, 40) };
        let task = config.build().unwrap();
        for len in [24, 60] {
            for sample in task.eval_set("uniform", len, 50, 1).unwrap() {
                let mut asked: Vec<&[u32]> = (13..len)
                    .step_by(2)
                    .filter(|t| sample.scored[*t])
                    .map(|t| &sample.tokens[t - 1..=t])
                    .collect();
                assert_eq!(sample.scored.iter().filter(|s| **s).count(), 6);
                let mut shown: Vec<&[u32]> = sample.tokens[..12].chunks(2).collect();
                asked.sort_unstable();
                shown.sort_unstable();
                assert_eq!(asked, shown);
            }
        }
    }
}

#[test]
fn a_taken_slot_is_replaced_by_the_next_free_one() {
    let mut next: Vec<u32> = (0..5).collect();
    let drawn = [3, 3, 3, 1, 3].map(|slot| {
        let free = free_slot(&mut next, slot);
        next[free] = (free as u32 + 1) % 5;
        free
    });
    assert_eq!(drawn, [3, 4, 0, 1, 2]);
}

/// With a small vocabulary, a filler of arbitrary tokens would have a key in every seventh slot.
#[test]
fn keys_occur_in_their_pairs_and_questions_only() {
    let task = small(4, 64).build().unwrap();
    let mut filler: std::collections::BTreeSet<u32> = std::collections::BTreeSet::new();
    for len in [16, 64, 256] {
        for sample in task.eval_set("uniform", len, 100, 4).unwrap() {
            for key in sample.tokens[..8].iter().step_by(2) {
                let places = (0..len).filter(|t| sample.tokens[*t] == *key).collect::<Vec<_>>();
                assert!(places.len() == 2 && sample.scored[places[1] + 1], "{places:?}");
            }
            filler.extend(&sample.tokens[8..]);
        }
    }
    assert_eq!(filler.len(), 64, "every token is a filler where it is not a key");
}

#[test]
fn power_law_asks_soon_and_uniform_anywhere() {
    let early = |gaps| {
        let task = MqarConfig { gaps, ..small(1, 40) }.build().unwrap();
        let set = task.eval_set("uniform", 2 + 2 * 127, 4000, 2).unwrap();
        set.iter().filter(|s| s.slices[0].1 <= 2 * 15).count()
    };
    // 15 of 127 slots hold 4 of 7 octaves, but 0.118 of the slots.
    assert!(early(Gaps::PowerLaw).abs_diff(2286) < 160);
    assert!(early(Gaps::Uniform).abs_diff(472) < 110);
}

#[test]
fn slices_agree_with_the_tokens() {
    let task = small(3, 20).build().unwrap();
    for sample in task.eval_set("uniform", 30, 50, 3).unwrap() {
        let answers: Vec<usize> = (0..30).filter(|t| sample.scored[*t]).collect();
        assert_eq!(sample.slices, [("span", *answers.last().unwrap() as u32 - 1)]);
        let distances = answers.iter().map(|t| {
            let value = sample.tokens[..6].iter().rposition(|v| *v == sample.tokens[*t]);
            (t - value.unwrap()) as u32
        });
        assert_eq!(task.token_slices(&sample), [("distance", distances.collect())]);
    }
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    let said = |pairs, vocab| small(pairs, vocab).build().unwrap_err().to_string();
    assert_eq!(said(4, 3), "mqar: vocab is 3, must be between 4 and 131072");
    assert_eq!(
        said(5, 10),
        "mqar: pairs is 5, must be between 1 and 4, the keys that vocab 10 has"
    );
    assert!(said(0, 10).contains("pairs is 0"));
    let task = MqarConfig::default().build().unwrap();
    assert!(task.check_len(14).unwrap_err().to_string().contains("between 16 and"));
    assert!(task.check_len(17).unwrap_err().to_string().contains("even, such as 18"));
}
