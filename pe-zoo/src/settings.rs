//! Reading settings: unknown keys are errors that name the key and the nearest valid one.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::PeError;

/// The name among `known` that is nearest to `given`, if one is near enough to be meant.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(given, name), name))
        .filter(|(similarity, _)| *similarity >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// Reads settings of encoding `pe` from a flat map of fields.
///
/// # Errors
/// [`PeError::Settings`] for an unknown field, a missing one or a wrong type, the field named.
pub fn read<T: DeserializeOwned>(pe: &str, fields: Map<String, Value>) -> Result<T, PeError> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| PeError::Settings { pe: pe.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_finds_its_name_and_noise_finds_none() {
        assert_eq!(nearest("rop", ["rope", "cope", "alibi"]).as_deref(), Some("rope"));
        assert_eq!(nearest("alibbi", ["rope", "cope", "alibi"]).as_deref(), Some("alibi"));
        assert_eq!(nearest("xyz", ["rope", "cope", "alibi"]), None);
    }
}
