//! Upper limits of whole numbers in settings, above which tables and counts would overflow.

use serde_json::Value;

use crate::PeError;
use crate::registry::EncodingConfig;

/// Largest accepted whole number among an encoding's settings. Positions up to it are exact in f32,
/// and products of a few such sizes fit 64-bit integers.
const LARGEST: u64 = 1 << 24;

/// Refuses whole numbers that are too large. Seeds are exempt.
pub(super) fn check(part: &EncodingConfig) -> Result<(), PeError> {
    match too_large("", &Value::Object(part.fields().clone())) {
        None => Ok(()),
        Some((field, value)) => {
            Err(PeError::invalid(part.card().id, &field, value, format!("at most {LARGEST}")))
        }
    }
}

fn too_large(path: &str, value: &Value) -> Option<(String, u64)> {
    match value {
        Value::Number(number) => {
            let size = number.as_i64().map_or(number.as_u64(), |size| Some(size.unsigned_abs()));
            size.filter(|size| *size > LARGEST).map(|size| (path.to_owned(), size))
        }
        Value::Array(items) => items.iter().find_map(|item| too_large(path, item)),
        Value::Object(fields) => {
            fields.iter().filter(|(key, _)| *key != "seed").find_map(|(key, value)| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                too_large(&path, value)
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Combination, Dims};

    #[test]
    fn a_table_without_an_end_is_refused_by_name_and_a_seed_is_not() {
        let dims = Dims { layers: 2, heads: 2, head_dim: 8, train_len: 16, max_len: 32 };
        let said = |text: &str| {
            let found = Combination::parse(text).unwrap().check(&dims);
            found.map_err(|error| error.to_string())
        };
        let error = said("rope+cope{max_positions=18446744073709551615}").unwrap_err();
        assert!(error.contains("max_positions") && error.contains("16777216"), "{error}");
        let error = said("tape{training_shift={type=random,max=16777217}}").unwrap_err();
        assert!(error.contains("training_shift.max"), "{error}");
        let seed = "randomized{evaluation={type=sampled,seed=18446744073709551615}}(rope)";
        assert_eq!(said(seed), Ok(()));
    }
}
