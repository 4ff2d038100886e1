//! Weights, settings and tokenizer in one GGUF file, the format of llama.cpp.

mod header;

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use anyhow::Result;
use candle_core::Device as CandleDevice;
use candle_core::quantized::gguf_file::{Content, Value};
use pe_zoo::rotary::{LongRope, Scaling, Yarn};
use pe_zoo::zoo::rope;
use sha2::{Digest, Sha256};
use tasks::FileError;

use super::error;
use super::kinds::THETA;
use super::llama::{HEAD, KEY, QUERY, WeightId, WeightSource};
use super::settings::{LlamaForm, LlamaSettings, LlamaSizes, SizeKeys, StoredForm, check_rotation};

/// Tensor with the divisors of the frequencies.
const DIVISORS: &str = "rope_freqs.weight";

/// Keys of the file.
const KEYS: SizeKeys = SizeKeys {
    layers: "llama.block_count",
    width: "llama.embedding_length",
    heads: "llama.attention.head_count",
    kv_heads: "llama.attention.head_count_kv",
    hidden: "llama.feed_forward_length",
    vocabulary: "llama.vocab_size",
    context: "llama.context_length",
    head_dim: "llama.attention.key_length",
    epsilon: "llama.attention.layer_norm_rms_epsilon",
};

/// Key that states a setting of the rotation.
fn rotation_key(setting: &str) -> String {
    let key = match setting {
        "scaling.short_factor" | "scaling.long_factor" => return DIVISORS.to_owned(),
        "base" => "freq_base",
        "scaling.original_max_position_embeddings" => "scaling.original_context_length",
        "scaling.beta_fast" => "scaling.yarn_beta_fast",
        "scaling.beta_slow" => "scaling.yarn_beta_slow",
        "scaling.attention_factor" => "scaling.attn_factor",
        other => other,
    };
    format!("llama.rope.{key}")
}

/// Parsed GGUF file.
pub(super) struct Gguf {
    path: PathBuf,
    bytes: Cursor<Vec<u8>>,
    content: Content,
    /// Names of the weights that have not been taken.
    names: BTreeSet<String>,
    heads: usize,
    kv_heads: usize,
}

