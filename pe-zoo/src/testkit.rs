//! The checks that every encoding passes. Call [`assert_conforms`] on your own.
//!
//! ```
//! use pe_zoo::{testkit, zoo::PeConfig};
//! testkit::assert_conforms(&PeConfig::from_id("alibi")?);
//! # Ok::<(), pe_zoo::PeError>(())
//! ```

mod checks;
pub mod close;
mod decode;
pub mod problem;
mod randomise;
mod stack;

pub use checks::{Check, Failure, conforms};
pub use randomise::{randomise, randomise_by};

use crate::EncodingConfig;
use crate::reference::ScalarReference;

/// Runs all checks and panics with the list of those that failed.
///
/// # Panics
/// If any check fails.
pub fn assert_conforms<C>(config: &C)
where
    C: EncodingConfig,
    C::Encoding: ScalarReference,
{
    let failures = conforms(config);
    let list = failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ");
    assert!(failures.is_empty(), "{} fails:\n  {list}", config.meta().id);
}

#[cfg(test)]
mod tests;
