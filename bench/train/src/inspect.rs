//! Inspection of a trained model: attention maps and traces of the encoding on samples of its task.
//!
//! The model is built from kept weights ([`crate::run::kept`]). Observation uses the reference engine
//! ([`crate::run::observe()`]), independent of the engine used in training.

pub mod maps;
mod marks;
mod stability;

pub use marks::TextMarks;
pub use stability::{LayerStability, Shift, stability};