impl Gguf {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(FileError::of("read", path))?;
        header::check(&bytes).map_err(|reason| error::damaged(path, reason))?;
        let mut bytes = Cursor::new(bytes);
        let content =
            Content::read(&mut bytes).map_err(|e| error::damaged(path, first_line(&e)))?;
        let names = content.tensor_infos.keys().cloned().collect();
        Ok(Self { path: path.to_owned(), bytes, content, names, heads: 1, kv_heads: 1 })
    }

    /// Hash of the file.
    pub(super) fn sha256(&self) -> String {
        records::store::hex(&Sha256::digest(self.bytes.get_ref()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn settings(&mut self) -> Result<LlamaSettings> {
        let kind = self.text("general.architecture")?;
        if kind != "llama" {
            let (field, value) = ("general.architecture", format!("\"{kind}\""));
            return Err(self.unsupported(field, value, "\"llama\""));
        }
        if let Some(experts) = self.optional_number("llama.expert_count")?.filter(|n| *n > 0) {
            return Err(self.unsupported("llama.expert_count", experts, "0"));
        }
        let heads = self.number(KEYS.heads)?;
        let vocabulary = match self.optional_number(KEYS.vocabulary)? {
            Some(vocabulary) => vocabulary,
            None => self.array("tokenizer.ggml.tokens")?.len(),
        };
        let sizes = LlamaSizes {
            layers: self.number(KEYS.layers)?,
            width: self.number(KEYS.width)?,
            heads,
            kv_heads: self.optional_number(KEYS.kv_heads)?.unwrap_or(heads),
            hidden: self.number(KEYS.hidden)?,
            vocabulary,
            context: self.number(KEYS.context)?,
            head_dim: None,
        };
        let Some(epsilon) = self.float(KEYS.epsilon)? else {
            return Err(self.unsupported(KEYS.epsilon, "absent", "a number"));
        };
        let tied = !self.names.contains(&HEAD.gguf());
        let model = sizes.model(&self.path, &KEYS, epsilon, &LlamaForm::llama(tied))?;
        (self.heads, self.kv_heads) = (heads, sizes.kv_heads);
        let head_dim = model.head_dim();
        for field in [
            "llama.rope.dimension_count",
            "llama.attention.key_length",
            "llama.attention.value_length",
        ] {
            if let Some(other) = self.optional_number(field)?.filter(|n| *n != head_dim) {
                return Err(self.unsupported(
                    field,
                    other,
                    &format!("{head_dim}, the head's width"),
                ));
            }
        }
        let scaling = match (self.divisors(head_dim / 2)?, self.scaling()?) {
            (None, scaling) => scaling,
            (Some(divisors), Scaling::None) => divided(divisors),
            (Some(_), other) => {
                let value = format!("given together with a scaling of the type {}", other.id());
                return Err(self.unsupported(DIVISORS, value, "one of the two"));
            }
        };
        let rope = rope::RopeConfig {
            base: self.float("llama.rope.freq_base")?.unwrap_or(THETA),
            scaling,
            ..rope::RopeConfig::default()
        };
        let context = sizes.context;
        check_rotation(&self.path, rotation_key, &rope, &model.dims(context, context))?;
        let end_key = "tokenizer.ggml.eos_token_id";
        let end = self.optional_number(end_key)?;
        let end = end.into_iter().map(|id| u32::try_from(id).unwrap_or(u32::MAX)).collect();
        let vocabulary = sizes.vocabulary;
        let (window, tokenizer_class, tuned) = (None, None, None);
        let settings = LlamaSettings {
            model,
            stored: StoredForm::default(),
            rope,
            vocabulary,
            context,
            window,
            end,
            tokenizer_class,
            layers: None,
            tuned,
        };
        settings.checked(&self.path, end_key)
    }

    /// Scaling of the rotation by llama.cpp's rules: a factor without a type is linear, its old name is `scale_linear`, and
    /// 0 stands for none.
    fn scaling(&self) -> Result<Scaling> {
        let [kind_key, attention_key] =
            ["llama.rope.scaling.type", "llama.rope.scaling.attn_factor"];
        let kind = match self.content.metadata.get(kind_key) {
            None => None,
            Some(_) => Some(self.text(kind_key)?),
        };
        let factor = match self.float("llama.rope.scaling.factor")? {
            None => self.float("llama.rope.scale_linear")?,
            given => given,
        };
        let factor = factor.filter(|factor| *factor != 0.0);
        let attention = self.float(attention_key)?;
        if let Some(other) = attention.filter(|n| kind != Some("yarn") && (n - 1.0).abs() > 1e-9) {
            return Err(self.unsupported(attention_key, other, "1, except with the type yarn"));
        }
        let extrapolation_key = "llama.rope.scaling.yarn_ext_factor";
        // A negative number stands for llama.cpp's own choice, which is 1 for YaRN.
        let extrapolation = self.float(extrapolation_key)?.filter(|share| *share >= 0.0);
        if let Some(other) = extrapolation
            && kind == Some("yarn")
            && (other - 1.0).abs() > 1e-9
        {
            return Err(self.unsupported(extrapolation_key, other, "1 or a negative number"));
        }
        match (kind, factor) {
            (Some("none"), _) | (None, None) => Ok(Scaling::None),
            (None | Some("linear"), Some(factor)) => Ok(Scaling::Linear { factor }),
            (Some("yarn"), Some(factor)) => {
                let field = "llama.rope.scaling.original_context_length";
                Ok(Scaling::Yarn(Yarn {
                    factor: Some(factor),
                    original_max_position_embeddings: self.optional_number(field)?,
                    beta_fast: self.float("llama.rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
                    beta_slow: self.float("llama.rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
                    truncate: true,
                    // It multiplies YaRN's own factor there, which it replaces here.
                    attention_factor: attention.map(|given| given * (0.1 * factor.ln() + 1.0)),
                    mscale: None,
                    mscale_all_dim: None,
                    extrapolation_factor: None,
                }))
            }
            (other, _) => {
                let factor = factor
                    .map_or_else(|| "without a factor".to_owned(), |n| format!("with factor {n}"));
                let value = format!("\"{}\" {factor}", other.unwrap_or_default());
                let expected = "none, or linear or yarn with a factor";
                Err(self.unsupported(kind_key, value, expected))
            }
        }
    }

    /// Divisors of the frequencies, one per pair, as files of Llama 3.1 have them; `None` without the tensor.
    fn divisors(&mut self, pairs: usize) -> Result<Option<Vec<f32>>> {
        let is_given = self.names.contains(DIVISORS);
        is_given.then(|| self.values(DIVISORS, &[pairs])).transpose()
    }

    /// Removes a tensor and returns its values in row-major order.
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let (true, Some(info)) = (self.names.remove(name), self.content.tensor_infos.get(name))
        else {
            return Err(error::missing(&self.path, name, shape, "get the file again"));
        };
        error::check_shape(&self.path, name, shape, info.shape.dims())?;
        let damaged = |e: candle_core::Error| {
            error::damaged(&self.path, format!("tensor `{name}`: {}", first_line(&e)))
        };
        let device = CandleDevice::Cpu;
        let values = info
            .read(&mut self.bytes, self.content.tensor_data_offset, &device)
            .and_then(|quantised| quantised.dequantize(&device))
            .and_then(|tensor| tensor.flatten_all())
            .and_then(|tensor| tensor.to_vec1::<f32>())
            .map_err(damaged)?;
        super::finite(&self.path, name, values)
    }

    fn unsupported(
        &self,
        field: &str,
        value: impl std::fmt::Display,
        expected: &str,
    ) -> anyhow::Error {
        error::unsupported(&self.path, field, value, expected)
    }

    /// Reads a text from the file's metadata.
    pub(super) fn text(&self, key: &str) -> Result<&str> {
        match self.content.metadata.get(key) {
            Some(Value::String(text)) => Ok(text),
            other => Err(self.unsupported(key, kind(other), "a text")),
        }
    }

    /// Reads a list from the file's metadata.
    pub(super) fn array(&self, key: &str) -> Result<&[Value]> {
        match self.content.metadata.get(key) {
            Some(Value::Array(values)) => Ok(values),
            other => Err(self.unsupported(key, kind(other), "a list")),
        }
    }

    /// Reads a list from the file's metadata; `None` if it is missing.
    pub(super) fn optional_array(&self, key: &str) -> Result<Option<&[Value]>> {
        self.content.metadata.contains_key(key).then(|| self.array(key)).transpose()
    }

    /// Reads a boolean from the file's metadata; `None` if it is missing.
    pub(super) fn optional_flag(&self, key: &str) -> Result<Option<bool>> {
        match self.content.metadata.get(key) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(*on)),
            other => Err(self.unsupported(key, kind(other), "true or false")),
        }
    }

    fn number(&self, key: &str) -> Result<usize> {
        let found = self.optional_number(key)?;
        found.ok_or_else(|| self.unsupported(key, "absent", "a whole number"))
    }

    /// Reads a whole number from the file's metadata; `None` if it is missing.
    pub(super) fn optional_number(&self, key: &str) -> Result<Option<usize>> {
        let Some(value) = self.content.metadata.get(key) else { return Ok(None) };
        let number = match value {
            Value::U8(n) => Some(u64::from(*n)),
            Value::U16(n) => Some(u64::from(*n)),
            Value::U32(n) => Some(u64::from(*n)),
            Value::U64(n) => Some(*n),
            Value::I32(n) => u64::try_from(*n).ok(),
            Value::I64(n) => u64::try_from(*n).ok(),
            _ => None,
        };
        match number.and_then(|n| usize::try_from(n).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.unsupported(key, kind(Some(value)), "a whole number")),
        }
    }

    fn float(&self, key: &str) -> Result<Option<f64>> {
        match self.content.metadata.get(key) {
            None => Ok(None),
            Some(Value::F32(x)) => Ok(Some(f64::from(*x))),
            Some(Value::F64(x)) => Ok(Some(*x)),
            other => Err(self.unsupported(key, kind(other), "a number")),
        }
    }
}

