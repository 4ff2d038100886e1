#![no_main]
//! `properties::expression` on what libFuzzer thinks of.

#[path = "../properties.rs"]
#[allow(dead_code, reason = "each target uses one property")]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    properties::expression(bytes);
});
