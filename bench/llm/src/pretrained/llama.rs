//! Weights of a Llama-type model, read from any kind of file.

use std::path::Path;

use anyhow::{Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};

use super::settings::{LlamaSettings, StoredForm};
use pe_zoo::model::{BlockWeights, DecoderWeights, NormPlace, OutputGains, QkGains, QkNormKind};

/// A weight of the model, by its names in both kinds of files. Linear maps are stored as `[outputs, inputs]`, biases as
/// `[outputs]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WeightId {
    /// Index of the layer; `None` for weights outside of layers.
    layer: Option<usize>,
    hugging_face: &'static str,
    gguf: &'static str,
}

/// Token embeddings, `[V, C]`.
pub(super) const EMBEDDING: WeightId = weight("model.embed_tokens.weight", "token_embd.weight");
/// Scale of the last normalisation, `[C]`.
const LAST_NORM: WeightId = weight("model.norm.weight", "output_norm.weight");
/// Output head, `[V, C]`.
pub(super) const HEAD: WeightId = weight("lm_head.weight", "output.weight");
const ATTENTION_NORM: WeightId = weight("input_layernorm.weight", "attn_norm.weight");
pub(super) const QUERY: WeightId = weight("self_attn.q_proj.weight", "attn_q.weight");
const QUERY_BIAS: WeightId = weight("self_attn.q_proj.bias", "attn_q.bias");
pub(super) const KEY: WeightId = weight("self_attn.k_proj.weight", "attn_k.weight");
const KEY_BIAS: WeightId = weight("self_attn.k_proj.bias", "attn_k.bias");
const VALUE: WeightId = weight("self_attn.v_proj.weight", "attn_v.weight");
const VALUE_BIAS: WeightId = weight("self_attn.v_proj.bias", "attn_v.bias");
const QUERY_GAIN: WeightId = weight("self_attn.q_norm.weight", "attn_q_norm.weight");
const KEY_GAIN: WeightId = weight("self_attn.k_norm.weight", "attn_k_norm.weight");
const OUT: WeightId = weight("self_attn.o_proj.weight", "attn_output.weight");
const FEED_FORWARD_NORM: WeightId = weight("post_attention_layernorm.weight", "ffn_norm.weight");
/// Scale of the normalisation before the feed-forward network of a model that has another one after attention.
const BETWEEN_NORM: WeightId = weight("pre_feedforward_layernorm.weight", "ffn_norm.weight");
/// Scales of the normalisations after attention and feed-forward network, where these stand there.
const AFTER_ATTENTION: WeightId =
    weight("post_attention_layernorm.weight", "post_attention_norm.weight");
const AFTER_FEED_FORWARD: WeightId =
    weight("post_feedforward_layernorm.weight", "post_ffw_norm.weight");
const GATE: WeightId = weight("mlp.gate_proj.weight", "ffn_gate.weight");
const UP: WeightId = weight("mlp.up_proj.weight", "ffn_up.weight");
const DOWN: WeightId = weight("mlp.down_proj.weight", "ffn_down.weight");

const fn weight(hugging_face: &'static str, gguf: &'static str) -> WeightId {
    WeightId { layer: None, hugging_face, gguf }
}

impl WeightId {
    /// Whether this is the given weight of any layer.
    pub(super) fn is(self, other: Self) -> bool {
        Self { layer: None, ..self } == other
    }

    /// Name in the files of HuggingFace.
    pub(super) fn hugging_face(self) -> String {
        self.named("model.layers", self.hugging_face)
    }

    /// Name in GGUF files.
    pub(super) fn gguf(self) -> String {
        self.named("blk", self.gguf)
    }

    fn named(self, layers: &str, name: &str) -> String {
        self.layer.map_or_else(|| name.to_owned(), |layer| format!("{layers}.{layer}.{name}"))
    }
}

/// Source of named weights: a file or folder.
pub(super) trait WeightSource {
    /// Path of the source, for error messages.
    fn path(&self) -> &Path;

    /// Removes a weight from the source and returns it in row-major order, with half-split pairs of rotated channels.
    fn take(&mut self, slot: WeightId, shape: &[usize]) -> Result<Vec<f32>>;

    /// Names of the weights that have not been taken.
    fn left(&self) -> Vec<String>;
}

/// Maximum number of unused weights named in an error message.
const NAMES_SHOWN: usize = 3;

