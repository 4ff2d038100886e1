//! A look inside a trained model: attention maps and what the encoding made them of, on samples of its task.
//!
//! Records hold no weights, so a cell is trained again from its record ([`again`]); the same configuration gives
//! the same bits on the same machine, and the final loss says whether it did. The look itself goes through the
//! reference engine ([`observe()`]), whatever engine trained.

pub mod again;
mod gates;
mod observe;
pub mod page;
mod stability;
mod svg;

pub use gates::{GATE_SAMPLES, GateError, gate_scores};
pub use observe::{Look, Map, Observed, observe};
pub use stability::{LayerStability, Shift, stability};
