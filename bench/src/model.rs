//! Causal decoder under any combination of position encodings.

mod block;
mod config;
mod decoder;
mod dropout;
mod layers;
mod shifted;
mod weights;

pub use config::{
    Activation, Init, MOST_STEP_OPERATIONS, ModelConfig, ModelError, Norm, NormPlace,
};
pub use decoder::{Cache, Decoder, Pass};
pub use dropout::Dropout;
pub use weights::{BlockWeights, DecoderWeights};
