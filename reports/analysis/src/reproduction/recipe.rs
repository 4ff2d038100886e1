//! Comparison of a record's configuration with the recipe of a published number.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Paths of a record's configuration with the values that they must have.
pub type Paths = BTreeMap<String, Expected>;

/// Placeholder for a path that is absent or null.
const UNSET: &str = "unset";

/// Relative difference up to which two numbers are equal, because one may have been rounded in a file.
const ROUNDING: f64 = 1e-12;

/// The value that a path of a configuration must have.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// One of several values.
    Any {
        /// Values that are allowed.
        any: Vec<Value>,
    },
    /// A text that contains this one, such as the path of a corpus.
    Contains {
        /// Text that must occur.
        contains: String,
    },
    /// Exactly the given value.
    One(Value),
}

impl Expected {
    /// The value, if there is only one.
    pub fn one(&self) -> Option<&Value> {
        match self {
            Self::Any { .. } | Self::Contains { .. } => None,
            Self::One(value) => Some(value),
        }
    }

    fn holds(&self, found: Option<&Value>) -> bool {
        let is = |value: &Value| match found {
            None => value.as_str() == Some(UNSET),
            Some(found) => same(value, found),
        };
        match self {
            Self::Any { any } => any.iter().any(is),
            Self::Contains { contains } => {
                found.and_then(Value::as_str).is_some_and(|found| found.contains(contains.as_str()))
            }
            Self::One(value) => is(value),
        }
    }

    /// Formats the value, or the values joined by `or`.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Any { any } => any.iter().map(plain).collect::<Vec<_>>().join(" or "),
            Self::Contains { contains } => contains.clone(),
            Self::One(value) => plain(value),
        }
    }
}

/// Formats a value without the quotation marks of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Compares values; 4 and 4.0 are equal.
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

/// Looks up a dotted path; null counts as absent.
fn at<'a>(config: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(config, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// A setting that differs from the published one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingDifference {
    /// Dotted path in the record's configuration.
    pub path: String,
    /// Published value, as text.
    pub published: String,
    /// Our value, as text.
    pub ours: String,
}

impl SettingDifference {
    /// Factor between two positive numbers, as the absolute value of its natural logarithm; 0 for other values.
    pub(super) fn distance(&self) -> f64 {
        let number = |text: &str| text.parse::<f64>().ok().filter(|value| *value > 0.0);
        match (number(&self.ours), number(&self.published)) {
            (Some(ours), Some(published)) => (ours / published).ln().abs(),
            _ => 0.0,
        }
    }
}

impl std::fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} (published: {})", self.path, self.ours, self.published)
    }
}

/// Reports whether a configuration has the values of `identity`.
pub fn is_identical(config: &Value, identity: &Paths) -> bool {
    identity.iter().all(|(path, expected)| expected.holds(at(config, path)))
}

/// Returns the settings of a configuration that differ from the published ones, in the order of their paths.
pub fn differences(config: &Value, recipe: &Paths) -> Vec<SettingDifference> {
    recipe
        .iter()
        .filter(|(path, expected)| !expected.holds(at(config, path)))
        .map(|(path, expected)| SettingDifference {
            path: path.clone(),
            published: expected.text(),
            ours: at(config, path).map_or_else(|| UNSET.to_owned(), plain),
        })
        .collect()
}

/// Encoding with its settings, in the form of a record's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Registry ids, joined by `+`.
    pub id: String,
    /// Complete settings; a list of `id` and `settings` for several encodings.
    pub settings: Value,
    /// Names of the settings that differ from their defaults, as in [`flat`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub changed: BTreeSet<String>,
}

/// Returns settings by name: `gates`, or `cope.gates` if there are several encodings.
pub fn flat(settings: &Value) -> BTreeMap<String, &Value> {
    let part = |part: &'_ Value| -> Option<String> { Some(part.get("id")?.as_str()?.to_owned()) };
    match settings {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|each| Some((part(each)?, each.get("settings")?.as_object()?)))
            .flat_map(|(id, fields)| {
                fields.iter().map(move |(key, value)| (format!("{id}.{key}"), value))
            })
            .collect(),
        _ => BTreeMap::new(),
    }
}

