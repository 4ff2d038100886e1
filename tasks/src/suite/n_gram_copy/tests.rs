//! Tests of n-gram copy.

use super::*;
use crate::settings::TaskSettings as _;
use crate::testing::Example;
use crate::{Task, TaskConfig};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 94907e8c3d292c0faa8ee7d369179d588be6fab62582914ca6d034da782591ab";

fn config(query: Query) -> NGramCopyConfig {
    NGramCopyConfig { query, ..NGramCopyConfig::default() }
}

pub(crate) fn example() -> Example {
    let short = NGramCopyConfig {
        letters: 4,
        answer_letters: Some(3),
        min_len: 6,
        ..config(Query::Prefix)
    };
    Example::synthetic(TaskConfig::from(config(Query::Suffix)), 12, oracle, GOLDEN)
        .with_oracle_config(TaskConfig::from(config(Query::Prefix)), 16)
        .with_chance_config(TaskConfig::from(short), 12)
}

/// Finds the n-gram in the string, wherever the query is, and copies from there.
fn oracle(prefix: &[String]) -> Option<String> {
    let bars: Vec<usize> = (0..prefix.len()).filter(|t| prefix[*t] == "|").collect();
    let (query, string, done) = match bars[..] {
        [only] => (&prefix[only + 1..only + 4], &prefix[1..only], prefix.len() - only - 4),
        [first, second] => {
            (&prefix[1..first], &prefix[first + 1..second], prefix.len() - second - 1)
        }
        _ => return None,
    };
    let found = string.windows(3).position(|window| window == query)?;
    Some(string.get(found + 3 + done).cloned().unwrap_or_else(|| ".".to_owned()))
}

#[test]
fn both_forms_are_as_documented_and_the_n_gram_is_unique() {
    for (query, answer_letters) in [
        (Query::Prefix, None),
        (Query::Suffix, None),
        (Query::Prefix, Some(2)),
        (Query::Suffix, Some(2)),
    ] {
        let settings = NGramCopyConfig { letters: 3, answer_letters, min_len: 5, ..config(query) };
        let task = settings.build().unwrap();
        for sample in task.eval_set("uniform", 14, 100, 1).unwrap() {
            let text: String = sample.tokens.iter().map(|t| task.token_text(*t)).collect();
            let parts: Vec<&str> = text.trim_matches(['$', '.']).split('|').collect();
            let (string, asked, answer) = match query {
                Query::Prefix => (parts[1], parts[0], parts[2]),
                Query::Suffix => (parts[0], &parts[1][..3], &parts[1][3..]),
            };
            assert_eq!(string.len(), 14);
            let overlapping = (0..12).filter(|t| string[*t..].starts_with(asked)).count();
            assert_eq!(overlapping, 1, "{text}");
            let (_, after) = string.split_once(asked).unwrap();
            assert_eq!(answer, &after[..answer_letters.map_or(after.len(), |n| n as usize)]);
            assert_eq!(sample.slices[1], ("answer", answer.len() as u32));
            let scored: Vec<usize> = (0..text.len()).filter(|t| sample.scored[*t]).collect();
            assert_eq!(scored, (text.len() - answer.len() - 1..text.len()).collect::<Vec<_>>());
            let distance = sample.slices[2].1 as usize;
            assert_eq!(sample.tokens[scored[0]], sample.tokens[scored[0] - distance]);
        }
    }
}

#[test]
fn every_length_of_the_answer_occurs_and_chance_is_that_of_the_shortest() {
    let task = config(Query::Suffix).build().unwrap();
    let set = task.eval_set("uniform", 13, 10_000, 2).unwrap();
    let mut counts = [0_u32; 10];
    for sample in &set {
        counts[sample.slices[1].1 as usize - 1] += 1;
    }
    assert!(counts.iter().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
    let chance = task.chance_at(13).unwrap();
    assert!((chance - 1.0 / 260.0).abs() < 1e-12);
    let of_one_letter = set.iter().filter(|s| s.slices[1].1 == 1);
    let guessed = of_one_letter.filter(|s| s.tokens[s.tokens.len() - 2] == 0).count();
    // 38.5 expected, 5 standard deviations.
    assert!(guessed.abs_diff(38) < 32, "{guessed}");
}

#[test]
fn is_trained_to_a_length_and_tested_beyond() {
    let config = NGramCopyConfig { ngram: 2, min_len: 4, ..NGramCopyConfig::default() };
    let task = config.build().unwrap();
    let mut rng = rand::SeedableRng::seed_from_u64(3);
    let lengths: std::collections::BTreeSet<u32> =
        (0..500).map(|_| task.train_sample(9, &mut rng).slices[0].1).collect();
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), (4..=9).collect::<Vec<_>>());
    crate::testing::strings::alphabet_is_checked("n-gram-copy");
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    let said = |json| {
        let config: NGramCopyConfig = serde_json::from_str(json).unwrap();
        config.build().unwrap_err().to_string()
    };
    assert_eq!(said(r#"{"ngram": 9}"#), "n-gram-copy: ngram is 9, must be between 1 and 8");
    assert!(said(r#"{"answer_letters": 0}"#).contains("answer_letters is 0"));
    assert!(said(r#"{"min_len": 3}"#).contains("min_len is 3, must be between 4, the n-gram"));
    assert!(said(r#"{"answer_letters": 5}"#).contains("min_len is 4, must be between 8,"));
    let task = NGramCopyConfig { letters: 2, ..config(Query::Suffix) }.build().unwrap();
    assert!(task.check_len(16).is_ok());
    let said = task.check_len(17).unwrap_err().to_string();
    assert!(said.contains("at most 16 symbols") && said.contains("raise ngram"), "{said}");
    let settings = NGramCopyConfig { letters: 2, ngram: 1, min_len: 100, ..config(Query::Suffix) };
    let said = settings.build().unwrap_err().to_string();
    assert!(said.starts_with("n-gram-copy: min_len is 100, must be at most 4 symbols"), "{said}");
}

#[test]
fn chance_of_few_possible_n_grams_counts_that_the_asked_one_is_unique() {
    let config = NGramCopyConfig {
        letters: 2,
        ngram: 2,
        answer_letters: Some(2),
        ..NGramCopyConfig::default()
    };
    // By enumeration of all strings; 0.25 if answers were uniform.
    let chance = TaskConfig::from(config).build().unwrap().chance_at(8).unwrap();
    assert!((chance - 0.348).abs() < 0.02, "{chance}");

    // By enumeration, too; 0.0455 if every length of the answer were as frequent.
    let config = NGramCopyConfig { letters: 2, ngram: 3, ..NGramCopyConfig::default() };
    let chance = TaskConfig::from(config).build().unwrap().chance_at(14).unwrap();
    assert!((chance - 0.0409).abs() < 0.003, "{chance}");

    // Nearly uniform answers: the largest share of few samples is not the chance.
    let config = NGramCopyConfig {
        letters: 26,
        ngram: 2,
        answer_letters: Some(1),
        ..NGramCopyConfig::default()
    };
    let chance = TaskConfig::from(config).build().unwrap().chance_at(100).unwrap();
    assert!((chance - 1.0 / 26.0).abs() < 1e-12, "{chance}");
}
