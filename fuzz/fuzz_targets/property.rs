#![no_main]
//! One target for every parser of user input and of downloaded files, for searches without an end. The environment variable
//! `PROPERTY` names the parser: `suite`, `record`, `expression`, `task`, `cost-config`, `command-line`, `published`, `tokenizer`,
//! `gguf`, `weights`, `model-config`, `parquet`, `json-lines`, `questions`, `checkpoint`, `named-tensors`. It needs a nightly compiler and
//! `cargo install cargo-fuzz`, stands outside the workspace, and CI does not build it:
//!
//! ```sh
//! PROPERTY=expression cargo +nightly fuzz run property expression   # inputs are kept in the folder `expression`
//! PROPERTY=gguf cargo +nightly fuzz run property gguf -- -max_total_time=600
//! ```
//!
//! The properties are in `properties.rs` and `properties/files.rs`: no panic, and a value
//! that was read survives being written and read again. `cargo test --workspace --test fuzz` tries the same properties on ten
//! thousand mutated inputs each (`mutate.rs`, from `corpus.rs`, with a fixed seed) in CI;
//! `PE_ZOO_FUZZ_INPUTS=1000000` sets another number. An input that libFuzzer finds becomes a line of the corpus, or a test
//! beside the parser that it broke.

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
