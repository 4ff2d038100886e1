//! Checks of the settings as written in suites.

use serde_json::Value;

use crate::EncodingConfig;
use crate::testkit::Outcome;

/// Checks that settings survive being written and read.
pub(super) fn round_trip(config: &EncodingConfig) -> Outcome {
    let written = config.fields().clone();
    let read = config.reread(written.clone()).map_err(|error| error.to_string())?;
    read.same_settings(config).then_some(()).ok_or_else(|| {
        format!("{} was read as {read:?}, expected {config:?}", Value::Object(written))
    })
}

/// Checks that an unknown setting is refused by name.
pub(super) fn unknown_refused(config: &EncodingConfig) -> Outcome {
    const UNKNOWN: &str = "no_such_setting";
    let mut written = config.fields().clone();
    written.insert(UNKNOWN.to_owned(), Value::from(1));
    match config.reread(written) {
        Ok(_) => Err(format!("`{UNKNOWN}` was accepted")),
        Err(error) if error.to_string().contains(UNKNOWN) => Ok(()),
        Err(error) => {
            Err(format!("`{UNKNOWN}` was refused by an error that does not name it: {error}"))
        }
    }
}
