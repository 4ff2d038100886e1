//! Settings of a Llama-type model, from any of the supported files.

use std::path::Path;

use anyhow::{Result, anyhow};
use pe_zoo::zoo::rope::{self, Rope};
use pe_zoo::{Combination, Dims, PositionEncoding};

use super::error;
use pe_zoo::model::{ActivationKind, ModelConfig, NormKind, QkNormKind};

/// Maximum size that a model may have; products of two larger sizes overflow.
const LARGEST: usize = 1 << 24;

/// Sizes and rotation of a Llama-type model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LlamaSettings {
    pub(super) model: ModelConfig,
    pub(super) rope: rope::RopeConfig,
    pub(super) vocabulary: usize,
    /// Longest sequence in training, in tokens.
    pub(super) context: usize,
    /// Number of tokens that a token sees, itself included; `None`: all before it.
    pub(super) window: Option<usize>,
    /// Tokens that end a text.
    pub(super) end: Vec<u32>,
    /// Class of the tokenizer in transformers, if a `tokenizer_config.json` states none.
    pub(super) tokenizer_class: Option<String>,
    /// Encoding of a model whose layers have different ones; `None`: `rope` in every layer.
    pub(super) layers: Option<Combination>,
    /// Encoding of a model that `extend` wrote under another than a rotation, and the lengths that it is built for.
    pub(super) tuned: Option<(Combination, [usize; 2])>,
}

/// Sizes of a model as stated in a file.
pub(super) struct LlamaSizes {
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) hidden: usize,
    pub(super) vocabulary: usize,
    pub(super) context: usize,
    /// Whether queries, keys and values have a bias, as in Qwen2.
    pub(super) qkv_bias: bool,
    /// Normalisation of queries and keys.
    pub(super) qk_norm: QkNormKind,
}

impl LlamaSizes {
    /// Returns the decoder configuration with these sizes.
    pub(super) fn model(&self, path: &Path, epsilon: f64, tied_head: bool) -> Result<ModelConfig> {
        for (field, value) in [
            ("layers", self.layers),
            ("width", self.width),
            ("heads", self.heads),
            ("heads of keys and values", self.kv_heads),
            ("feed-forward width", self.hidden),
            ("vocabulary", self.vocabulary),
            ("context", self.context),
        ] {
            if value == 0 || value > LARGEST {
                let expected = format!("1 to {LARGEST}");
                return Err(error::unsupported(path, field, value, expected));
            }
        }
        let model = ModelConfig {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            kv_heads: Some(self.kv_heads).filter(|kv_heads| *kv_heads != self.heads),
            feed_forward_width: Some(self.hidden),
            norm: NormKind::RmsNorm,
            norm_epsilon: Some(epsilon),
            activation: ActivationKind::SwiGlu,
            bias: false,
            qkv_bias: self.qkv_bias,
            qk_norm: self.qk_norm,
            tied_head,
            ..ModelConfig::default()
        };
        model.check().map_err(|error| anyhow!("{}: {error}", path.display()))?;
        Ok(model)
    }
}

impl LlamaSettings {
    /// Adds tokens that end a text, from the file at `path`.
    pub(super) fn with_end(mut self, path: &Path, end: &[u32]) -> Result<Self> {
        let new = end.iter().filter(|id| !self.end.contains(id)).copied().collect::<Vec<_>>();
        self.end.extend(new);
        self.checked(path)
    }

    /// Refuses ends of a text that are no tokens.
    pub(super) fn checked(self, path: &Path) -> Result<Self> {
        if let Some(id) = self.end.iter().find(|id| **id as usize >= self.vocabulary) {
            let expected = format!("less than {}, the size of the vocabulary", self.vocabulary);
            return Err(error::unsupported(path, "eos_token_id", id, expected));
        }
        Ok(self)
    }
}

/// Refuses a rotation, read from a field of the file at `path`, that the model's sizes do not allow.
pub(super) fn check_rotation(
    path: &Path,
    field: &str,
    rope: &rope::RopeConfig,
    dims: &Dims,
) -> Result<()> {
    Rope::check(rope, dims).map_err(|error| anyhow!("{}: `{field}`: {error}", path.display()))
}
