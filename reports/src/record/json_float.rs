//! JSON form of `f64`: NaN as `null`, and the same bits after every further round trip.
//!
//! JSON has no NaN and no infinity. A field that is not finite is written as `null`; where the field
//! is a plain `f64` it is read back as NaN (an infinity becomes NaN too: both say "no usable
//! number"), where it is an `Option` it is read back as `None`.
//!
//! Finite values are written with 15 significant digits, because that many survive any JSON parser
//! exactly; with 17 the default parser may miss the last bit, and a report made in memory would differ
//! from the one made of the files.

use serde::{Deserialize, Deserializer, Serializer};

/// Rounds to 15 significant decimal digits; leaves NaN and infinities alone.
fn rounded(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde's `with` asks for")]
pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rounded(*value))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Serialization of an optional number.
pub(crate) mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde's `with` asks for")]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(super::rounded).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        Option::<f64>::deserialize(deserializer)
    }
}

/// Serialization of a list of numbers.
pub(crate) mod vec {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        values: &[f64],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| super::rounded(*value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<f64>, D::Error> {
        let read = Vec::<Option<f64>>::deserialize(deserializer)?;
        // `collect` would go on using the block of the options, which is at least twice as large.
        let mut values = Vec::with_capacity(read.len());
        values.extend(read.into_iter().map(|value| value.unwrap_or(f64::NAN)));
        Ok(values)
    }
}
