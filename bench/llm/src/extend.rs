//! Length extension: evaluation of a pretrained model with modified rotations or other encodings, with or without a
//! short fine-tuning.
//!
//! | Module | Contents |
//! | --- | --- |
//! | `method` | methods that modify a rotation, as encodings |
//! | `text` | perplexity by length and by position, in the model's own tokens |
//! | `passkey` | a number hidden in English filler, by length and depth |
//! | `facts` | facts shared by both tasks |
//! | `pairs` | inputs with expected outputs, for fine-tuning as on SCROLLS |
//! | `tune` | fine-tuning |
//! | `cell` | one encoding on one task, from configuration to record |
//! | `tuned` | a tuned model as a folder |

mod cell;
mod facts;
mod method;
mod pairs;
mod passkey;
mod text;
mod tune;
mod tuned;

pub use cell::{Context, ExtendCell};
pub use method::{EncodingVariant, Method, TrainedSizes, expression, variants};
pub use pairs::InputOutput;
pub use passkey::Passkey;
pub use text::{LongText, TextWindows};
pub use tune::{TuneConfig, Tuning};
