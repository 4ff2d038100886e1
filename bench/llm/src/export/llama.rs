//! Llama-type models as HuggingFace's transformers stores them.

use pe_zoo::rotary::{ORIGINAL_LENGTH, Scaling};
use pe_zoo::zoo::rope::{Rope, RopeConfig};
use pe_zoo::{Combination, PositionEncoding};
use serde_json::{Value, json};

use super::staged::{EXPORTED_BY, PROGRAM};
use pe_zoo::model::{ActivationKind, ModelConfig, NormKind, NormPlace, QkNormKind};
use train::weights::NamedTensors;

/// Facts of a model that its files state besides the weights.
#[derive(Debug, Clone, Copy)]
pub struct ModelFacts<'a> {
    /// Architecture of the decoder.
    pub model: &'a ModelConfig,
    /// Encoding of the model.
    pub encoding: &'a Combination,
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Trained and longest length in tokens that the encoding is built for.
    pub lens: [usize; 2],
    /// Longest length in tokens that the model was trained on, after a tuning.
    pub context: usize,
    /// Number of latest tokens that each token attends to; `None`: all.
    pub window: Option<usize>,
    /// Tokens that end a text.
    pub end: &'a [u32],
}

/// Model that transformers loads as `LlamaForCausalLM`, `MistralForCausalLM` or `Qwen2ForCausalLM`, or one of their form under
/// another encoding.
pub(super) struct Llama<'a> {
    facts: ModelFacts<'a>,
    /// Rotation; `None` for an encoding that transformers does not know.
    rope: Option<RopeConfig>,
}

impl<'a> Llama<'a> {
    /// The model with these facts; `None` if its architecture is not Llama's.
    pub(super) fn of(facts: ModelFacts<'a>) -> Option<Self> {
        let ModelConfig { norm, norm_place, activation, bias, qk_norm, attention, .. } =
            *facts.model;
        let other = bias || facts.model.output_gate || facts.model.is_scaled();
        let kind = (norm, norm_place, activation, other, qk_norm, attention);
        let llama = (
            NormKind::RmsNorm,
            NormPlace::Pre,
            ActivationKind::SwiGlu,
            false,
            QkNormKind::None,
            pe_zoo::attention::AttentionKind::Soft,
        );
        (kind == llama).then(|| Self { facts, rope: known_rotation(&facts) })
    }

    /// Whether transformers loads it.
    pub(super) fn is_known(&self) -> bool {
        self.rope.is_some()
    }

    /// `config.json`; a model under an encoding that transformers does not know has the type `other_type`.
    pub(super) fn config(&self, other_type: &str) -> Value {
        let ModelFacts { model, encoding, vocabulary, lens, context, window, end } = self.facts;
        let [trained, _] = lens;
        let (name, kind) = match (&self.rope, model.qkv_bias, window) {
            (None, _, _) => ("", other_type),
            (Some(_), true, _) => ("Qwen2ForCausalLM", "qwen2"),
            (Some(_), false, Some(_)) => ("MistralForCausalLM", "mistral"),
            (Some(_), false, None) => ("LlamaForCausalLM", "llama"),
        };
        let end = match end {
            [] => Value::Null,
            [one] => json!(one),
            several => json!(several),
        };
        let mut config = json!({
            "architectures": [name],
            EXPORTED_BY: PROGRAM,
            "model_type": kind,
            "torch_dtype": "float32",
            "vocab_size": vocabulary,
            "hidden_size": model.width,
            "intermediate_size": model.hidden(),
            "num_hidden_layers": model.layers,
            "num_attention_heads": model.heads,
            "num_key_value_heads": model.kv_heads(),
            "hidden_act": "silu",
            "rms_norm_eps": super::norm_epsilon(model),
            "max_position_embeddings": context,
            "tie_word_embeddings": model.tied_head,
            "attention_bias": false,
            "mlp_bias": false,
            "bos_token_id": null,
            "eos_token_id": end,
        });
        if let Some(head_dim) = model.head_dim {
            config["head_dim"] = json!(head_dim);
        }
        if let Some(window) = window {
            config["sliding_window"] = json!(window);
            // Qwen2 has the window from this layer on, and none without the switch.
            config["use_sliding_window"] = json!(true);
            config["max_window_layers"] = json!(0);
        }
        let Some(rope) = &self.rope else {
            config["architectures"] = json!([]);
            config["qkv_bias"] = json!(model.qkv_bias);
            config["pe_zoo_encoding"] = json!(encoding.to_string());
            config["pe_zoo_lens"] = json!(lens);
            return config;
        };
        config["rope_theta"] = json!(rope.base);
        if rope.scaling != Scaling::None
            && let Ok(mut scaling) = serde_json::to_value(&rope.scaling)
        {
            // Older versions of transformers read `type`.
            scaling["type"] = scaling["rope_type"].clone();
            let original = match &scaling[ORIGINAL_LENGTH] {
                Value::Null => json!(trained),
                given => given.clone(),
            };
            // Linear scaling has none, and this program refuses settings that a scaling does not have.
            if !matches!(rope.scaling, Scaling::Linear { .. }) {
                scaling[ORIGINAL_LENGTH] = original.clone();
            }
            match rope.scaling {
                // transformers starts it from this length alone.
                Scaling::Dynamic { .. } => config["max_position_embeddings"] = original,
                // Some versions take the original length from beside the object, and the quotient of the lengths for the
                // factor, which determines only the factor of cosines and sines.
                Scaling::LongRope(_) => {
                    config[ORIGINAL_LENGTH] = original;
                    let spectrum = rope.scaling.spectrum(rope.base, model.head_dim(), trained, 1);
                    scaling["attention_factor"] = json!(spectrum.attention_factor);
                }
                _ => {}
            }
            config["rope_scaling"] = scaling;
        }
        config
    }

