//! Parser of `config.json` of a Llama-type model (`llama`, `mistral` or `qwen2`) in the format of HuggingFace's
//! transformers, and of `generation_config.json` beside it. Null stands for an absent field.

use std::path::Path;

use pe_zoo::Combination;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::PretrainedError;
use super::rotation::RotationFields;
use super::settings::{LlamaSettings, LlamaSizes};

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
    quantization_config: Option<Value>,
    eos_token_id: Option<Value>,
    tokenizer_class: Option<String>,
    pe_zoo_encoding: Option<String>,
    pe_zoo_lens: Option<[usize; 2]>,
}

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

/// `model_type` of a model that `extend` wrote under another encoding than a rotation of transformers.
pub const TUNED_TYPE: &str = "pe-zoo-llama";

/// Longest length that a tuned encoding is built for.
const LARGEST_LEN: usize = 1 << 24;

/// Window of a `mistral` or windowed `qwen2` model whose file does not state one: the default of transformers.
const WINDOW: usize = 4096;

fn silu() -> String {
    "silu".to_owned()
}

/// Reads the settings from the text of the file at `path`.
pub(super) fn read(path: &Path, text: &[u8]) -> Result<LlamaSettings, PretrainedError> {
    let json = Value::Object(fields(path, text)?);
    let file: ConfigFile = serde_path_to_error::deserialize(json).map_err(|e| {
        match e.path().to_string().as_str() {
            // A missing field is one of the whole file.
            "." => PretrainedError::damaged(path, e.inner()),
            field => {
                let value = format!("of a wrong type ({})", e.inner());
                PretrainedError::unsupported(
                    path,
                    field,
                    value,
                    "a value as transformers writes it",
                )
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
    };
    let model = sizes.model(path, file.rms_norm_eps, file.tie_word_embeddings)?;
    let fits = |head_dim: &usize| head_dim.checked_mul(heads) == Some(file.hidden_size);
    if let Some(head_dim) = file.head_dim.filter(|given| !fits(given)) {
        let expected =
            format!("{}, the hidden size divided by the number of heads", file.hidden_size / heads);
        return Err(PretrainedError::unsupported(path, "head_dim", head_dim, expected));
    }
    let rope = RotationFields {
        theta: file.rope_theta,
        scaling: file.rope_scaling.as_ref(),
        parameters: file.rope_parameters.as_ref(),
        rotary_fraction: file.partial_rotary_factor,
        original_len: file.original_max_position_embeddings,
        context: file.max_position_embeddings,
    };
    let rope = rope.read(path)?;
    let tuned = file.tuned(path)?;
    let end = end(path, file.eos_token_id.as_ref())?;
    let (vocabulary, context, window) = (sizes.vocabulary, sizes.context, file.window());
    let tokenizer_class = file.tokenizer_class();
    LlamaSettings { model, rope, vocabulary, context, window, end, tokenizer_class, tuned }
        .checked(path)
}

/// Reads the tokens that end a text from the text of the `generation_config.json` at `path`.
pub(super) fn generation_end(path: &Path, text: &[u8]) -> Result<Vec<u32>, PretrainedError> {
    end(path, fields(path, text)?.get("eos_token_id"))
}

/// Fields of a JSON file that are not null; null as `sliding_window` has a meaning of its own and is kept.
fn fields(path: &Path, text: &[u8]) -> Result<Map<String, Value>, PretrainedError> {
    let mut fields: Map<String, Value> =
        serde_json::from_slice(text).map_err(|e| PretrainedError::damaged(path, e))?;
    fields.retain(|key, value| !value.is_null() || key == "sliding_window");
    Ok(fields)
}

/// Ids in the field `eos_token_id`: one or a list. A negative one stands for none.
fn end(path: &Path, given: Option<&Value>) -> Result<Vec<u32>, PretrainedError> {
    let ids = match given {
        Some(Value::Array(ids)) => ids.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let ids = ids.iter().filter(|id| id.as_i64().is_none_or(|id| id >= 0));
    ids.map(|id| {
        id.as_u64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
            PretrainedError::unsupported(path, "eos_token_id", id, "a token id or a list of them")
        })
    })
    .collect()
}

impl ConfigFile {
    fn refuse_other_kinds(&self, path: &Path) -> Result<(), PretrainedError> {
        let refuse = |field, value: String, expected: &str| {
            Err(PretrainedError::unsupported(path, field, value, expected))
        };
        if !["llama", "mistral", "qwen2", TUNED_TYPE].contains(&self.model_type.as_str()) {
            let expected = "\"llama\", \"mistral\" or \"qwen2\"";
            return refuse("model_type", format!("\"{}\"", self.model_type), expected);
        }
        if self.hidden_act != "silu" {
            return refuse("hidden_act", format!("\"{}\"", self.hidden_act), "\"silu\"");
        }
        if self.attention_bias || self.mlp_bias {
            let field = if self.attention_bias { "attention_bias" } else { "mlp_bias" };
            return refuse(field, "true".to_owned(), "false");
        }
        if let Some(window) = self.window().filter(|n| *n < self.max_position_embeddings) {
            let expected = "null, or a window that covers `max_position_embeddings`";
            return refuse("sliding_window", window.to_string(), expected);
        }
        match &self.quantization_config {
            Some(how) => refuse("quantization_config", how.to_string(), "none: plain weights"),
            None => Ok(()),
        }
    }

    /// Encoding and lengths of a model that `extend` wrote under another encoding than a rotation.
    fn tuned(&self, path: &Path) -> Result<Option<(Combination, [usize; 2])>, PretrainedError> {
        if self.model_type != TUNED_TYPE {
            return Ok(None);
        }
        let refuse = |field, value: String, expected: &str| {
            Err(PretrainedError::unsupported(path, field, value, expected))
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
        match crate::encodings::parse(text) {
            Ok(encoding) => Ok(Some((encoding, lens))),
            Err(error) => {
                refuse("pe_zoo_encoding", format!("\"{text}\""), &format!("an encoding: {error}"))
            }
        }
    }

    /// Class of the tokenizer: the stated one, or that of the type of the model.
    fn tokenizer_class(&self) -> Option<String> {
        let of_type = match self.model_type.as_str() {
            "llama" | "mistral" => Some("LlamaTokenizer"),
            "qwen2" => Some("Qwen2Tokenizer"),
            // A tuned model of this program states its own.
            _ => None,
        };
        self.tokenizer_class.clone().or(of_type.map(str::to_owned))
    }

    /// Window of the attention.
    fn window(&self) -> Option<usize> {
        match (self.model_type.as_str(), self.sliding_window) {
            ("qwen2", _) if !self.use_sliding_window => None,
            ("mistral" | "qwen2", SlidingWindow::Absent) => Some(WINDOW),
            (_, SlidingWindow::Tokens(window)) => Some(window),
            (_, SlidingWindow::Unlimited | SlidingWindow::Absent) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rotation::THETA;
    use super::*;
    use pe_zoo::rotary::{ORIGINAL_LENGTH, Scaling};
    use pe_zoo::zoo::rope::RopeConfig;
    use serde_json::json;

    fn config(change: Value) -> Value {
        let mut config = json!({
            "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 20,
            "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16",
        });
        let (Value::Object(config_map), Value::Object(change)) = (&mut config, change) else {
            unreachable!()
        };
        config_map.extend(change);
        config
    }

    fn parse(change: Value) -> Result<LlamaSettings, PretrainedError> {
        read(Path::new("config.json"), config(change).to_string().as_bytes())
    }

    #[test]
    fn every_rope_scaling_of_huggingface_becomes_ours() {
        let list = vec![1.0; 4];
        let cases = [
            (json!({}), "default"),
            (json!({ "rope_scaling": null }), "default"),
            (json!({ "rope_scaling": { "rope_type": "default" } }), "default"),
            (json!({ "rope_scaling": { "type": "linear", "factor": 2.0 } }), "linear"),
            (json!({ "rope_scaling": { "type": "dynamic", "factor": 2.0 } }), "dynamic"),
            (
                json!({ "rope_scaling": {
                    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16
                } }),
                "yarn",
            ),
            (
                json!({
                    "rope_scaling": { "type": "longrope", "short_factor": list, "long_factor": list },
                    "original_max_position_embeddings": 16,
                }),
                "longrope",
            ),
            (
                json!({ "rope_scaling": {
                    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0, "original_max_position_embeddings": 16
                } }),
                "llama3",
            ),
        ];
        for (change, kind) in cases {
            assert_eq!(parse(change.clone()).unwrap().rope.scaling.id(), kind, "{change}");
        }
    }

    #[test]
    fn theta_stands_beside_the_object_or_within_it() {
        assert!((parse(json!({ "rope_theta": 5e5 })).unwrap().rope.base - 5e5).abs() < 1e-9);
        let within = json!({ "rope_parameters": { "rope_theta": 7e4, "rope_type": "default" } });
        assert!((parse(within).unwrap().rope.base - 7e4).abs() < 1e-9);
        assert!((parse(json!({})).unwrap().rope.base - THETA).abs() < 1e-9);
    }

    #[test]
    fn the_share_of_proportional_scaling_is_its_own_and_elsewhere_that_of_rotated_channels() {
        let proportional =
            |share: f64| Scaling::Proportional { partial_rotary_factor: share, factor: 1.0 };
        for (change, fraction, scaling) in [
            (
                json!({ "rope_parameters": {
                    "rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25
                } }),
                1.0,
                proportional(0.25),
            ),
            (
                json!({
                    "rope_parameters": { "rope_type": "proportional", "rope_theta": 1e6 },
                    "partial_rotary_factor": 0.5,
                }),
                1.0,
                proportional(0.5),
            ),
            (
                json!({ "rope_parameters": {
                    "rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.25
                } }),
                0.25,
                Scaling::None,
            ),
        ] {
            let rope = parse(change.clone()).unwrap().rope;
            let expected = RopeConfig {
                base: 1e6,
                rotary_fraction: fraction,
                scaling,
                ..RopeConfig::default()
            };
            assert_eq!(rope, expected, "{change}");
        }
    }

    #[test]
    fn longropes_factor_is_the_quotient_of_the_two_lengths() {
        let list = vec![1.0; 4];
        let settings = parse(json!({
            "rope_scaling": { "type": "longrope", "short_factor": list, "long_factor": list },
            "original_max_position_embeddings": 16,
        }));
        let Scaling::LongRope(longrope) = settings.unwrap().rope.scaling else { unreachable!() };
        assert_eq!(longrope.factor, Some(4.0));
        assert_eq!(longrope.original_max_position_embeddings, Some(16));
    }

    #[test]
    fn original_lengths_and_factors_are_where_transformers_takes_them() {
        let scaling = |scaling: Value, beside: Option<usize>| {
            let change =
                json!({ "rope_scaling": scaling, "original_max_position_embeddings": beside });
            serde_json::to_value(&parse(change).unwrap().rope.scaling).unwrap()
        };
        let dynamic =
            json!({ "type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 16 });
        assert_eq!(scaling(dynamic, Some(8)).get(ORIGINAL_LENGTH), None, "the trained length");
        let yarn = |original: Option<usize>| json!({ "type": "yarn", "factor": 3.0, ORIGINAL_LENGTH: original });
        assert_eq!(scaling(yarn(None), Some(8))[ORIGINAL_LENGTH], 8);
        assert_eq!(scaling(yarn(Some(16)), Some(8))[ORIGINAL_LENGTH], 16);
        let llama3 = json!({
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        });
        assert_eq!(scaling(llama3, Some(8))[ORIGINAL_LENGTH], 8);
        let list = vec![1.0; 4];
        let longrope = json!({
            "type": "longrope", "short_factor": list, "long_factor": list, "factor": 3.0, ORIGINAL_LENGTH: 16,
        });
        let read = scaling(longrope, Some(8));
        assert_eq!((&read[ORIGINAL_LENGTH], &read["factor"]), (&json!(8), &json!(3.0)));
        // A factor that is absent is the quotient, as for 64 tokens and 16 before.
        let quotient =
            scaling(json!({ "type": "yarn", "factor": null, ORIGINAL_LENGTH: 16 }), None);
        assert_eq!(quotient["factor"], 4.0);
        let neither = parse(json!({ "rope_scaling": { "type": "yarn" } })).unwrap_err().to_string();
        assert!(neither.contains("`rope_scaling.factor` is absent"), "{neither}");
    }

    #[test]
    fn null_is_the_default_and_a_negative_id_none() {
        let plain = parse(json!({})).unwrap();
        for field in
            ["tie_word_embeddings", "attention_bias", "hidden_act", "rope_theta", "head_dim"]
        {
            assert_eq!(parse(json!({ field: null })).unwrap(), plain, "{field}");
        }
        let yarn = |beta: Value| {
            parse(json!({ "rope_scaling": {
                "rope_type": "yarn", "factor": 4.0, "beta_fast": beta, "attention_factor": null,
            } }))
        };
        assert_eq!(yarn(Value::Null).unwrap(), yarn(json!(32.0)).unwrap());
        for (given, expected) in [
            (json!(-1), &[][..]),
            (Value::Null, &[]),
            (json!(2), &[2]),
            (json!([3, -1, 19]), &[3, 19]),
        ] {
            assert_eq!(parse(json!({ "eos_token_id": given })).unwrap().end, expected);
        }
        let generation =
            |text: &str| generation_end(Path::new("generation_config.json"), text.as_bytes());
        assert_eq!(generation(r#"{ "eos_token_id": [1, 2] }"#).unwrap(), [1, 2]);
        assert!(generation(r#"{ "temperature": 0.5 }"#).unwrap().is_empty());
    }

    #[test]
    fn values_of_a_wrong_type_are_unsupported_and_a_missing_field_is_damage() {
        for field in
            ["hidden_size", "attention_bias", "sliding_window", "eos_token_id", "rope_scaling"]
        {
            let error = parse(json!({ field: "wide" })).unwrap_err();
            let is_named = matches!(&error, PretrainedError::Unsupported { field: named, .. } if named == field);
            assert!(is_named && !error.to_string().contains("untagged"), "{field}: {error}");
        }
        let mut without = config(json!({}));
        without.as_object_mut().unwrap().remove("hidden_size");
        let error = read(Path::new("config.json"), without.to_string().as_bytes()).unwrap_err();
        assert!(matches!(&error, PretrainedError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("hidden_size"), "{error}");
    }

    #[test]
    fn an_end_of_a_text_outside_the_vocabulary_is_refused() {
        for end in [json!(20), json!([2, 1000])] {
            let said = parse(json!({ "eos_token_id": end })).unwrap_err().to_string();
            assert!(said.contains("`eos_token_id` is") && said.contains("less than 20"), "{said}");
        }
        let settings = parse(json!({ "eos_token_id": 2 })).unwrap();
        let path = Path::new("generation_config.json");
        assert_eq!(settings.clone().with_end(path, &[3, 2]).unwrap().end, [2, 3]);
        let said = settings.with_end(path, &[20]).unwrap_err().to_string();
        assert!(said.contains("generation_config.json: `eos_token_id` is 20"), "{said}");
    }

    #[test]
    fn the_class_of_the_tokenizer_is_stated_or_that_of_the_type() {
        let class = |change: Value| parse(change).unwrap().tokenizer_class;
        let llama = Some("LlamaTokenizer".to_owned());
        assert_eq!(class(json!({})), llama);
        assert_eq!(class(json!({ "model_type": "mistral", "tokenizer_class": null })), llama);
        let qwen = class(json!({ "model_type": "qwen2" }));
        assert_eq!(qwen.as_deref(), Some("Qwen2Tokenizer"));
        let stated = class(json!({ "tokenizer_class": "PreTrainedTokenizerFast" }));
        assert_eq!(stated.as_deref(), Some("PreTrainedTokenizerFast"));
    }

    #[test]
    fn mistral_and_qwen2_are_read_with_their_own_defaults() {
        let mistral = parse(json!({ "model_type": "mistral" })).unwrap();
        assert!(!mistral.model.qkv_bias);
        let long = json!({ "model_type": "mistral", "max_position_embeddings": 8192 });
        let said = parse(long).unwrap_err().to_string();
        assert!(said.contains("`sliding_window` is 4096, expected null"), "{said}");
        let whole = json!({ "model_type": "mistral", "max_position_embeddings": 8192,
            "sliding_window": null });
        let whole = parse(whole).unwrap();
        assert_eq!((whole.context, whole.window), (8192, None));
        assert_eq!(mistral.window, Some(4096));
        let qwen2 = json!({ "model_type": "qwen2", "sliding_window": 16 });
        let qwen2 = parse(qwen2).unwrap();
        assert!(qwen2.model.qkv_bias && !qwen2.model.bias);
        assert_eq!(qwen2.window, None);
        let absent = parse(json!({ "model_type": "qwen2", "use_sliding_window": true })).unwrap();
        assert_eq!(absent.window, Some(4096));
        let windowed = json!({ "model_type": "qwen2", "sliding_window": 16,
            "use_sliding_window": true });
        assert!(parse(windowed).unwrap_err().to_string().contains("`sliding_window` is 16"));
    }

    #[test]
    fn other_kinds_of_models_are_refused_with_the_setting_named() {
        for (change, expected) in [
            (json!({ "model_type": "gpt2" }), "`model_type` is \"gpt2\", expected \"llama\""),
            (json!({ "hidden_act": "gelu" }), "hidden_act"),
            (json!({ "attention_bias": true }), "attention_bias"),
            (json!({ "mlp_bias": true }), "mlp_bias"),
            (json!({ "sliding_window": 63 }), "sliding_window"),
            (json!({ "quantization_config": { "bits": 4 } }), "quantization_config"),
            (json!({ "head_dim": 16 }), "`head_dim` is 16, expected 8"),
            (json!({ "num_attention_heads": 0 }), "heads"),
            (json!({ "num_key_value_heads": 3 }), "model.kv_heads is 3"),
            (json!({ "hidden_size": 1_u64 << 40 }), "width"),
            (json!({ "rms_norm_eps": 0.0 }), "norm_epsilon"),
            (json!({ "rope_scaling": { "type": "spiral", "factor": 2.0 } }), "spiral"),
            (json!({ "rope_scaling": { "type": "linear" } }), "factor"),
            (
                json!({ "rope_scaling": { "type": "linear", "factor": 0.5 } }),
                "scaling.factor is 0.5",
            ),
            (json!({ "rope_parameters": { "rope_theta": "big" } }), "rope_theta"),
            (json!({ "hidden_size": "wide" }), "`hidden_size`"),
        ] {
            let said = parse(change.clone()).unwrap_err().to_string();
            assert!(said.contains("config.json") && said.contains(expected), "{change}: {said}");
        }
    }
}
