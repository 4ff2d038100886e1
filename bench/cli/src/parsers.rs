//! Parsers of the values of options.

use std::ops::RangeInclusive;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};

/// Maximum number of threads, jobs or devices.
pub(crate) const MOST: u64 = 1 << 16;

/// Parser of a whole number in a range.
pub(crate) fn number(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// Parser of one of some values by its name.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.map(|(name, _)| name)).try_map(move |text| {
        let named = values.iter().find(|(name, _)| *name == text);
        named.map(|(_, value)| *value).ok_or("unknown")
    })
}

/// Parses a positive, finite number of seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
        _ => Err(format!(
            "`{text}` is not a number of seconds, expected a number above 0 such as 2.5"
        )),
    }
}