/// Takes all weights from a source, and refuses a source with more.
pub(super) fn read(
    settings: &LlamaSettings,
    source: &mut dyn WeightSource,
    device: &Device,
) -> Result<DecoderWeights> {
    let model = &settings.model;
    let (width, kv_width, hidden) = (model.width, model.kv_width(), model.hidden());
    let (head_dim, channels) = (model.head_dim(), model.heads_width());
    let StoredForm { gain_offset, query_scale } = settings.stored;
    let scaled = |is_here: bool| if is_here { query_scale } else { 1.0 };
    let is_normed = model.qk_norm != QkNormKind::None;
    let mut reader = WeightReader {
        source,
        device,
        gain_offset,
        query_gain_scale: scaled(is_normed),
        query_map_scale: scaled(!is_normed),
    };
    let embedding = reader.rows(&[(EMBEDDING, settings.vocabulary)], width)?;
    let [attention_norm, feed_forward_norm] = match model.norm_place {
        NormPlace::Output => [AFTER_ATTENTION, AFTER_FEED_FORWARD],
        NormPlace::Pre | NormPlace::Post => [ATTENTION_NORM, FEED_FORWARD_NORM],
        NormPlace::Both => [ATTENTION_NORM, BETWEEN_NORM],
    };
    let mut blocks = Vec::new();
    for layer in 0..model.layers {
        let of = |weight: WeightId| WeightId { layer: Some(layer), ..weight };
        let qkv = [(of(QUERY), channels), (of(KEY), kv_width), (of(VALUE), kv_width)];
        let biases =
            [(of(QUERY_BIAS), channels), (of(KEY_BIAS), kv_width), (of(VALUE_BIAS), kv_width)];
        blocks.push(BlockWeights {
            attention_norm: reader.gain(of(attention_norm), width)?,
            qkv: reader.rows(&qkv, width)?.transpose(),
            qkv_bias: if model.qkv_bias { Some(reader.biases(&biases)?) } else { None },
            qk_gains: match model.qk_norm {
                QkNormKind::None => None,
                QkNormKind::Head => Some(reader.gains(of, head_dim, head_dim)?),
                QkNormKind::Width => Some(reader.gains(of, channels, kv_width)?),
            },
            out: reader.rows(&[(of(OUT), width)], channels)?.transpose(),
            feed_forward_norm: reader.gain(of(feed_forward_norm), width)?,
            up: reader.rows(&[(of(GATE), hidden), (of(UP), hidden)], width)?.transpose(),
            down: reader.rows(&[(of(DOWN), width)], hidden)?.transpose(),
            output_norms: match model.norm_place {
                NormPlace::Both => Some(OutputGains {
                    attention: reader.gain(of(AFTER_ATTENTION), width)?,
                    feed_forward: reader.gain(of(AFTER_FEED_FORWARD), width)?,
                }),
                NormPlace::Pre | NormPlace::Post | NormPlace::Output => None,
            },
        });
    }
    let last_norm = reader.gain(LAST_NORM, width)?;
    let head = if model.tied_head {
        None
    } else {
        Some(reader.rows(&[(HEAD, settings.vocabulary)], width)?.transpose())
    };
    let left = source.left();
    ensure!(
        left.is_empty(),
        "{} has {} tensors that a Llama-type model with these settings does not have, for example `{}`; use another \
         model",
        source.path().display(),
        left.len(),
        left[..left.len().min(NAMES_SHOWN)].join("`, `")
    );
    Ok(DecoderWeights { embedding, blocks, last_norm, head })
}

struct WeightReader<'a> {
    source: &'a mut dyn WeightSource,
    device: &'a Device,
    /// Number that is added to gains.
    gain_offset: f32,
    /// Factor of the gains of queries.
    query_gain_scale: f32,
    /// Factor of the map to queries.
    query_map_scale: f32,
}

impl WeightReader<'_> {
    /// Gains of the normalisation of queries and keys of the layer of `of`.
    fn gains(
        &mut self,
        of: impl Fn(WeightId) -> WeightId,
        queries: usize,
        keys: usize,
    ) -> Result<QkGains> {
        Ok(QkGains {
            queries: self.gain(of(QUERY_GAIN), queries)? * self.query_gain_scale,
            keys: self.gain(of(KEY_GAIN), keys)?,
        })
    }

    fn gain(&mut self, slot: WeightId, width: usize) -> Result<Tensor<1>> {
        let mut values = self.source.take(slot, &[width])?;
        for value in &mut values {
            *value += self.gain_offset;
        }
        Ok(Tensor::from_data(TensorData::new(values, [width]), self.device))
    }

    /// Concatenates biases, `[sum of outputs]`.
    fn biases(&mut self, slots: &[(WeightId, usize)]) -> Result<Tensor<1>> {
        let mut values = Vec::new();
        for (slot, outputs) in slots {
            values.extend(self.source.take(*slot, &[*outputs])?);
        }
        let count = values.len();
        Ok(Tensor::from_data(TensorData::new(values, [count]), self.device))
    }

    /// Stacks linear maps, `[sum of outputs, inputs]`.
    fn rows(&mut self, slots: &[(WeightId, usize)], inputs: usize) -> Result<Tensor<2>> {
        let mut values = Vec::new();
        let mut rows = 0;
        for (slot, outputs) in slots {
            let mut taken = self.source.take(*slot, &[*outputs, inputs])?;
            if slot.is(QUERY) {
                for weight in &mut taken {
                    *weight *= self.query_map_scale;
                }
            }
            rows += outputs;
            if values.is_empty() {
                values = taken;
            } else {
                values.extend(taken);
            }
        }
        Ok(Tensor::from_data(TensorData::new(values, [rows, inputs]), self.device))
    }
}
