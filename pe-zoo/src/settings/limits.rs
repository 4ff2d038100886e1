//! Limits of numbers in settings, beyond which tables and counts would overflow or f32 would be infinite or 0.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::PeError;

/// Largest accepted whole number among an encoding's settings. Positions up to it are exact in f32,
/// and products of a few such sizes fit 64-bit integers.
const LARGEST: u64 = 1 << 24;

/// Magnitudes of fractions other than 0: their squares, and products of a few of them, are finite in f64, and they
/// themselves in f32.
const FRACTIONS: RangeInclusive<f64> = 1e-30..=1e30;

/// Refuses numbers among the settings of the encoding `pe` that are too large or too near to 0. Seeds are exempt.
pub(crate) fn check(pe: &str, fields: &Map<String, Value>) -> Result<(), PeError> {
    match of_fields("", fields) {
        None => Ok(()),
        Some((field, value, expected)) => Err(PeError::invalid(pe, &field, value, expected)),
    }
}

/// Path, value and limit of the first number beyond its limits.
fn beyond(path: &str, value: &Value) -> Option<(String, String, String)> {
    match value {
        Value::Number(number) => {
            let size = number.as_i64().map_or(number.as_u64(), |size| Some(size.unsigned_abs()));
            let expected = match (size, number.as_f64()) {
                (Some(size), _) if size > LARGEST => format!("at most {LARGEST}"),
                (None, Some(x)) if x != 0.0 && !FRACTIONS.contains(&x.abs()) => {
                    let (least, most) = (FRACTIONS.start(), FRACTIONS.end());
                    format!("0, or a number with an absolute value from {least:e} to {most:e}")
                }
                _ => return None,
            };
            let shown = size.map_or_else(|| number.to_string(), |size| size.to_string());
            Some((path.to_owned(), shown, expected))
        }
        Value::Array(items) => items.iter().find_map(|item| beyond(path, item)),
        Value::Object(fields) => of_fields(path, fields),
        _ => None,
    }
}

/// As [`beyond`], for the fields of an object.
fn of_fields(path: &str, fields: &Map<String, Value>) -> Option<(String, String, String)> {
    fields.iter().filter(|(key, _)| *key != "seed").find_map(|(key, value)| {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        beyond(&path, value)
    })
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use crate::{Combination, Dims};

    #[test]
    fn a_table_without_an_end_is_refused_by_name_and_a_seed_is_not() {
        let dims = Dims { layers: 2, width: 16, heads: 2, head_dim: 8, train_len: 16, max_len: 32 };
        let said = |text: &str| {
            let found = Combination::parse(text).unwrap().check(&dims);
            found.map_err(|error| error.to_string())
        };
        let error = said("rope+cope{max_positions=18446744073709551615}").unwrap_err();
        assert!(error.contains("max_positions") && error.contains("16777216"), "{error}");
        let error = said("tape{training_shift={type=random,max=16777217}}").unwrap_err();
        assert!(error.contains("training_shift.max"), "{error}");
        let error = said("alibi{slopes={given=[0.5,1e300]}}").unwrap_err();
        assert!(error.contains("slopes.given is 1e") && error.contains("1e30"), "{error}");
        let error = said("fox{gates={type=fixed,tau_min=1e-40}}").unwrap_err();
        assert!(error.contains("gates.tau_min"), "{error}");
        let seed = "randomized{evaluation={type=sampled,seed=18446744073709551615}}(rope)";
        assert_eq!(said(seed), Ok(()));
    }

    #[test]
    fn sizes_that_would_overflow_are_errors_of_check_and_init() {
        let dims = Dims { layers: 2, width: 16, heads: 2, head_dim: 8, train_len: 16, max_len: 32 };
        for (text, field) in [
            ("cope{max_positions=18446744073709551615}", "max_positions"),
            ("abacus{max_offset=18446744073709551615}", "max_offset"),
            (
                "alibi+tape{training_shift={type=random,max=18446744073709551615}}",
                "training_shift.max",
            ),
        ] {
            let combination = Combination::parse(text).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let built = combination.init(&dims, &mut rng, &crate::probe::device());
            for refused in [combination.check(&dims).unwrap_err(), built.unwrap_err()] {
                let said = refused.to_string();
                assert!(said.contains(field) && said.contains("16777216"), "{text}: {said}");
            }
        }
    }
}
