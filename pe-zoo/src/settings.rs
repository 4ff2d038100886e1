//! Parsing of settings: unknown keys are errors that name the key and the nearest valid one.

pub(crate) mod limits;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::PeError;

/// Defines a structure of settings with the default of each field behind it. Settings that are left out have their defaults, and
/// unknown ones are errors. The crate that calls it depends on serde with `derive`.
///
/// ```
/// pe_zoo::settings! {
///     /// Settings of an encoding.
///     pub struct SlopeConfig {
///         /// Penalty per token.
///         pub slope: f64 = 0.1,
///     }
/// }
/// assert_eq!(SlopeConfig::default().slope, 0.1);
/// ```
#[macro_export]
macro_rules! settings {
    ($(#[$about:meta])* $public:vis struct $name:ident {
        $($(#[$about_field:meta])* $public_field:vis $field:ident: $kind:ty = $default:expr,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $public struct $name {
            $($(#[$about_field])* $public_field $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }
    };
}

/// Which layers share learned parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each layer has its own parameters.
    PerLayer,
    /// All layers share one set of parameters.
    AllLayers,
}

impl Sharing {
    /// Number of parameter sets in a model of `layers` layers.
    pub fn sets(self, layers: usize) -> usize {
        match self {
            Self::PerLayer => layers,
            Self::AllLayers => 1,
        }
    }
}

/// Whether parameters are learned, and which layers share them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learning {
    /// Constants that are not learned.
    #[default]
    Fixed,
    /// One learned set of parameters for all layers.
    AllLayers,
    /// One learned set of parameters per layer.
    PerLayer,
}

impl Learning {
    /// Number of learned sets in a model of `layers` layers.
    pub fn sets(self, layers: usize) -> usize {
        match self {
            Self::Fixed => 0,
            Self::AllLayers => 1,
            Self::PerLayer => layers,
        }
    }
}

/// Selects the parameter set of a layer among `sets`: its own, or the shared one.
pub(crate) fn of_layer<T>(sets: &[T], layer: usize) -> &T {
    &sets[layer.min(sets.len() - 1)]
}

/// Parameter set of a layer as [`of_layer`] selects it; `None` if `sets` is empty because nothing is learned.
pub(crate) fn learned<T>(sets: &[T], layer: usize) -> Option<&T> {
    sets.get(layer).or(sets.last())
}

/// Whether a setting has its default, for settings that are written only where they differ from it.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Refuses a size of 0.
///
/// # Errors
/// [`PeError::InvalidSetting`] of the encoding `pe`, with the field.
pub fn check_size(pe: &str, field: &str, size: usize) -> Result<(), PeError> {
    PeError::require(size > 0, pe, field, size, "at least 1")
}

/// Refuses a number that is not above 0.
///
/// # Errors
/// [`PeError::InvalidSetting`] of the encoding `pe`, with the field.
pub fn check_above_zero(pe: &str, field: &str, value: f64) -> Result<(), PeError> {
    PeError::require(value.is_finite() && value > 0.0, pe, field, value, "a number above 0")
}

/// Refuses a number below 0, such as a standard deviation; `None` stands for a default.
///
/// # Errors
/// [`PeError::InvalidSetting`] of the encoding `pe`, with the field.
pub fn check_not_below_zero(pe: &str, field: &str, value: Option<f64>) -> Result<(), PeError> {
    let value = value.unwrap_or(0.0);
    let holds = value.is_finite() && value >= 0.0;
    PeError::require(holds, pe, field, value, "a number of at least 0")
}

/// Finds the name among `known` with the smallest edit distance to `given`, if it is close enough
/// to be a misspelling.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// Reads settings of encoding `pe` from a flat map of fields.
///
/// # Errors
/// [`PeError::Settings`] for an unknown field, a missing one or a wrong type, the field named.
pub fn read<T: DeserializeOwned>(pe: &str, fields: Map<String, Value>) -> Result<T, PeError> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let (path, said) = (error.path().to_string(), error.inner().to_string());
        // Messages about unknown and missing fields name them.
        let place = if path == "." || said.contains(" field `") { "" } else { &path };
        let colon = if place.is_empty() { "" } else { ": " };
        let reason = format!("{place}{colon}{}", explain(&said));
        PeError::Settings { pe: pe.to_owned(), reason }
    })
}

/// Settings type of encodings without settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// Message about a field that does not exist, with the nearest existing one.
pub(crate) fn unknown_field<'a>(field: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known = known.map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let expected = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    explain(&format!("unknown field `{field}`, expected {expected}"))
}

/// Description of the values of a Rust type for readers of an error message; `None` for other types.
fn described(rust_type: &str) -> Option<&'static str> {
    Some(match rust_type {
        "usize" | "u64" => "a whole number of at least 0",
        "a nonzero usize" | "a nonzero u64" | "a nonzero u32" => "a whole number of at least 1",
        "u32" => "a whole number from 0 to 4294967295",
        "i64" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "an array of length 2" => "a list of 2 values",
        "a map" => "a table of settings",
        _ => return None,
    })
}

/// Extends a parser's message about an unknown field or variant by the nearest of the expected
/// names, and describes an expected Rust type. Other messages are returned unchanged.
pub fn explain(complaint: &str) -> String {
    if let Some((found, rust_type)) = complaint.rsplit_once(", expected ")
        && let Some(description) = described(rust_type)
    {
        return format!("{found}, expected {description}");
    }
    let quoted = |text: &str| -> Vec<String> {
        text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let Some((unknown, expected)) = complaint.split_once(", expected ") else {
        return complaint.to_owned();
    };
    let unknown_names = quoted(unknown);
    let known_names = quoted(expected);
    let near =
        unknown_names.last().and_then(|name| nearest(name, known_names.iter().map(String::as_str)));
    match near {
        Some(near) if unknown.contains("unknown ") => {
            format!("{complaint}; did you mean `{near}`?")
        }
        _ => complaint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::{explain, nearest, read};

    #[test]
    fn an_unknown_field_gets_the_nearest_of_those_expected() {
        let message = "unknown field `bass`, expected one of `layout`, `base`, `scaling`";
        assert_eq!(explain(message), format!("{message}; did you mean `base`?"));
        let message = "flip-flop: unknown field `ignor`, expected `ignore` or `scored`";
        assert!(explain(message).ends_with("did you mean `ignore`?"));
        let message = "invalid type: sequence, expected a string";
        assert_eq!(explain(message), message);
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_with_its_field_and_without_types_of_rust() {
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct Settings {
            size: usize,
            factor: f64,
            causal: bool,
        }
        for (field, value, expected) in [
            (
                "size",
                json!(-1),
                "size: invalid value: integer `-1`, expected a whole number of at least 0",
            ),
            ("factor", json!("x"), "factor: invalid type: string \"x\", expected a number"),
            ("causal", json!(1), "causal: invalid type: integer `1`, expected true or false"),
            ("sise", json!(1), "unknown field `sise`"),
        ] {
            let fields = Map::from_iter([(field.to_owned(), value)]);
            let error = read::<Settings>("mine", fields).unwrap_err().to_string();
            assert!(error.starts_with(&format!("mine: {expected}")), "{error}");
        }
    }

    #[test]
    fn a_typo_finds_its_name_and_noise_finds_none() {
        assert_eq!(nearest("rop", ["rope", "cope", "alibi"]).as_deref(), Some("rope"));
        assert_eq!(nearest("alibbi", ["rope", "cope", "alibi"]).as_deref(), Some("alibi"));
        assert_eq!(nearest("xyz", ["rope", "cope", "alibi"]), None);
    }
}
