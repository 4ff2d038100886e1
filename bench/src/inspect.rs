//! A look inside a trained model: attention maps and what the encoding made them of, on samples of its task.
//!
//! Records hold no weights, so a cell is trained again from its record ([`retrain`]); the same configuration gives
//! the same bits on the same machine, and the final loss says whether it did. The look itself goes through the
//! reference engine ([`crate::run::observe()`]), whatever engine trained.

pub mod page;
pub mod retrain;
mod stability;
mod svg;

pub use stability::{LayerStability, Shift, stability};
