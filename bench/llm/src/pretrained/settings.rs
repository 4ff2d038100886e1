//! Settings of a Llama-type model, from any of the supported files.

use std::path::Path;

use anyhow::Result;
use pe_zoo::zoo::rope::{self, Rope};
use pe_zoo::{Combination, Dims, EncodingConfig, PeError};

use super::error;
use pe_zoo::model::{ActivationKind, ModelConfig, ModelError, NormKind, NormPlace, QkNormKind};

/// Key of the ends of a text in JSON files.
pub(super) const END: &str = "eos_token_id";

/// Maximum size that a model may have; products of two larger sizes overflow.
const LARGEST: usize = 1 << 24;

/// Sizes and rotation of a Llama-type model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LlamaSettings {
    pub(super) model: ModelConfig,
    /// Differences of the stored weights.
    pub(super) stored: StoredForm,
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

/// How stored weights differ from those of the decoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StoredForm {
    /// Number that is added to the gains of all normalisations.
    pub(super) gain_offset: f32,
    /// Factor of the queries: of their gains, or of their map if they are not normalised.
    pub(super) query_scale: f32,
}

impl Default for StoredForm {
    /// They do not differ.
    fn default() -> Self {
        Self { gain_offset: 0.0, query_scale: 1.0 }
    }
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
    /// Channels of a head, if they are stated.
    pub(super) head_dim: Option<usize>,
}

/// Form of a model: what distinguishes types of models beside the sizes.
pub(super) struct LlamaForm {
    /// Whether queries, keys and values have a bias, as in Qwen2.
    pub(super) qkv_bias: bool,
    /// Normalisation of queries and keys.
    pub(super) qk_norm: QkNormKind,
    /// Place of the other normalisations.
    pub(super) norm_place: NormPlace,
    /// Gated unit of the feed-forward network.
    pub(super) activation: ActivationKind,
    /// Whether the head is the transposed embedding.
    pub(super) tied_head: bool,
    /// Whether embeddings are multiplied by the root of the width.
    pub(super) scaled_embedding: bool,
    /// Bound of the logits.
    pub(super) head_cap: Option<f64>,
}

impl LlamaForm {
    /// Form of a `llama`.
    pub(super) fn llama(tied_head: bool) -> Self {
        Self {
            qkv_bias: false,
            qk_norm: QkNormKind::None,
            norm_place: NormPlace::Pre,
            activation: ActivationKind::SwiGlu,
            tied_head,
            scaled_embedding: false,
            head_cap: None,
        }
    }
}

/// Keys of a file that state the sizes of a model, for errors.
pub(super) struct SizeKeys {
    pub(super) layers: &'static str,
    pub(super) width: &'static str,
    pub(super) heads: &'static str,
    pub(super) kv_heads: &'static str,
    pub(super) hidden: &'static str,
    pub(super) vocabulary: &'static str,
    pub(super) context: &'static str,
    pub(super) head_dim: &'static str,
    pub(super) epsilon: &'static str,
}

impl SizeKeys {
    /// Key that states a field of the decoder's configuration.
    fn of(&self, field: &'static str) -> &'static str {
        let keys = [
            ("layers", self.layers),
            ("width", self.width),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("feed_forward_width", self.hidden),
            ("head_dim", self.head_dim),
            ("norm_epsilon", self.epsilon),
        ];
        keys.into_iter().find(|(known, _)| *known == field).map_or(field, |(_, key)| key)
    }
}

impl LlamaSizes {
    /// Returns the decoder configuration with these sizes.
    pub(super) fn model(
        &self,
        path: &Path,
        keys: &SizeKeys,
        epsilon: f64,
        form: &LlamaForm,
    ) -> Result<ModelConfig> {
        for (key, value) in [
            (keys.layers, self.layers),
            (keys.width, self.width),
            (keys.heads, self.heads),
            (keys.kv_heads, self.kv_heads),
            (keys.hidden, self.hidden),
            (keys.vocabulary, self.vocabulary),
            (keys.context, self.context),
            (keys.head_dim, self.head_dim.unwrap_or(1)),
        ] {
            if value == 0 || value > LARGEST {
                let expected = format!("1 to {LARGEST}");
                return Err(error::unsupported(path, key, value, expected));
            }
        }
        let model = ModelConfig {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            head_dim: self.head_dim.filter(|dim| dim.checked_mul(self.heads) != Some(self.width)),
            kv_heads: Some(self.kv_heads).filter(|kv_heads| *kv_heads != self.heads),
            feed_forward_width: Some(self.hidden),
            norm: NormKind::RmsNorm,
            norm_epsilon: Some(epsilon),
            activation: form.activation,
            bias: false,
            qkv_bias: form.qkv_bias,
            qk_norm: form.qk_norm,
            norm_place: form.norm_place,
            tied_head: form.tied_head,
            scaled_embedding: form.scaled_embedding,
            head_cap: form.head_cap,
            ..ModelConfig::default()
        };
        match model.check() {
            Ok(()) => Ok(model),
            Err(ModelError { field, value, expected }) => {
                Err(error::unsupported(path, keys.of(field), value, expected))
            }
        }
    }
}

impl LlamaSettings {
    /// Adds tokens that end a text, from the file at `path`.
    pub(super) fn with_end(mut self, path: &Path, end: &[u32]) -> Result<Self> {
        let new = end.iter().filter(|id| !self.end.contains(id)).copied().collect::<Vec<_>>();
        self.end.extend(new);
        self.checked(path, END)
    }

    /// Refuses ends of a text, stated by a key of the file at `path`, that are no tokens.
    pub(super) fn checked(self, path: &Path, key: &str) -> Result<Self> {
        if let Some(id) = self.end.iter().find(|id| **id as usize >= self.vocabulary) {
            let expected = format!("less than {}, the size of the vocabulary", self.vocabulary);
            return Err(error::unsupported(path, key, id, expected));
        }
        Ok(self)
    }
}

/// Refuses a rotation, read from the file at `path`, that the model's sizes do not allow; `key` is the key that states a setting of
/// the encoding.
pub(super) fn check_rotation(
    path: &Path,
    key: impl Fn(&str) -> String,
    rope: &rope::RopeConfig,
    dims: &Dims,
) -> Result<()> {
    match EncodingConfig::of::<Rope>(rope.clone()).and_then(|rope| rope.check(dims)) {
        Err(PeError::InvalidSetting { field, value, expected, .. }) => {
            Err(error::unsupported(path, &key(&field), value, expected))
        }
        other => Ok(other?),
    }
}
