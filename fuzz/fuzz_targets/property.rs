#![no_main]
//! The property that the environment variable `PROPERTY` names, on the inputs of libFuzzer.

use std::sync::LazyLock;

#[path = "../properties.rs"]
#[allow(dead_code, reason = "the target uses the properties and not the inputs of the corpus")]
mod properties;

static PROPERTY: LazyLock<fn(&[u8]) -> bool> = LazyLock::new(|| {
    let name = std::env::var("PROPERTY").unwrap_or_default();
    let found = properties::ALL.iter().find(|(known, _)| *known == name);
    let known = || properties::ALL.map(|(known, _)| known).join(", ");
    found.unwrap_or_else(|| panic!("PROPERTY is `{name}`, expected one of: {}", known())).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    PROPERTY(bytes);
});
