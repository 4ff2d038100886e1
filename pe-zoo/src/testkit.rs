//! Conformance checks that every encoding passes; call [`assert_conforms`] on your own encoding.
//!
//! ```
//! use pe_zoo::{Combination, testkit};
//! # let my_config = Combination::parse("alibi")?;
//! testkit::assert_conforms(&my_config);
//! # Ok::<(), pe_zoo::PeError>(())
//! ```
//!
//! It panics with a list of everything that failed. [`examine`] gives the findings one by one, and
//! `pe-bench conform ID` prints them; [`Check`] says what is checked.

mod acts;
mod checks;
mod decode;
mod passes;
#[cfg(feature = "flex")]
mod planted;
mod stack;
mod vectors;

pub use crate::probe::{close, problem, randomise, randomise_by};
pub use acts::{check_takes, examine_on};
#[cfg(feature = "flex")]
pub use acts::{conforms, examine};
pub use checks::{Check, CheckResult, Failure, Finding, UncheckedReason, failures};
#[cfg(feature = "flex")]
pub use planted::rejects_wrong_reference;

pub use vectors::{
    LayerVectors, MOST_VECTOR_TOKENS, TestVectors, VectorDims, VectorGradients, VectorParameter,
    vectors,
};

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::probe::LAYERS;
use crate::probe::passes::DIMS;
use crate::{Combination, Combined, Dims, PeError};

/// Result of one check; the error describes what is wrong.
type Outcome = Result<(), String>;

/// Sizes at which the kit runs an encoding: those of the probes, with as many layers as its settings need.
fn dims(config: &Combination) -> Dims {
    let fits = |dims: &Dims| {
        // A check of settings that panics fails wherever the encoding is built.
        catch_unwind(AssertUnwindSafe(|| config.check(dims).is_ok())).unwrap_or(false)
    };
    LAYERS.map(|layers| Dims { layers, ..DIMS }).into_iter().find(fits).unwrap_or(DIMS)
}

/// Refuses an encoding with more parameters than can be visited one by one in the time that a user waits.
///
/// # Errors
/// [`PeError::Combination`].
fn check_parameters(config: &Combination, most: usize) -> Result<(), PeError> {
    match config.param_count(&dims(config)) {
        Some(count) if count > most => Err(PeError::Combination {
            text: config.to_string(),
            reason: format!(
                "{count} parameters in a model of {} heads of {} channels, expected at most {most}; give smaller settings, at \
                 which the same code runs",
                DIMS.heads, DIMS.head_dim
            ),
        }),
        _ => Ok(()),
    }
}

/// Builds the encoding with its initial parameters.
fn build(config: &Combination, seed: u64, device: &Device) -> Result<Combined, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    config.init(&dims(config), &mut rng, device).map_err(|error| error.to_string())
}

/// Builds the encoding with random numbers in every parameter.
fn random(config: &Combination, device: &Device) -> Result<Combined, String> {
    Ok(randomise(build(config, 7, device)?, 11))
}

/// Runs all checks on the CPU.
///
/// # Panics
///
/// If any check fails, with a list of those that failed, or if the settings are refused, with the error.
#[cfg(feature = "flex")]
pub fn assert_conforms(config: &Combination) {
    let failures = match examine(config) {
        Ok(findings) => failures(findings),
        Err(error) => panic!("{error}"),
    };
    let list = failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ");
    assert!(failures.is_empty(), "{config} fails:\n  {list}");
}

#[cfg(test)]
mod tests;
