//! What is true of text alone.

use super::*;
use crate::TaskConfig;
use crate::testing::{Example, harbour_text, write_temp};
use rand::SeedableRng;

/// Of `checks::golden`: version and hash.
const GOLDEN: &str = "v1 f33d643c502c8e2898997324dea6e924fa77e60d6c6abb0890f7a0b32f1eab87";

pub(crate) fn example() -> Example {
    let (folder, path) = write_temp(harbour_text().as_bytes());
    Example::from_text(TaskConfig::Text(TextConfig::Path(path)), folder, 24, oracle, GOLDEN)
}

/// Knows the text by heart: answers if the prefix occurs in it and always goes on in the same way.
fn oracle(prefix: &[String]) -> Option<String> {
    let text = harbour_text();
    let next = |(at, found): (usize, &str)| text[at + found.len()..].chars().next();
    let prefix = prefix.concat();
    let mut answers: Vec<char> = text.match_indices(&prefix).filter_map(next).collect();
    answers.dedup();
    match answers[..] {
        [only] => Some(only.to_string()),
        [] => Some(format!("{prefix:?} is not in the text")),
        _ => None,
    }
}

fn decode(task: &Text, sample: &Sample) -> String {
    sample.tokens.iter().map(|t| task.token_text(*t)).collect()
}

#[test]
fn vocabulary_is_sorted_and_spans_the_whole_text() {
    // Ten characters: the last, not seen in training, is in the vocabulary all the same.
    let task = Text::new("bbabababaé");
    assert_eq!(task.alphabet, ['a', 'b', 'é']);
    assert_eq!(task.cut, 9);
    assert_eq!(task.bytes_per_token(), Some(2.0));
    assert_eq!(task.token_text(2), "é");
    assert_eq!(task.token_text(3), "?");
}

#[test]
fn training_windows_come_from_the_first_part_and_reach_both_ends() {
    let text: String = ('a'..='z').chain('A'..='D').collect();
    let task = Text::new(&text);
    assert_eq!(task.cut, 27);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let windows: std::collections::BTreeSet<String> =
        (0..2000).map(|_| decode(&task, &task.train_sample(2, &mut rng))).collect();
    let all = (0..25).map(|start| text[start..start + 3].to_owned()).collect();
    assert_eq!(windows, all);
}

#[test]
fn validation_windows_do_not_overlap_and_spread_over_the_last_part() {
    let text = harbour_text();
    let task = Text::new(&text);
    let part: String = text.chars().skip(task.cut).collect();
    for (len, count) in [(9, 1), (9, 7), (9, task.max_eval_samples(9).unwrap())] {
        let set = task.eval_set("validation", len, count, 1).unwrap();
        assert_eq!(set, task.eval_set("validation", len, count, 2).unwrap());
        let chars: Vec<char> = part.chars().collect();
        let mut free_from = 0;
        for sample in &set {
            let window: Vec<char> = decode(&task, sample).chars().collect();
            let at = (free_from..=chars.len() - window.len())
                .find(|at| chars[*at..at + window.len()] == window);
            free_from = at.unwrap() + window.len();
        }
        assert_eq!(set.len(), count);
    }
}

#[test]
fn too_short_a_text_says_how_much_fits() {
    let task = Text::new(&"abcde".repeat(40));
    let said = task.eval_set("validation", 4, 5, 0).unwrap_err().to_string();
    assert!(
        said.starts_with("text: 5 windows of 5 characters do not fit into the validation part")
    );
    assert!(said.contains("20 characters (room for 4)"), "{said}");
    assert!(task.eval_set("validation", 4, 4, 0).is_ok());
    assert!(task.check_len(19).is_ok());
    assert!(task.check_len(20).unwrap_err().to_string().contains("validation part"));
    assert!(task.check_len(0).is_err());
    assert!(Text::new("").check_len(1).is_err());
}

#[test]
fn both_keys_together_are_refused_and_neither_is_the_default() {
    let parse = serde_json::from_str::<TaskConfig>;
    let said = parse(r#"{"kind": "text", "corpus": "a", "path": "b"}"#).unwrap_err();
    assert!(said.to_string().starts_with("text: `corpus` and `path` are both given"));
    let neither = parse(r#"{"kind": "text"}"#).unwrap();
    assert_eq!(neither, TaskConfig::Text(TextConfig::Corpus("tinyshakespeare".to_owned())));
    let json = serde_json::to_string(&neither).unwrap();
    assert_eq!(json, r#"{"kind":"text","corpus":"tinyshakespeare"}"#);
}

#[test]
#[ignore = "needs the cargo registry"]
fn tinyshakespeare_has_its_known_size() {
    let task = TextConfig::default().build().unwrap();
    assert_eq!((task.tokens.len(), task.vocab_size()), (1_115_390, 65));
    assert_eq!(task.bytes_per_token(), Some(1.0));
    let set = task.eval_set("validation", 256, 400, 0).unwrap();
    assert_eq!(set.len(), 400);
}
