//! Parsers of the values of options.

use std::ffi::OsStr;
use std::ops::RangeInclusive;

use clap::builder::{
    PossibleValue, PossibleValuesParser, RangedU64ValueParser, StringValueParser, TypedValueParser,
};
use clap::{Arg, Command, Error};
use train::suite;

/// Parser of a text for which shells complete the names that are known.
#[derive(Clone, Copy)]
pub(crate) struct Suggested(fn() -> Vec<&'static str>);

impl Suggested {
    /// Names of encodings.
    pub(crate) const ENCODINGS: Self = Self(ids);
    /// Names of built-in suites.
    pub(crate) const SUITES: Self =
        Self(|| suite::BUILT_IN.iter().map(|(name, _)| *name).collect());
    /// Ids of tasks.
    pub(crate) const TASKS: Self = Self(|| tasks::ALL.iter().map(|meta| meta.id).collect());
    /// Kinds of names that lists have.
    pub(crate) const LISTED: [Self; 2] = [Self::ENCODINGS, Self::TASKS];
    /// Names that `explain` takes.
    pub(crate) const ALL: Self = Self(|| {
        [Self::ENCODINGS, Self::TASKS, Self::SUITES].iter().flat_map(|own| own.names()).collect()
    });

    /// All names that are known.
    pub(crate) fn names(self) -> Vec<&'static str> {
        self.0()
    }
}

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        text: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names().into_iter().map(PossibleValue::new)))
    }
}

fn ids() -> Vec<&'static str> {
    train::encodings::registry().cards().map(|card| card.id).collect()
}

/// Maximum number of threads, jobs or devices.
pub(crate) const MOST: u64 = 1 << 16;

/// Largest number of samples.
pub(crate) const MOST_SAMPLES: u64 = 1 << 24;

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
