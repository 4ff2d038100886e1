//! Parser of `config.json` of a Llama-type model of one of the types in `kinds`, in the format of HuggingFace's transformers, and
//! of `generation_config.json` beside it. Null stands for an absent field, except where it means that there is no bound.

use std::path::Path;

use anyhow::Result;
use pe_zoo::Combination;
use pe_zoo::settings::explain;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error;
use super::kinds::{HasWindow, ModelKind, TUNED_TYPE};
use super::layers::{LayerFields, LayerParts};
use super::rotation::RotationFields;
use super::settings::{
    END, LlamaForm, LlamaSettings, LlamaSizes, SizeKeys, StoredForm, check_rotation,
};
use super::version::WrittenBy;

/// Fields of `config.json` that determine the computation. Other fields, about training and software, are ignored.
#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the fields are those of the file")]
struct ConfigFile {
    model_type: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: usize,
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    hidden_act: Option<String>,
    /// Of Gemma, in place of `hidden_act`.
    hidden_activation: Option<String>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    /// Of a model that `extend` wrote: whether queries, keys and values have a bias.
    #[serde(default)]
    qkv_bias: bool,
    tie_word_embeddings: Option<bool>,
    rope_theta: Option<f64>,
    /// Of Gemma 3: base of the rotation of layers with a window.
    rope_local_base_freq: Option<f64>,
    rope_scaling: Option<Map<String, Value>>,
    rope_parameters: Option<Map<String, Value>>,
    partial_rotary_factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
    #[serde(default)]
    sliding_window: Stated<usize>,
    #[serde(default)]
    use_sliding_window: bool,
    #[serde(default = "max_window_layers")]
    max_window_layers: usize,
    layer_types: Option<Vec<String>>,
    /// Of Gemma 3: every so many layers, one has no window.
    sliding_window_pattern: Option<usize>,
    /// Of Gemma: the logits of attention are divided by its root.
    query_pre_attn_scalar: Option<f64>,
    #[serde(default)]
    attn_logit_softcapping: Stated<f64>,
    #[serde(default)]
    final_logit_softcapping: Stated<f64>,
    #[serde(default)]
    use_bidirectional_attention: bool,
    /// Of `smollm3`: 1 for a layer with a rotation, 0 for one without a position encoding.
    no_rope_layers: Option<Vec<u8>>,
    #[serde(default = "no_rope_layer_interval")]
    no_rope_layer_interval: usize,
    quantization_config: Option<Value>,
    eos_token_id: Option<Value>,
    tokenizer_class: Option<String>,
    pe_zoo_encoding: Option<String>,
    pe_zoo_lens: Option<[usize; 2]>,
}

/// Keys of `config.json`.
const KEYS: SizeKeys = SizeKeys {
    layers: "num_hidden_layers",
    width: "hidden_size",
    heads: "num_attention_heads",
    kv_heads: "num_key_value_heads",
    hidden: "intermediate_size",
    vocabulary: "vocab_size",
    context: "max_position_embeddings",
    head_dim: "head_dim",
    epsilon: "rms_norm_eps",
};

/// Bound whose absence and null differ.
#[derive(Default, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "expected a number or null")]
enum Stated<T> {
    Bound(T),
    /// Null: there is none.
    Unbounded,
    /// The file does not state one.
    #[default]
    Absent,
}

impl<T> Stated<T> {
    /// The bound, or the default if the file does not state one.
    fn or(self, default: Option<T>) -> Option<T> {
        match self {
            Self::Bound(bound) => Some(bound),
            Self::Unbounded => None,
            Self::Absent => default,
        }
    }
}

/// Fields whose null has a meaning of its own.
const WITH_NULL: [&str; 3] =
    ["sliding_window", "attn_logit_softcapping", "final_logit_softcapping"];

/// Longest length that a tuned encoding is built for.
const LARGEST_LEN: usize = 1 << 24;

/// Window of a model whose file does not state one: the default of transformers.
const WINDOW: usize = 4096;

/// Number of the first layers of a `qwen2` model without a window: the default of transformers.
fn max_window_layers() -> usize {
    28
}

/// Every so many layers of a `smollm3` model, one has no position encoding: the default of transformers.
fn no_rope_layer_interval() -> usize {
    4
}

