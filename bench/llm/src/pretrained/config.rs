//! Parser of `config.json` of a Llama-type model (`llama`, `mistral`, `qwen2`, `qwen3`, `smollm3`, `olmo2` or `olmo3`) in the
//! format of HuggingFace's transformers, and of `generation_config.json` beside it. Null stands for an absent field.

use std::path::Path;

use anyhow::Result;
use pe_zoo::Combination;
use pe_zoo::model::{NormPlace, QkNormKind};
use pe_zoo::settings::explain;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error;
use super::layers::{LayerFields, LayerRotations};
use super::rotation::RotationFields;
use super::settings::{END, LlamaSettings, LlamaSizes, SizeKeys, check_rotation};
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
    #[serde(default = "silu")]
    hidden_act: String,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    /// Of a model that `extend` wrote: whether queries, keys and values have a bias.
    #[serde(default)]
    qkv_bias: bool,
    #[serde(default)]
    tie_word_embeddings: bool,
    rope_theta: Option<f64>,
    rope_scaling: Option<Map<String, Value>>,
    rope_parameters: Option<Map<String, Value>>,
    partial_rotary_factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
    #[serde(default)]
    sliding_window: SlidingWindow,
    #[serde(default)]
    use_sliding_window: bool,
    #[serde(default = "max_window_layers")]
    max_window_layers: usize,
    layer_types: Option<Vec<String>>,
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
    epsilon: "rms_norm_eps",
};

/// Field `sliding_window`.
#[derive(Default, Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "expected a number of tokens or null")]
enum SlidingWindow {
    Tokens(usize),
    /// Null: attention is not limited.
    Unlimited,
    /// The file does not state one.
    #[default]
    Absent,
}

/// Types of models that are read.
const TYPES: [&str; 7] = ["llama", "mistral", "qwen2", "qwen3", "smollm3", "olmo2", "olmo3"];

/// `model_type` of a model that `extend` wrote under another encoding than a rotation of transformers.
pub const TUNED_TYPE: &str = "pe-zoo-llama";

/// Longest length that a tuned encoding is built for.
const LARGEST_LEN: usize = 1 << 24;

/// Window of a `mistral`, `olmo3` or windowed `qwen2` model whose file does not state one: the default of transformers.
const WINDOW: usize = 4096;

/// Number of the first layers of a `qwen2` model without a window: the default of transformers.
fn max_window_layers() -> usize {
    28
}

/// Every so many layers of a `smollm3` model, one has no position encoding: the default of transformers.
fn no_rope_layer_interval() -> usize {
    4
}

/// Channels of a head of a `qwen3` model whose file does not state them: the default of transformers.
const QWEN3_HEAD_DIM: usize = 128;

fn silu() -> String {
    "silu".to_owned()
}