impl Identity {
    /// Returns the registry ids of a configuration's encoding, joined by `+`; `None` if it names no encoding.
    pub fn id_of(config: &Value) -> Option<&str> {
        config.get("encoding")?.get("id")?.as_str()
    }

    /// Reports whether `config` is a run of this encoding. Settings in `free` may differ. A setting that the run does
    /// not have was added after it, and has its default.
    pub fn is_of(&self, config: &Value, free: &BTreeSet<String>) -> bool {
        if Self::id_of(config) != Some(&self.id) {
            return false;
        }
        let Some(ours) = config["encoding"].get("settings").map(flat) else { return false };
        flat(&self.settings).iter().filter(|(name, _)| !free.contains(*name)).all(
            |(name, published)| match ours.get(name) {
                Some(ours) => same(published, ours),
                None => !self.changed.contains(name),
            },
        )
    }

    /// Returns the free settings whose values differ from those of the expression, each as `setting value`.
    pub fn choices(&self, config: &Value, free: &BTreeSet<String>) -> Vec<String> {
        let Some(ours) = config.get("encoding").and_then(|found| found.get("settings")).map(flat)
        else {
            return Vec::new();
        };
        let published = flat(&self.settings);
        let chosen = |name: &String| {
            let (published, ours) = (published.get(name)?, ours.get(name)?);
            (!same(published, ours)).then(|| format!("{name} {}", plain(ours)))
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

    fn cope(settings: Value, changed: &[&str]) -> Identity {
        let changed = changed.iter().map(|name| (*name).to_owned()).collect();
        Identity { id: "cope".into(), settings, changed }
    }

    #[test]
    fn settings_must_be_equal_unless_they_are_free() {
        let wanted = cope(json!({"gates": "query-key", "max_positions": 64}), &[]);
        let (free, none) = (BTreeSet::from(["max_positions".to_owned()]), BTreeSet::new());
        let run = |settings: Value| json!({"encoding": {"id": "cope", "settings": settings}});
        let short = run(json!({"gates": "query-key", "max_positions": 16}));
        assert!(wanted.is_of(&run(json!({"gates": "query-key", "max_positions": 64.0})), &none));
        assert!(!wanted.is_of(&short, &none));
        assert!(wanted.is_of(&short, &free));
        assert_eq!(wanted.choices(&short, &free), ["max_positions 16"]);
        let other = run(json!({"gates": "query-value", "max_positions": 64}));
        assert!(!wanted.is_of(&other, &free));
        for stranger in [json!({"encoding": {"id": "rope", "settings": {}}}), json!({})] {
            assert!(!wanted.is_of(&stranger, &free));
        }
    }

    #[test]
    fn a_run_before_an_option_is_one_at_its_default() {
        let old = json!({"encoding": {"id": "cope", "settings": {"gates": "query-key"}}});
        let settings = || json!({"gates": "query-key", "layers": {"type": "first"}});
        assert!(cope(settings(), &[]).is_of(&old, &BTreeSet::new()));
        assert!(!cope(settings(), &["layers"]).is_of(&old, &BTreeSet::new()));
        let newer =
            json!({"encoding": {"id": "cope", "settings": {"gates": "query-key", "new": 1}}});
        assert!(cope(json!({"gates": "query-key"}), &[]).is_of(&newer, &BTreeSet::new()));
    }

    #[test]
    fn settings_of_several_encodings_are_named_by_encoding() {
        let parts = |longest: u32, base: f64| {
            json!([
                {"id": "randomized", "settings": {"longest": longest}},
                {"id": "rope", "settings": {"base": base}},
            ])
        };
        let (id, changed) = ("randomized+rope".to_owned(), BTreeSet::new());
        let both = Identity { id, settings: parts(2048, 1e4), changed };
        let run =
            |settings: Value| json!({"encoding": {"id": "randomized+rope", "settings": settings}});
        let free = BTreeSet::from(["randomized.longest".to_owned()]);
        assert!(both.is_of(&run(parts(2048, 1e4)), &BTreeSet::new()));
        assert!(!both.is_of(&run(parts(1024, 1e4)), &BTreeSet::new()));
        assert!(both.is_of(&run(parts(1024, 1e4)), &free));
        assert!(!both.is_of(&run(parts(1024, 5e5)), &free));
        assert_eq!(both.choices(&run(parts(1024, 1e4)), &free), ["randomized.longest 1024"]);
    }
}