/// Reads the settings from the fields of the file at `path`, by the rules of the version that wrote it.
pub(super) fn read(
    path: &Path,
    fields: Map<String, Value>,
    written_by: &WrittenBy,
) -> Result<LlamaSettings> {
    // Other types may lack the fields of these.
    if let Some(Value::String(name)) = fields.get("model_type") {
        kind(path, name)?;
    }
    let json = Value::Object(fields);
    let file: ConfigFile = serde_path_to_error::deserialize(json).map_err(|e| {
        match e.path().to_string().as_str() {
            // A missing field is one of the whole file.
            "." => error::damaged(path, e.inner()),
            field => {
                let value = format!("of a wrong type ({})", explain(&e.inner().to_string()));
                error::unsupported(path, field, value, "a value as transformers writes it")
            }
        }
    })?;
    let kind = kind(path, &file.model_type)?;
    file.refuse_other_forms(path, kind)?;
    let heads = file.num_attention_heads;
    let sizes = LlamaSizes {
        layers: file.num_hidden_layers,
        width: file.hidden_size,
        heads,
        kv_heads: file.num_key_value_heads.unwrap_or(heads),
        hidden: file.intermediate_size,
        vocabulary: file.vocab_size,
        context: file.max_position_embeddings,
        head_dim: file.head_dim.or(kind.head_dim),
    };
    let model = sizes.model(path, &KEYS, file.rms_norm_eps, &file.form(kind))?;
    let rope = RotationFields {
        theta: file.rope_theta,
        windowed_theta: file.rope_local_base_freq,
        default_theta: kind.theta,
        bases: kind.gemma.and_then(|gemma| gemma.bases),
        scaling: file.rope_scaling.as_ref(),
        parameters: file.rope_parameters.as_ref(),
        turned_share: file.partial_rotary_factor,
        original_len: file.original_max_position_embeddings,
        context: file.max_position_embeddings,
        layer_types: file.layer_types.as_deref(),
        written_by,
    };
    let rotations =
        if kind.has_two_rotations { rope.read_by_kind(path)? } else { [rope.read(path)?].into() };
    let tuned = file.tuned(path)?;
    // A tuned encoding is another one, which is checked when the model is built.
    if tuned.is_none() {
        let dims = model.dims(sizes.context, sizes.context);
        for rotation in &rotations {
            check_rotation(path, |setting| rotation.key(setting), &rotation.rope, &dims)?;
        }
    }
    // The first is that of full attention, the last that of a window.
    let [full, windowed] = [rotations.first(), rotations.last()]
        .map(|rotation| rotation.map(|rotation| rotation.rope.clone()).unwrap_or_default());
    let window = file.window(path, kind)?;
    // Within a window as long as the context it has no effect.
    let short = window.filter(|window| *window < sizes.context);
    if let Some(window) = short.filter(|_| tuned.is_some()) {
        let expected = "null, or a window that covers `max_position_embeddings`";
        return Err(error::unsupported(path, "sliding_window", window, expected));
    }
    let layers = if tuned.is_some() {
        None
    } else {
        let cap = kind.gemma.and_then(|gemma| gemma.attention_cap);
        let cap = cap.and_then(|cap| file.attn_logit_softcapping.or(Some(cap)));
        let parts = LayerParts { full: full.clone(), windowed, window: short, cap };
        file.layers(kind).encoding(path, &parts)?
    };
    let window = if short.is_some() { None } else { window };
    let end = end(path, file.eos_token_id.as_ref())?;
    let (vocabulary, context) = (sizes.vocabulary, sizes.context);
    let stored = file.stored(path, kind, model.head_dim())?;
    let tokenizer_class = file.tokenizer_class.or(kind.tokenizer_class.map(str::to_owned));
    let settings = LlamaSettings {
        model,
        rope: full,
        stored,
        vocabulary,
        context,
        window,
        end,
        tokenizer_class,
        layers,
        tuned,
    };
    settings.checked(path, END)
}

/// Reads the tokens that end a text from the text of the `generation_config.json` at `path`.
pub(super) fn generation_end(path: &Path, text: &str) -> Result<Vec<u32>> {
    end(path, fields(path, text)?.get(END))
}

/// Fields of a JSON file that are not null, or whose null has a meaning of its own.
pub(super) fn fields(path: &Path, text: &str) -> Result<Map<String, Value>> {
    let mut fields: Map<String, Value> =
        serde_json::from_str(text).map_err(|e| error::damaged(path, e))?;
    fields.retain(|key, value| !value.is_null() || WITH_NULL.contains(&key.as_str()));
    Ok(fields)
}

/// Ids in the field `eos_token_id`: one or a list. A negative one stands for none.
fn end(path: &Path, given: Option<&Value>) -> Result<Vec<u32>> {
    let ids = match given {
        Some(Value::Array(ids)) => ids.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let ids = ids.iter().filter(|id| id.as_i64().is_none_or(|id| id >= 0));
    ids.map(|id| {
        id.as_u64()
            .and_then(|id| u32::try_from(id).ok())
            .ok_or_else(|| error::unsupported(path, END, id, "a token id or a list of them"))
    })
    .collect()
}

/// Returns the type of a model by its name.
fn kind(path: &Path, name: &str) -> Result<&'static ModelKind> {
    ModelKind::find(name).ok_or_else(|| {
        let names: Vec<_> = ModelKind::names().collect();
        let expected = format!("one of \"{}\"", names.join("\", \""));
        error::unsupported(path, "model_type", format!("\"{name}\""), expected)
    })
}

