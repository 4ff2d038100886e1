//! The checks that every encoding passes. Call [`assert_conforms`] on your own.
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

mod checks;
pub mod close;
mod decode;
mod passes;
pub mod problem;
mod randomise;
mod stack;

pub use checks::{Check, Failure, Finding, examine_on, examine_settings, failures};
#[cfg(feature = "flex")]
pub use checks::{conforms, examine};
pub use randomise::{randomise, randomise_by};

use crate::EncodingConfig;
use crate::reference::ScalarReference;

/// Runs all checks on the CPU and panics with the list of those that failed.
///
/// # Panics
/// If any check fails.
#[cfg(feature = "flex")]
pub fn assert_conforms<C>(config: &C)
where
    C: EncodingConfig,
    C::Encoding: ScalarReference,
{
    assert_all_hold(config.meta().id, examine(config));
}

/// Panics with the list of the findings that are failures.
///
/// # Panics
/// If there is one.
pub fn assert_all_hold(id: &str, findings: Vec<Finding>) {
    let failures = failures(findings);
    let list = failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ");
    assert!(failures.is_empty(), "{id} fails:\n  {list}");
}

#[cfg(test)]
mod tests;
