//! Registry of the encodings of this process: those of `pe-zoo`, or those given to `main_with`.

use std::sync::OnceLock;

use pe_zoo::{Combination, PeError, Registry};

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Registry of this process: the one given to [`register`], otherwise the encodings of `pe-zoo`.
pub fn registry() -> &'static Registry {
    REGISTRY.get_or_init(Registry::builtin)
}

/// Sets the registry of this process.
///
/// # Errors
///
/// The registry itself, if another one is already in use.
pub fn register(registry: Registry) -> Result<(), Registry> {
    REGISTRY.set(registry)
}

/// Parses an expression with the encodings in [`registry`].
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
