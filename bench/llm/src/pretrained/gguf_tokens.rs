//! Tokenizers of GGUF files.

use std::collections::BTreeMap;

use anyhow::Result;
use candle_core::quantized::gguf_file::Value as GgufValue;
use serde_json::{Value, json};

use super::error;
use super::gguf::{Gguf, kind};
use super::tokens::{HuggingFace, from_json, template};

/// Kind of special tokens in a GGUF file.
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// Builds the tokenizer described in a GGUF file: byte-pair encoding with a supported pre-tokenizer.
pub(super) fn read(gguf: &Gguf, vocabulary: usize) -> Result<HuggingFace> {
    let refuse = |reason: String| error::of_tokenizer(gguf.path(), reason);
    let model = gguf.text("tokenizer.ggml.model")?;
    if model != "gpt2" {
        return Err(refuse(format!(
            "its model is \"{model}\", expected \"gpt2\" (byte-pair encoding); use the folder of the model, with a \
             tokenizer.json"
        )));
    }
    let texts = |key: &str| {
        gguf.array(key)?
            .iter()
            .map(|value| match value {
                GgufValue::String(text) => Ok(text.as_str()),
                other => {
                    let found = kind(Some(other));
                    Err(refuse(format!(
                        "`{key}` contains {found}, expected only texts; get the file again"
                    )))
                }
            })
            .collect::<Result<Vec<_>, _>>()
    };
    let tokens = texts("tokenizer.ggml.tokens")?;
    let merges = texts("tokenizer.ggml.merges")?;
    if tokens.len() > vocabulary {
        let count = tokens.len();
        return Err(refuse(format!(
            "it has {count} tokens, expected at most {vocabulary}, the size of the model's vocabulary; get the \
             file again"
        )));
    }
    let vocab = (0_u32..).zip(&tokens).map(|(id, text)| (*text, id)).collect::<BTreeMap<_, _>>();
    let kinds = gguf.optional_array("tokenizer.ggml.token_type")?;
    let added = kinds.map_or(Ok(Vec::new()), |kinds| added_tokens(&tokens, kinds));
    let added = added.map_err(refuse)?;
    let splits = Splits::of(gguf.text("tokenizer.ggml.pre")?).map_err(refuse)?;
    let json = json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": splits.pre_tokenizer(),
        "post_processor": post_processor(gguf, &tokens, splits)?,
        "decoder": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "model": {
            "type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": splits == Splits::Llama3,
        },
    });
    let mut read = from_json(gguf.path(), &json.to_string(), vocabulary)?;
    for name in ["bos", "eos"] {
        let id = gguf.optional_number(&format!("tokenizer.ggml.{name}_token_id"))?;
        if let Some(text) = id.and_then(|id| tokens.get(id)) {
            read.special.insert(format!("{name}_token"), (*text).to_owned());
        }
    }
    Ok(read)
}

/// Describes the control and user-defined tokens as `tokenizer.json` does.
fn added_tokens(tokens: &[&str], kinds: &[GgufValue]) -> Result<Vec<Value>, String> {
    if kinds.len() != tokens.len() {
        return Err(format!(
            "it has {} tokens, but {} token types; get the file again",
            tokens.len(),
            kinds.len()
        ));
    }
    let kind = |value: &GgufValue| match value {
        GgufValue::I32(kind) => Some(i64::from(*kind)),
        GgufValue::U32(kind) => Some(i64::from(*kind)),
        _ => None,
    };
    let added = tokens.iter().zip(kinds).enumerate().filter_map(|(id, (text, value))| {
        let kind = kind(value).filter(|kind| [CONTROL, USER_DEFINED].contains(kind))?;
        Some(json!({
            "id": id, "content": text, "special": kind == CONTROL,
            "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        }))
    });
    Ok(added.collect())
}

/// Pre-tokenizer of a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splits {
    Gpt2,
    /// GPT-2's, with each digit as a token of its own.
    SmolLm,
    /// Llama 3's, which takes a whole word that is a token without merges, and begins texts with a token by default.
    Llama3,
}

/// Words of Llama 3's tokenizer.
const LLAMA_3_WORDS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

impl Splits {
    /// Pre-tokenizer with this name in llama.cpp.
    fn of(name: &str) -> Result<Self, String> {
        match name {
            "gpt-2" => Ok(Self::Gpt2),
            "smollm" => Ok(Self::SmolLm),
            "llama-bpe" => Ok(Self::Llama3),
            other => Err(format!(
                "its pre-tokenizer is \"{other}\", expected \"gpt-2\", \"smollm\" or \"llama-bpe\"; use the folder of the \
                 model, with a tokenizer.json"
            )),
        }
    }

    /// The pre-tokenizer as `tokenizer.json` describes it.
    fn pre_tokenizer(self) -> Value {
        let byte_level = |use_regex: bool| {
            json!({
                "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": use_regex,
            })
        };
        let sequence = |first: Value, last: Value| json!({ "type": "Sequence", "pretokenizers": [first, last] });
        match self {
            Self::Gpt2 => byte_level(true),
            Self::SmolLm => {
                sequence(json!({ "type": "Digits", "individual_digits": true }), byte_level(true))
            }
            Self::Llama3 => {
                let words = json!({
                    "type": "Split", "pattern": { "Regex": LLAMA_3_WORDS }, "behavior": "Isolated",
                    "invert": false,
                });
                sequence(words, byte_level(false))
            }
        }
    }
}

/// Returns the post-processor that adds special tokens around a text.
fn post_processor(gguf: &Gguf, tokens: &[&str], splits: Splits) -> Result<Value> {
    let token = |kind: &str, place: &str| {
        let is_default = splits == Splits::Llama3 && kind == "bos";
        let stated = gguf.optional_flag(&format!("tokenizer.ggml.add_{kind}_token"))?;
        if !stated.unwrap_or(is_default) {
            return Ok(None);
        }
        let id = gguf.optional_number(&format!("tokenizer.ggml.{kind}_token_id"))?;
        let Some((id, text)) = id.and_then(|id| Some((id, *tokens.get(id)?))) else {
            let reason = format!(
                "it adds a token {place} each text, but states no valid id of this token; get the file again"
            );
            return Err(error::of_tokenizer(gguf.path(), reason));
        };
        Ok(Some((text, id as u32)))
    };
    match (token("bos", "before")?, token("eos", "after")?) {
        (None, None) => Ok(Value::Null),
        (first, last) => Ok(template(first, last)),
    }
}
