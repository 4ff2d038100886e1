//! Shared tests of tasks on strings.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::settings::TaskConfig;

/// Splits a prefix `$ s | ...` into the string and the length of the answer so far.
pub(crate) fn parts(prefix: &[String]) -> Option<(&[String], usize)> {
    let bar = prefix.iter().position(|text| text == "|")?;
    assert_eq!(prefix[0], "$");
    Some((&prefix[1..bar], prefix.len() - bar - 1))
}

/// Returns the next token after `done` letters of an answer.
pub(crate) fn next(answer: &[String], done: usize) -> String {
    answer.get(done).cloned().unwrap_or_else(|| ".".to_owned())
}

/// Checks that training lengths are uniform from `min_len` to the requested one, that evaluation lengths are exact,
/// and that bad settings are refused by name. `min_len` must be 3 in `config`.
pub(crate) fn trained_to_a_length(config: &TaskConfig) {
    let task = config.build().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut counts = BTreeMap::new();
    for _ in 0..8000 {
        *counts.entry(task.train_sample(10, &mut rng).slices[0].1).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), (3..=10).collect::<Vec<_>>());
    assert!(counts.values().all(|c| c.abs_diff(1000) < 160), "{counts:?}");
    for len in [3, 10, 47] {
        let set = task.eval_set("uniform", len, 20, 5).unwrap();
        assert!(set.iter().all(|s| s.tokens.len() == task.max_tokens(len)));
        assert!(set.iter().all(|s| s.slices[0] == ("length", len as u32)));
    }
    assert!(task.check_len(2).unwrap_err().to_string().contains("min_len sets the minimum"));
    let id = config.meta().id;
    let said = |json: &str| {
        let config: TaskConfig = serde_json::from_str(json).unwrap();
        config.build().unwrap_err().to_string()
    };
    let expected = format!("{id}: min_len is 0, must be between 1");
    assert!(said(&format!(r#"{{"kind": "{id}", "min_len": 0}}"#)).starts_with(&expected));
}

/// Checks that the alphabet has 2 to 26 letters.
pub(crate) fn alphabet_is_checked(id: &str) {
    for letters in [1, 27] {
        let json = format!(r#"{{"kind": "{id}", "letters": {letters}}}"#);
        let config: TaskConfig = serde_json::from_str(&json).unwrap();
        let said = config.build().unwrap_err().to_string();
        assert_eq!(said, format!("{id}: letters is {letters}, must be between 2 and 26"));
    }
}