/// Short description of a value's type.
pub(super) fn kind(value: Option<&Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(Value::Array(values)) => {
            format!("a list of {}", records::number::count(values.len() as u64, "value"))
        }
        Some(Value::String(text)) => {
            format!("{:?}", text.chars().take(LONGEST_REASON).collect::<String>())
        }
        Some(other) => {
            // `U32(7)` as `7 of type U32`.
            let text = format!("{other:?}");
            let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
            parts.map_or_else(|| text.clone(), |(kind, value)| format!("{value} of type {kind}"))
        }
    }
}

/// Shortens an error of the reader to its first line, without the backtrace and with a bounded length.
fn first_line(error: &candle_core::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(LONGEST_REASON).flat_map(char::escape_debug).collect()
}

/// Maximum number of characters of the reader's message or of a text in an error.
const LONGEST_REASON: usize = 160;

impl WeightSource for Gguf {
    fn path(&self) -> &Path {
        &self.path
    }

    fn take(&mut self, slot: WeightId, shape: &[usize]) -> Result<Vec<f32>> {
        let values = self.values(&slot.gguf(), shape)?;
        Ok(match slot {
            query if query.is(QUERY) => half_split(&values, shape, self.heads),
            key if key.is(KEY) => half_split(&values, shape, self.kv_heads),
            _ => values,
        })
    }

