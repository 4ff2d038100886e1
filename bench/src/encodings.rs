//! The encodings that this program knows: those of `pe-zoo`, and those that it was started with.

use std::sync::OnceLock;

use pe_zoo::{Combination, PeError, Registry};

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// The registry of this process: the one given to [`cli::main_with`](crate::cli::main_with), else the
/// encodings of `pe-zoo`.
pub fn registry() -> &'static Registry {
    REGISTRY.get_or_init(Registry::builtin)
}

/// Sets the registry of this process.
///
/// # Errors
/// The registry itself, if another one is in use already.
pub fn register(registry: Registry) -> Result<(), Registry> {
    REGISTRY.set(registry)
}

/// Reads an expression of the encodings in [`registry`].
///
/// # Errors
/// As [`Registry::parse`].
pub fn parse(text: &str) -> Result<Combination, PeError> {
    registry().parse(text)
}

/// Ids of all encodings, sorted.
pub fn ids() -> Vec<String> {
    registry().cards().map(|card| card.id.to_owned()).collect()
}
