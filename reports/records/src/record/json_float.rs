//! JSON form of `f64`: NaN as `null`, finite values unchanged by repeated round trips.
//!
//! JSON has no NaN and no infinity, so a field that is not finite is written as `null`. A plain `f64` is read back as
//! NaN (also for an infinity), an `Option` as `None`.
//!
//! Finite values are written with 15 significant digits, the number of digits that every JSON parser preserves
//! exactly; with 17 digits, the default parser may change the last bit, and a report made in memory would differ from
//! the one made from files.

use serde::{Deserialize, Deserializer, Serializer};

/// Rounds to 15 significant decimal digits; NaN and infinities are unchanged.
fn rounded(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}

/// Writes a number with 15 significant digits.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rounded(*value))
}

/// Reads a number; `null` is NaN.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Serialization of an optional number.
pub mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes a number with 15 significant digits, or `null`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(super::rounded).serialize(serializer)
    }

    /// Reads a number; `null` is `None`.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Option::<f64>::deserialize(deserializer)
    }
}

/// Serialization of a list of numbers.
pub mod vec {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes numbers with 15 significant digits.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| super::rounded(*value)))
    }

    /// Reads numbers; `null` is NaN.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        let read = Vec::<Option<f64>>::deserialize(deserializer)?;
        // `collect` would reuse the allocation of the options, which is at least twice as large.
        let mut values = Vec::with_capacity(read.len());
        values.extend(read.into_iter().map(|value| value.unwrap_or(f64::NAN)));
        Ok(values)
    }
}
