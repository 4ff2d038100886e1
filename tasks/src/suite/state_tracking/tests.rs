//! Tests of state tracking.

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 9e99a23de66ef5665c4b04f7af4273e7e9898e45b767c91dea154b2e44d2c1d9";

fn config(group: PermutationGroup, answer: AskedProducts) -> StateTrackingConfig {
    StateTrackingConfig { group, answer, min_len: 1 }
}

pub(crate) fn example() -> Example {
    let [s3, prefixes] = [AskedProducts::Final, AskedProducts::Prefixes]
        .map(|answer| TaskConfig::from(config(PermutationGroup::S3, answer)));
    let a5 = TaskConfig::from(config(PermutationGroup::A5, AskedProducts::Prefixes));
    Example::synthetic(s3, 12, oracle, GOLDEN)
        .with_oracle_config(a5, 12)
        .with_chance_config(prefixes, 3)
}

/// Returns the product of as many moves as there are answers so far, plus one; for `final`, of all moves.
fn oracle(prefix: &[String]) -> Option<String> {
    let equals = prefix.iter().position(|text| text == "=")?;
    Some(product(&prefix[..prefix.len() - equals]))
}

/// Applies the moves one by one to the things.
fn product(moves: &[String]) -> String {
    let mut state: Vec<char> = ('1'..='9').take(moves[0].len()).collect();
    for step in moves {
        let becomes: Vec<char> = step.chars().collect();
        for thing in &mut state {
            *thing = becomes[thing.to_digit(10).unwrap() as usize - 1];
        }
    }
    state.into_iter().collect()
}

#[test]
fn groups_have_their_orders_and_are_closed() {
    for (group, order) in
        [(PermutationGroup::S3, 6), (PermutationGroup::S5, 120), (PermutationGroup::A5, 60)]
    {
        let GroupTable { texts, products } = group.table();
        assert_eq!((texts.len(), products.len()), (order, order * order));
        assert!(texts.windows(2).all(|pair| pair[0] < pair[1]));
        for row in products.chunks(order) {
            let mut row = row.to_vec();
            row.sort_unstable();
            assert_eq!(row, (0..order as u32).collect::<Vec<_>>());
        }
        // The first element changes nothing.
        assert_eq!(products[..order], (0..order as u32).collect::<Vec<_>>());
    }
}

#[test]
fn final_answers_are_products_in_every_group() {
    for group in [PermutationGroup::S3, PermutationGroup::S5, PermutationGroup::A5] {
        let task = config(group, AskedProducts::Final).build().unwrap();
        for sample in task.eval_set("uniform", 20, 50, 1).unwrap() {
            let texts: Vec<String> = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
            assert_eq!(texts.len(), 22);
            assert_eq!(texts[21], product(&texts[..20]));
            assert_eq!(task.token_slices(&sample), [("moves", vec![20])]);
        }
    }
}

#[test]
fn prefixes_are_counted_from_the_first_move() {
    let task = config(PermutationGroup::S3, AskedProducts::Prefixes).build().unwrap();
    let sample = &task.eval_set("uniform", 4, 1, 1).unwrap()[0];
    assert_eq!(sample.tokens.len(), 9);
    assert_eq!(task.token_slices(sample), [("moves", vec![1, 2, 3, 4])]);
    assert_eq!(sample.tokens[5], sample.tokens[0]);
}

#[test]
fn is_trained_to_a_length_and_tested_beyond() {
    let config = StateTrackingConfig { min_len: 3, ..StateTrackingConfig::default() };
    crate::testing::strings::trained_to_a_length(&TaskConfig::from(config));
    let unknown = serde_json::from_str::<StateTrackingConfig>(r#"{"group": "s4"}"#);
    assert!(unknown.unwrap_err().to_string().contains("unknown variant `s4`, expected one of"));
}