    /// The parameters under the names of transformers, with the maps that this program joins taken apart; those of an
    /// encoding keep their names.
    pub(super) fn tensors(&self, kept: &NamedTensors) -> NamedTensors {
        let model = self.facts.model;
        let (width, kv_width, hidden) = (model.width, model.kv_width(), model.hidden());
        let mut tensors = kept.renamed(Self::name);
        for layer in 0..model.layers {
            let mut split = |joined: &str, parts: &[(&str, usize)], columns: Option<usize>| {
                let values = kept.values(&format!("blocks.{layer}.{joined}")).unwrap_or_default();
                let mut rest = &values[..];
                for (name, rows) in parts {
                    let (own, others) = rest.split_at(rows * columns.unwrap_or(1));
                    rest = others;
                    let dims = std::iter::once(*rows).chain(columns).collect();
                    tensors.insert(format!("model.layers.{layer}.{name}"), dims, own);
                }
            };
            let qkv = [model.heads_width(), kv_width, kv_width];
            let named = |kind: &'static [&'static str; 3]| {
                kind.iter().copied().zip(qkv).collect::<Vec<_>>()
            };
            split("qkv.weight", &named(&QKV_WEIGHTS), Some(width));
            if model.qkv_bias {
                split("qkv.bias", &named(&QKV_BIASES), None);
            }
            let up = [("mlp.gate_proj.weight", hidden), ("mlp.up_proj.weight", hidden)];
            split("feed_forward.up.weight", &up, Some(width));
        }
        tensors
    }

    /// Name of a parameter in transformers; `None` for one that is joined of several.
    fn name(name: &str) -> Option<String> {
        let name = match name {
            "embedding.weight" => "model.embed_tokens.weight".to_owned(),
            "last_norm.weight" => "model.norm.weight".to_owned(),
            "head.weight" => "lm_head.weight".to_owned(),
            _ if name.starts_with("encoding.") => name.to_owned(),
            _ => {
                let (layer, part) = name.strip_prefix("blocks.")?.split_once('.')?;
                let part = match part {
                    "attention_norm.weight" => "input_layernorm",
                    "out.weight" => "self_attn.o_proj",
                    "feed_forward_norm.weight" => "post_attention_layernorm",
                    "feed_forward.down.weight" => "mlp.down_proj",
                    _ => return None,
                };
                format!("model.layers.{layer}.{part}.weight")
            }
        };
        Some(name)
    }
}

/// Names of the maps to queries, keys and values.
const QKV_WEIGHTS: [&str; 3] =
    ["self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"];

/// Names of the biases of queries, keys and values.
const QKV_BIASES: [&str; 3] =
    ["self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"];

/// The rotation of a model, if transformers has it.
fn known_rotation(facts: &ModelFacts<'_>) -> Option<RopeConfig> {
    let [part] = facts.encoding.parts() else { return None };
    if part.card().id != Rope::CARD.id {
        return None;
    }
    // The part was made from such settings.
    let rope: RopeConfig = serde_json::from_value(part.fields().clone().into()).ok()?;
    let scaling = rope.scaling.resolved(&facts.model.dims(facts.lens[0], facts.lens[1]));
    // transformers has no name for the others, and rotates all channels of a Llama in halves.
    let is_known = match &scaling {
        Scaling::Ntk { .. }
        | Scaling::Proportional { .. }
        | Scaling::PartNtk(_)
        | Scaling::Clipped { .. }
        | Scaling::HighFrequency { .. }
        | Scaling::Composed { .. } => false,
        Scaling::Yarn(yarn) => yarn.extrapolation_factor.is_none(),
        _ => true,
    };
    let plain =
        RopeConfig { base: rope.base, scaling: rope.scaling.clone(), ..RopeConfig::default() };
    (is_known && rope == plain).then_some(RopeConfig { scaling, ..rope })
}