impl ConfigFile {
    fn refuse_other_forms(&self, path: &Path, kind: &ModelKind) -> Result<()> {
        let refuse = |field, value: String, expected: &str| {
            Err(error::unsupported(path, field, value, expected))
        };
        let (field, stated) = match kind.gemma {
            Some(_) => ("hidden_activation", &self.hidden_activation),
            None => ("hidden_act", &self.hidden_act),
        };
        let activation = kind.activation_name();
        if let Some(other) = stated.as_ref().filter(|stated| *stated != activation) {
            return refuse(field, format!("\"{other}\""), &format!("\"{activation}\""));
        }
        if self.use_bidirectional_attention {
            return refuse("use_bidirectional_attention", "true".to_owned(), "false");
        }
        if self.attention_bias || self.mlp_bias {
            let field = if self.attention_bias { "attention_bias" } else { "mlp_bias" };
            return refuse(field, "true".to_owned(), "false");
        }
        match &self.quantization_config {
            Some(how) => refuse(
                "quantization_config",
                how.to_string(),
                "no value, because only weights without quantization can be read",
            ),
            None => Ok(()),
        }
    }

    /// Form of a model of this type.
    fn form(&self, kind: &ModelKind) -> LlamaForm {
        LlamaForm {
            qkv_bias: kind.qkv_bias || self.qkv_bias,
            qk_norm: kind.qk_norm,
            norm_place: kind.norm_place,
            activation: kind.activation(),
            tied_head: self.tie_word_embeddings.unwrap_or(kind.tied_head),
            scaled_embedding: kind.gemma.is_some(),
            head_cap: kind.gemma.and_then(|gemma| self.final_logit_softcapping.or(gemma.head_cap)),
        }
    }

    /// How the file stores the weights of a model of this type.
    fn stored(&self, path: &Path, kind: &ModelKind, head_dim: usize) -> Result<StoredForm> {
        let Some(gemma) = kind.gemma else { return Ok(StoredForm::default()) };
        let scalar = self.query_pre_attn_scalar.unwrap_or(gemma.query_scalar);
        if !(scalar.is_finite() && scalar > 0.0) {
            let field = "query_pre_attn_scalar";
            return Err(error::unsupported(path, field, scalar, "a number above 0"));
        }
        let query_scale = (head_dim as f64 / scalar).sqrt();
        Ok(StoredForm { gain_offset: 1.0, query_scale: query_scale as f32 })
    }

    /// Encoding and lengths of a model that `extend` wrote under another encoding than a rotation.
    fn tuned(&self, path: &Path) -> Result<Option<(Combination, [usize; 2])>> {
        if self.model_type != TUNED_TYPE {
            return Ok(None);
        }
        let refuse = |field, value: String, expected: &str| {
            Err(error::unsupported(path, field, value, expected))
        };
        let (Some(text), Some(lens)) = (&self.pe_zoo_encoding, self.pe_zoo_lens) else {
            let expected = "an encoding and two lengths, as `extend --export` writes them";
            return refuse(
                "pe_zoo_encoding",
                "absent, or without `pe_zoo_lens`".to_owned(),
                expected,
            );
        };
        if !(0 < lens[0] && lens[0] <= lens[1] && lens[1] <= LARGEST_LEN) {
            let expected = format!("two lengths in order, from 1 to {LARGEST_LEN}");
            return refuse("pe_zoo_lens", format!("{lens:?}"), &expected);
        }
        match train::encodings::parse(text) {
            Ok(encoding) => Ok(Some((encoding, lens))),
            Err(error) => {
                refuse("pe_zoo_encoding", format!("\"{text}\""), &format!("an encoding: {error}"))
            }
        }
    }

    /// Fields that tell layers apart.
    fn layers(&self, kind: &ModelKind) -> LayerFields<'_> {
        LayerFields {
            windows: kind.windows,
            layers: self.num_hidden_layers,
            types: self.layer_types.as_deref(),
            max_window_layers: self.max_window_layers,
            window_pattern: self
                .sliding_window_pattern
                .filter(|_| kind.gemma.is_some() && kind.has_two_rotations),
            no_rope_layers: self.no_rope_layers.as_deref(),
            no_rope_layer_interval: self.no_rope_layer_interval,
        }
    }

    /// Window of the attention, if any layer has one in transformers, which gives none to a `llama`.
    fn window(&self, path: &Path, kind: &ModelKind) -> Result<Option<usize>> {
        let is_used = match kind.has_window {
            HasWindow::ByDefault | HasWindow::IfStated => true,
            HasWindow::IfUsed | HasWindow::IfStatedAndUsed => self.use_sliding_window,
        };
        let default = match kind.has_window {
            HasWindow::ByDefault | HasWindow::IfUsed => Some(WINDOW),
            HasWindow::IfStated | HasWindow::IfStatedAndUsed => None,
        };
        match self.sliding_window.or(default).filter(|_| is_used) {
            Some(window) if self.layers(kind).has_window(path)? => {
                let expected = "at least 1, because each token attends to itself, or null";
                if window == 0 {
                    return Err(error::unsupported(path, "sliding_window", window, expected));
                }
                Ok(Some(window))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
