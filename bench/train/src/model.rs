//! Causal decoder under any combination of position encodings.

mod block;
mod config;
mod decoder;
mod dropout;
mod layers;
mod shifted;
mod weights;

pub(crate) use config::is_default;
pub use config::{
    ActivationKind, Init, MOST_STEP_OPERATIONS, ModelConfig, ModelError, NormKind, NormPlace,
};
pub use decoder::{Cache, Decoder, DecoderOutput};
pub use dropout::Dropout;
pub use weights::{BlockWeights, DecoderWeights};
