//! Inspection of a trained model: attention maps and traces of the encoding on samples of its task.
//!
//! Records contain no weights, so a cell is retrained from its record ([`retrain`]). The same configuration gives the
//! same bits on the same machine; the final loss shows whether it did. Observation uses the reference engine
//! ([`crate::run::observe()`]), independent of the engine used in training.

pub mod page;
pub mod retrain;
mod stability;
mod svg;

pub use stability::{LayerStability, Shift, stability};
