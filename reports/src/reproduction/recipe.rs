//! Whether a record is the experiment of a published number, and where its recipe differs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::published::Paths;

/// Stands for a path without a value: absent, or null.
const UNSET: &str = "unset";

/// Two numbers are one if they differ by no more than this share: one may have been through a file.
const ROUNDING: f64 = 1e-12;

/// The value that a path of a configuration must have.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// One of several.
    Any {
        /// Which.
        any: Vec<Value>,
    },
    /// This one.
    One(Value),
}

impl Expected {
    fn holds(&self, found: Option<&Value>) -> bool {
        let is = |value: &Value| match found {
            None => value.as_str() == Some(UNSET),
            Some(found) => same(value, found),
        };
        match self {
            Self::Any { any } => any.iter().any(is),
            Self::One(value) => is(value),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Any { any } => any.iter().map(plain).collect::<Vec<_>>().join(" or "),
            Self::One(value) => plain(value),
        }
    }
}

/// A value as people write it: text without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Equal, where 4 and 4.0 are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= ROUNDING * a.abs().max(b.abs()),
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().all(|key| match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => same(a, b),
                _ => false,
            })
        }
        (a, b) => a == b,
    }
}

/// What stands at a dotted path; null counts as nothing.
fn at<'a>(config: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(config, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// A setting that is not the published one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Dotted path in the record's configuration.
    pub path: String,
    /// The published value.
    pub published: String,
    /// Ours.
    pub ours: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} (published: {})", self.path, self.ours, self.published)
    }
}

/// Whether a configuration has what makes it this experiment.
pub fn is_identical(config: &Value, identity: &Paths) -> bool {
    identity.iter().all(|(path, expected)| expected.holds(at(config, path)))
}

/// The settings of a configuration that are not the published ones, in the order of their paths.
pub fn differences(config: &Value, recipe: &Paths) -> Vec<Difference> {
    recipe
        .iter()
        .filter(|(path, expected)| !expected.holds(at(config, path)))
        .map(|(path, expected)| Difference {
            path: path.clone(),
            published: expected.text(),
            ours: at(config, path).map_or_else(|| UNSET.to_owned(), plain),
        })
        .collect()
}

/// An encoding as records have it: what `encoding` holds in their configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Registry ids.
    pub id: String,
    /// Complete settings.
    pub settings: Value,
}

impl Identity {
    /// Whether `config` is a run of this encoding. Settings in `free` may differ; one that only one of the
    /// two knows is no difference: options that came later start with what was done before.
    pub fn is_of(&self, config: &Value, free: &BTreeSet<String>) -> bool {
        let Some(found) = config.get("encoding") else { return false };
        if found.get("id").and_then(Value::as_str) != Some(&self.id) {
            return false;
        }
        match (&self.settings, found.get("settings")) {
            (Value::Object(published), Some(Value::Object(ours))) => published
                .iter()
                .filter(|(key, _)| !free.contains(*key))
                .all(|(key, value)| ours.get(key).is_none_or(|found| same(value, found))),
            (published, Some(ours)) => same(published, ours),
            (_, None) => false,
        }
    }

    /// Free settings that the run chose otherwise than this expression does, each as `setting value`.
    pub fn choices(&self, config: &Value, free: &BTreeSet<String>) -> Vec<String> {
        let chosen = |key: &String| {
            let ours = config.get("encoding")?.get("settings")?.get(key)?;
            let other = self.settings.get(key).is_some_and(|value| !same(value, ours));
            other.then(|| format!("{key} {}", plain(ours)))
        };
        free.iter().filter_map(chosen).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(value: Value) -> Paths {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn numbers_are_compared_as_numbers_and_null_is_unset() {
        let config = json!({"train": {"steps": 900, "rate": 3e-4}, "model": {"width": null}});
        let same = json!({"train.steps": 900.0, "train.rate": 0.0003, "model.width": "unset", "model.gone": "unset"});
        assert!(is_identical(&config, &paths(same)));
        let any =
            json!({"model.width": {"any": ["unset", 1024]}, "train.steps": {"any": [1, 900]}});
        assert!(is_identical(&config, &paths(any)));
        for other in
            [json!({"train.steps": 901}), json!({"train.rate": "unset"}), json!({"model.width": 4})]
        {
            assert!(!is_identical(&config, &paths(other.clone())), "{other}");
        }
    }

    #[test]
    fn a_difference_names_path_and_both_values() {
        let config = json!({"train": {"steps": 900}});
        let recipe = paths(json!({"train.steps": 10000, "model.norm_place": "post"}));
        let found: Vec<String> =
            differences(&config, &recipe).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["model.norm_place unset (published: post)", "train.steps 900 (published: 10000)"]
        );
        assert_eq!(
            differences(
                &json!({"train": {"steps": 1e4}, "model": {"norm_place": "post"}}),
                &recipe
            ),
            []
        );
    }

    #[test]
    fn settings_must_be_equal_unless_they_are_free_or_new() {
        let cope = Identity {
            id: "cope".into(),
            settings: json!({"gates": "query-key", "max_positions": 64}),
        };
        let free = BTreeSet::from(["max_positions".to_owned()]);
        let run = |settings: Value| json!({"encoding": {"id": "cope", "settings": settings}});
        assert!(
            cope.is_of(&run(json!({"gates": "query-key", "max_positions": 64})), &BTreeSet::new())
        );
        assert!(
            !cope.is_of(&run(json!({"gates": "query-key", "max_positions": 16})), &BTreeSet::new())
        );
        assert!(cope.is_of(&run(json!({"gates": "query-key", "max_positions": 16})), &free));
        let chosen = run(json!({"gates": "query-key", "max_positions": 16}));
        assert_eq!(cope.choices(&chosen, &free), ["max_positions 16"]);
        assert!(!cope.is_of(&run(json!({"gates": "query-value", "max_positions": 64})), &free));
        assert!(cope.is_of(&run(json!({"gates": "query-key", "later": 1})), &free));
        assert!(!cope.is_of(&json!({"encoding": {"id": "rope", "settings": {}}}), &free));
        assert!(!cope.is_of(&json!({}), &free));
    }

    #[test]
    fn settings_that_are_no_map_are_compared_as_a_whole() {
        let both = Identity { id: "cope+rope".into(), settings: json!(["a", 1]) };
        let run = |settings: Value| json!({"encoding": {"id": "cope+rope", "settings": settings}});
        assert!(both.is_of(&run(json!(["a", 1.0])), &BTreeSet::new()));
        assert!(!both.is_of(&run(json!(["a", 2])), &BTreeSet::new()));
    }
}
