//! Longer than trained: a pretrained model under rotations that are changed for length, evaluated as it is or after a
//! short fine-tuning.
//!
//! | Module | What it holds |
//! | --- | --- |
//! | `method` | the ways of changing a rotation, as encodings |
//! | `text` | perplexity by length and by position, in the model's own tokens |
//! | `passkey` | a number hidden in English filler, by length and depth |
//! | `facts` | what these two have in common |
//! | `tune` | which weights learn |
//! | `cell` | one encoding on one of the two, from configuration to record |

mod cell;
mod facts;
mod method;
mod passkey;
mod text;
mod tune;

pub use cell::{Context, ExtendCell, ExtendError};
pub use method::{Method, MethodError, EncodingVariant, expression, variants};
pub use passkey::Passkey;
pub use text::LongText;
pub use tune::{TuneConfig, Tuning};
