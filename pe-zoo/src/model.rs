//! Causal decoder under any combination of position encodings, and a layer of self-attention.

mod block;
mod config;
mod decoder;
mod dropout;
mod layers;
mod lora;
mod projections;
mod self_attention;
mod shifted;
mod weights;

pub(crate) use block::equals_formulas;

pub use crate::kernels::activation::ActivationKind;
pub use config::{
    Init, MOST_STEP_OPERATIONS, ModelConfig, ModelError, NormKind, NormPlace, QkNormKind,
};
pub use decoder::{Cache, Decoder, DecoderOutput};
pub use dropout::Dropout;
pub use lora::{LoraConfig, LoraError};
pub use self_attention::{SelfAttention, SelfAttentionConfig};
pub use weights::{BlockWeights, DecoderWeights, OutputGains, QkGains};