    fn left(&self) -> Vec<String> {
        self.names.iter().cloned().collect()
    }
}

/// Scaling that divides each frequency by its own number at all lengths.
fn divided(divisors: Vec<f32>) -> Scaling {
    let factors = divisors.into_iter().map(f64::from).collect::<Vec<_>>();
    Scaling::LongRope(LongRope {
        short_factor: factors.clone(),
        long_factor: factors,
        factor: None,
        attention_factor: Some(1.0),
        original_max_position_embeddings: None,
    })
}

/// Reorders the rows of a projection. Llama.cpp rotates adjacent rows `(2 m, 2 m + 1)` of a head together; here, as
/// at HuggingFace, these are rows `m` and `m + D / 2`.
fn half_split(values: &[f32], shape: &[usize], heads: usize) -> Vec<f32> {
    let (rows, inputs) = (shape[0], shape[1]);
    let head_dim = rows / heads;
    let row = |row: usize| {
        let (head, channel) = (row / head_dim, row % head_dim);
        let (pair, second) = (channel % (head_dim / 2), channel / (head_dim / 2));
        let from = head * head_dim + 2 * pair + second;
        &values[from * inputs..(from + 1) * inputs]
    };
    (0..rows).flat_map(row).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_llama_cpp_become_half_split() {
        // Two heads of four rows, one input: rows (0, 1) and (2, 3) of a head turn together there.
        let values = (0_u8..8).map(f32::from).collect::<Vec<_>>();
        let expected = [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0];
        assert_eq!(half_split(&values, &[8, 1], 2), expected);
    }

    #[test]
    fn long_values_are_shortened_in_messages() {
        let value = Value::String("x".repeat(1 << 20));
        assert!(kind(Some(&value)).len() < 200);
        assert_eq!(kind(Some(&Value::U32(7))), "7 of type U32");
    }
}
