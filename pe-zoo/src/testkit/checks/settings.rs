//! Settings as suites write them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Check, Finding, Outcome};
use crate::{EncodingConfig, settings};

/// Checks that settings survive being written and read, and that unknown ones are refused by name.
/// They can be checked where settings can be read: derive `serde::Deserialize` with
/// `deny_unknown_fields`.
pub fn examine_settings<C>(config: &C) -> Vec<Finding>
where
    C: EncodingConfig + Serialize + DeserializeOwned + PartialEq,
{
    vec![
        Finding { check: Check::SettingsRoundTrip, outcome: round_trip(config) },
        Finding { check: Check::UnknownSettingRefused, outcome: unknown_refused(config) },
    ]
}

fn fields<C: Serialize>(config: &C) -> Result<Map<String, Value>, String> {
    match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(format!("settings are {other}, expected a map")),
        Err(error) => Err(error.to_string()),
    }
}

fn round_trip<C>(config: &C) -> Outcome
where
    C: EncodingConfig + DeserializeOwned + PartialEq,
{
    let written = fields(config)?;
    let read: C =
        settings::read(config.meta().id, written.clone()).map_err(|error| error.to_string())?;
    (read == *config).then_some(()).ok_or_else(|| {
        format!("{} was read as {read:?}, expected {config:?}", Value::Object(written))
    })
}

fn unknown_refused<C>(config: &C) -> Outcome
where
    C: EncodingConfig + DeserializeOwned,
{
    const UNKNOWN: &str = "no_such_setting";
    let mut written = fields(config)?;
    written.insert(UNKNOWN.to_owned(), Value::from(1));
    match settings::read::<C>(config.meta().id, written) {
        Ok(_) => Err(format!("`{UNKNOWN}` was accepted; add deny_unknown_fields")),
        Err(error) if error.to_string().contains(UNKNOWN) => Ok(()),
        Err(error) => Err(format!("`{UNKNOWN}` was refused without its name: {error}")),
    }
}