/// Reads the settings from the fields of the file at `path`, by the rules of the version that wrote it.
pub(super) fn read(
    path: &Path,
    fields: Map<String, Value>,
    written_by: &WrittenBy,
) -> Result<LlamaSettings> {
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
    file.refuse_other_kinds(path)?;
    let heads = file.num_attention_heads;
    let sizes = LlamaSizes {
        layers: file.num_hidden_layers,
        width: file.hidden_size,
        heads,
        kv_heads: file.num_key_value_heads.unwrap_or(heads),
        hidden: file.intermediate_size,
        vocabulary: file.vocab_size,
        context: file.max_position_embeddings,
        qkv_bias: file.model_type == "qwen2" || file.qkv_bias,
        qk_norm: match file.model_type.as_str() {
            "qwen3" => QkNormKind::Head,
            "olmo2" | "olmo3" => QkNormKind::Width,
            _ => QkNormKind::None,
        },
        norm_place: match file.model_type.as_str() {
            "olmo2" | "olmo3" => NormPlace::Output,
            _ => NormPlace::Pre,
        },
    };
    let model = sizes.model(path, &KEYS, file.rms_norm_eps, file.tie_word_embeddings)?;
    let fits = |head_dim: &usize| head_dim.checked_mul(heads) == Some(file.hidden_size);
    if let Some(head_dim) = file.head_dim().filter(|given| !fits(given)) {
        let expected =
            format!("{}, the hidden size divided by the number of heads", file.hidden_size / heads);
        return Err(error::unsupported(path, "head_dim", head_dim, expected));
    }
    let rope = RotationFields {
        theta: file.rope_theta,
        scaling: file.rope_scaling.as_ref(),
        parameters: file.rope_parameters.as_ref(),
        rotary_fraction: file.partial_rotary_factor,
        original_len: file.original_max_position_embeddings,
        context: file.max_position_embeddings,
        layer_types: file.layer_types.as_deref(),
        written_by,
    };
    let rotations = match file.model_type.as_str() {
        "olmo3" => rope.read_by_kind(path)?,
        _ => [rope.read(path)?].into(),
    };
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
    let rotations = LayerRotations { full, windowed };
    let window = file.window(path)?;
    // Within a window as long as the context it has no effect.
    let short = window.filter(|window| *window < sizes.context);
    if let Some(window) = short.filter(|_| tuned.is_some()) {
        let expected = "null, or a window that covers `max_position_embeddings`";
        return Err(error::unsupported(path, "sliding_window", window, expected));
    }
    let layers = match tuned {
        Some(_) => None,
        None => file.layers().encoding(path, &rotations, short)?,
    };
    let window = if short.is_some() { None } else { window };
    let end = end(path, file.eos_token_id.as_ref())?;
    let (vocabulary, context) = (sizes.vocabulary, sizes.context);
    let (rope, tokenizer_class) = (rotations.full, file.tokenizer_class());
    let settings = LlamaSettings {
        model,
        rope,
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

/// Fields of a JSON file that are not null; null as `sliding_window` has a meaning of its own and is kept.
pub(super) fn fields(path: &Path, text: &str) -> Result<Map<String, Value>> {
    let mut fields: Map<String, Value> =
        serde_json::from_str(text).map_err(|e| error::damaged(path, e))?;
    fields.retain(|key, value| !value.is_null() || key == "sliding_window");
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

impl ConfigFile {
    fn refuse_other_kinds(&self, path: &Path) -> Result<()> {
        let refuse = |field, value: String, expected: &str| {
            Err(error::unsupported(path, field, value, expected))
        };
        if !TYPES.contains(&self.model_type.as_str()) && self.model_type != TUNED_TYPE {
            let expected = format!("one of \"{}\"", TYPES.join("\", \""));
            return refuse("model_type", format!("\"{}\"", self.model_type), &expected);
        }
        if self.hidden_act != "silu" {
            return refuse("hidden_act", format!("\"{}\"", self.hidden_act), "\"silu\"");
        }
        if self.attention_bias || self.mlp_bias {
            let field = if self.attention_bias { "attention_bias" } else { "mlp_bias" };
            return refuse(field, "true".to_owned(), "false");
        }
        match &self.quantization_config {
            Some(how) => refuse("quantization_config", how.to_string(), "none: plain weights"),
            None => Ok(()),
        }
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

    /// Channels of a head, if the file or the type of the model states them.
    fn head_dim(&self) -> Option<usize> {
        self.head_dim.or((self.model_type == "qwen3").then_some(QWEN3_HEAD_DIM))
    }

    /// Fields that tell layers apart.
    fn layers(&self) -> LayerFields<'_> {
        LayerFields {
            model_type: &self.model_type,
            layers: self.num_hidden_layers,
            types: self.layer_types.as_deref(),
            max_window_layers: self.max_window_layers,
            no_rope_layers: self.no_rope_layers.as_deref(),
            no_rope_layer_interval: self.no_rope_layer_interval,
        }
    }

    /// Class of the tokenizer: the stated one, or that of the type of the model.
    fn tokenizer_class(&self) -> Option<String> {
        let of_type = match self.model_type.as_str() {
            "llama" | "mistral" => Some("LlamaTokenizer"),
            "qwen2" | "qwen3" => Some("Qwen2Tokenizer"),
            // A tuned model of this program states its own.
            _ => None,
        };
        self.tokenizer_class.clone().or(of_type.map(str::to_owned))
    }

    /// Window of the attention, if any layer has one in transformers, which gives none to a `llama`.
    fn window(&self, path: &Path) -> Result<Option<usize>> {
        let window = match self.sliding_window {
            SlidingWindow::Tokens(window) => Some(window),
            SlidingWindow::Unlimited => None,
            SlidingWindow::Absent => Some(WINDOW),
        };
        match (self.model_type.as_str(), self.sliding_window) {
            (TUNED_TYPE, SlidingWindow::Tokens(_)) => Ok(window),
            ("qwen2" | "qwen3" | "smollm3", _) if !self.use_sliding_window => Ok(None),
            ("smollm3", SlidingWindow::Absent) => Ok(None),
            _ if window.is_some() && self.layers().has_window(path)? => Ok(window),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
