//! Tokenizers of pretrained models: `tokenizer.json`, with the special tokens that `tokenizer_config.json` puts around a
//! text.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};
use tasks::tokenizer::{Around, around};
use tokenizers::{PostProcessorWrapper, Tokenizer};

use super::error;
use super::version::WrittenBy;

/// Tokenizer of a pretrained model.
pub trait ModelTokenizer: Send + Sync + Debug {
    /// Converts a text to token ids, without special tokens around it.
    ///
    /// # Errors
    /// If the tokenizer rejects the text.
    fn encode(&self, text: &str) -> Result<Vec<u32>>;

    /// Special tokens that belong around a text.
    fn around(&self) -> Around {
        Around::default()
    }

    /// Converts a text that something is to follow: the special tokens before a text, and its own tokens.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn prompt(&self, text: &str) -> Result<Vec<u32>> {
        let mut tokens = self.around().before;
        tokens.extend(self.encode(text)?);
        Ok(tokens)
    }

    /// Converts token ids to text, special tokens included.
    ///
    /// # Errors
    /// If a token is unknown.
    fn decode(&self, tokens: &[u32]) -> Result<String>;

    /// Text of its `tokenizer.json`; `None` if it has none.
    fn json(&self) -> Option<String> {
        None
    }

    /// Texts of its special tokens that are known, by their names in `tokenizer_config.json`.
    fn special_tokens(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}

/// Keeps the first and the last half of `longest` tokens, because questions are at either end of a prompt.
pub fn without_middle(mut tokens: Vec<u32>, longest: usize) -> Vec<u32> {
    if tokens.len() > longest {
        let first = longest / 2;
        tokens.drain(first..tokens.len() - (longest - first));
    }
    tokens
}

/// Tokenizer in HuggingFace's format.
#[derive(Debug)]
pub(super) struct HuggingFace {
    tokenizer: Tokenizer,
    around: Around,
    /// Texts of special tokens, by their names in `tokenizer_config.json`.
    pub(super) special: BTreeMap<String, String>,
}

impl ModelTokenizer for HuggingFace {
    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.tokenizer.encode_fast(text, false);
        encoding.map(|encoding| encoding.get_ids().to_vec()).map_err(|reason| {
            anyhow::anyhow!(
                "the tokenizer of the model rejects the text: {reason}; use the complete tokenizer.json of this model"
            )
        })
    }

    fn around(&self) -> Around {
        self.around.clone()
    }

    fn decode(&self, tokens: &[u32]) -> Result<String> {
        self.tokenizer.decode(tokens, false).map_err(anyhow::Error::from_boxed)
    }

    fn json(&self) -> Option<String> {
        self.tokenizer.to_string(true).ok()
    }

    fn special_tokens(&self) -> BTreeMap<String, String> {
        self.special.clone()
    }
}

/// Names of special tokens in `tokenizer_config.json`, with the settings that put the first two around a text.
const SPECIAL: [&str; 4] = ["bos_token", "eos_token", "unk_token", "pad_token"];
const ADDED: [&str; 2] = ["add_bos_token", "add_eos_token"];

/// The first two special tokens of Llama's tokenizers where the file names none.
const DEFAULTS: [&str; 2] = ["<s>", "</s>"];

/// Beginnings of the names of the tokenizers of transformers that add special tokens by these settings, whatever
/// `tokenizer.json` adds. Others ignore the settings.
const BY_SETTINGS: [&str; 3] = ["Llama", "CodeLlama", "Gemma"];

impl HuggingFace {
    /// Adds the special tokens around a text that transformers adds by the fields of the `tokenizer_config.json` at `path`,
    /// in place of those of `tokenizer.json`, which count alone in version 5. `class` is the class of the tokenizer if the
    /// file states none; without a class, the settings count if they are given.
    pub(super) fn configured(
        mut self,
        path: &Path,
        file: &Map<String, Value>,
        class: Option<&str>,
        written_by: &WrittenBy,
    ) -> Result<Self> {
        let given = |name: &str| file.get(name);
        let text = |name: &str, value: &Value| match value.get("content").unwrap_or(value) {
            Value::String(text) => Ok(text.clone()),
            other => Err(error::unsupported(path, name, other, "a text")),
        };
        let special = SPECIAL.iter().filter_map(|name| {
            let of_name = |value| Ok(((*name).to_owned(), text(name, value)?));
            given(name).map(of_name)
        });
        self.special = special.collect::<Result<_>>()?;
        let stated = given("tokenizer_class").map(|value| text("tokenizer_class", value));
        let is_set = match stated.transpose()?.as_deref().or(class) {
            Some(class) => BY_SETTINGS.iter().any(|kind| class.starts_with(kind)),
            None => ADDED.iter().any(|name| given(name).is_some()),
        };
        // Where the file states none of these, transformers would add a token to the vocabulary, which the model does not have.
        let is_stated =
            ["tokenizer_class", ADDED[0], SPECIAL[0]].iter().any(|name| given(name).is_some());
        if written_by.is_5()
            || !is_set
            || (!is_stated && self.tokenizer.token_to_id(DEFAULTS[0]).is_none())
        {
            return Ok(self);
        }
        // Token by its place, with the defaults of transformers.
        let added = |place: usize| {
            let (setting, name) = (ADDED[place], SPECIAL[place]);
            match given(setting).map_or(Some(place == 0), Value::as_bool) {
                Some(true) => {}
                Some(false) => return Ok(None),
                None => {
                    let value = &file[setting];
                    let expected = "true or false";
                    return Err(error::unsupported(path, setting, value, expected));
                }
            }
            let text = self.special.get(name).map_or(DEFAULTS[place], String::as_str);
            let id = self.tokenizer.token_to_id(text).ok_or_else(|| {
                let reason = format!(
                    "`{setting}` is on and `{name}` is \"{text}\", which tokenizer.json does not have; name one of its \
                     tokens, or set `{setting}` to false"
                );
                error::of_tokenizer(path, reason)
            })?;
            Ok(Some((text, id)))
        };
        let template = template(added(0)?, added(1)?);
        let template = serde_json::from_value::<PostProcessorWrapper>(template)
            .map_err(|e| error::damaged(path, e))?;
        self.tokenizer.with_post_processor(Some(template));
        self.around = around(&self.tokenizer).map_err(|why| error::damaged(path, why))?;
        Ok(self)
    }
}

/// Post-processor that adds these tokens, with their ids, before and after a text.
pub(super) fn template(first: Option<(&str, u32)>, last: Option<(&str, u32)>) -> Value {
    let token = |(text, _): (&str, u32)| json!({ "SpecialToken": { "id": text, "type_id": 0 } });
    let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let single = first.map(token).into_iter().chain([text.clone()]).chain(last.map(token));
    let special = first
        .into_iter()
        .chain(last)
        .map(|(text, id)| (text.to_owned(), json!({ "id": text, "ids": [id], "tokens": [text] })));
    json!({
        "type": "TemplateProcessing",
        "single": single.collect::<Vec<_>>(),
        "pair": [text, { "Sequence": { "id": "B", "type_id": 1 } }],
        "special_tokens": special.collect::<Map<_, _>>(),
    })
}

/// Reads a `tokenizer.json` for a model of `vocabulary` tokens, without truncation, padding and sampling, so that a
/// prompt always has the same tokens.
pub(super) fn from_json(path: &Path, text: &str, vocabulary: usize) -> Result<HuggingFace> {
    let refuse = |reason: String| error::of_tokenizer(path, reason);
    let tokenizer = tasks::tokenizer::load(text.as_bytes())
        .map_err(|e| refuse(format!("it is not a known kind of tokenizer.json: {e}")))?;
    let around = around(&tokenizer).map_err(refuse)?;
    let all = tokenizer.get_vocab(true).into_values();
    // The post-processor states ids of its own.
    let largest = all.chain(around.before.clone()).chain(around.after.clone()).max();
    match largest.filter(|id| *id as usize >= vocabulary) {
        Some(id) => Err(refuse(format!(
            "it has token {id}, expected less than {vocabulary}, the size of the model's vocabulary; use the \
             tokenizer.json of this model"
        ))),
        None => Ok(HuggingFace { tokenizer, around, special: BTreeMap::new() }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::fields;
    use super::*;

    #[test]
    fn long_prompts_lose_their_middle() {
        assert_eq!(without_middle((0..10).collect(), 5), [0, 1, 7, 8, 9]);
        assert_eq!(without_middle((0..5).collect(), 5), [0, 1, 2, 3, 4]);
    }

    /// Version of a folder with this `config.json`.
    fn written_by(config: &Value) -> WrittenBy {
        let config = config.as_object().unwrap();
        WrittenBy::of(Path::new("config.json"), config, &Map::new()).unwrap()
    }

    /// Tokens of a text with the special tokens around it.
    fn whole(tokens: &HuggingFace, text: &str) -> Vec<u32> {
        [tokens.prompt(text).unwrap(), tokens.around().after].concat()
    }

    /// Returns a `tokenizer.json` of byte-pair encoding for `abab...`, with optional settings for training and
    /// batches.
    fn file(changes: &Value) -> String {
        let mut file = json!({
            "version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
            "post_processor": null, "decoder": null, "truncation": null, "padding": null,
            "model": {
                "type": "BPE", "dropout": null,
                "vocab": { "a": 0, "b": 1, "ab": 2, "abab": 3 }, "merges": [["a", "b"], ["ab", "ab"]],
            },
        });
        for (key, value) in changes.as_object().unwrap() {
            *file.pointer_mut(key).unwrap() = value.clone();
        }
        file.to_string()
    }

    #[test]
    fn prompts_always_have_all_of_their_tokens_and_the_same_ones() {
        let prompt = "abababab".repeat(20);
        let truncation = |stride: u32| {
            json!({
                "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": stride,
            })
        };
        let padding = json!({
            "strategy": { "Fixed": 90 }, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 1, "pad_type_id": 0, "pad_token": "b",
        });
        for changes in [
            json!({}),
            json!({ "/truncation": truncation(0) }),
            json!({ "/truncation": truncation(4) }),
            json!({ "/padding": padding }),
            json!({ "/model/dropout": 0.5 }),
        ] {
            let tokens = from_json(Path::new("tokenizer.json"), &file(&changes), 4).unwrap();
            assert_eq!(tokens.prompt(&prompt).unwrap(), [3; 40], "{changes}");
        }
    }

    /// As transformers 4.57.1 and 5.24.0 encode `ab` with these files.
    #[test]
    fn special_tokens_are_those_that_transformers_adds_by_the_settings() {
        let bos = json!({ "/post_processor": template(Some(("b", 1)), None) });
        let by_version = |changes: &Value, settings: &Value, version: &str| {
            let written_by = written_by(&json!({ "transformers_version": version }));
            let tokens = from_json(Path::new("tokenizer.json"), &file(changes), 4).unwrap();
            let path = Path::new("tokenizer_config.json");
            let settings = fields(path, &settings.to_string())?;
            let tokens = tokens.configured(path, &settings, None, &written_by)?;
            // What is written reads as the same.
            let written = from_json(path, &tokens.json().unwrap(), 4).unwrap();
            assert_eq!(written.around, tokens.around, "{settings:?}");
            Ok::<_, anyhow::Error>(whole(&tokens, "ab"))
        };
        let encoded = |changes: &Value, settings: &Value| by_version(changes, settings, "4.57.1");
        let of = |class: Option<&str>, flags: [Option<bool>; 2]| {
            json!({
                "tokenizer_class": class, "add_bos_token": flags[0], "add_eos_token": flags[1],
                "bos_token": "b", "eos_token": { "content": "a", "lstrip": false },
            })
        };
        let (yes, no) = (Some(true), Some(false));
        let fast = Some("PreTrainedTokenizerFast");
        for (class, flags, from_none, from_bos) in [
            (Some("LlamaTokenizer"), [None, None], &[1, 2][..], &[1, 2][..]),
            (Some("LlamaTokenizerFast"), [yes, None], &[1, 2], &[1, 2]),
            (Some("LlamaTokenizerFast"), [no, None], &[2], &[2]),
            (Some("CodeLlamaTokenizer"), [yes, yes], &[1, 2, 0], &[1, 2, 0]),
            (None, [yes, no], &[1, 2], &[1, 2]),
            (None, [None, None], &[2], &[1, 2]),
            (fast, [yes, yes], &[2], &[1, 2]),
            (Some("Qwen2Tokenizer"), [no, None], &[2], &[1, 2]),
        ] {
            let settings = of(class, flags);
            assert_eq!(encoded(&json!({}), &settings).unwrap(), from_none, "{settings}");
            assert_eq!(encoded(&bos, &settings).unwrap(), from_bos, "{settings}");
            // Version 5 takes the template of tokenizer.json, whatever the class and the settings.
            for (changes, expected) in [(&json!({}), &[2][..]), (&bos, &[1, 2])] {
                assert_eq!(by_version(changes, &settings, "5.24.0").unwrap(), expected);
            }
        }
        let foreign = json!({ "tokenizer_class": "LlamaTokenizer", "bos_token": "<s>" });
        let said = encoded(&json!({}), &foreign).unwrap_err().to_string();
        assert!(said.contains("tokenizer_config.json") && said.contains("\"<s>\""), "{said}");
        for (field, value) in [("bos_token", json!(5)), ("tokenizer_class", json!(5))] {
            let said = encoded(&json!({}), &json!({ field: value })).unwrap_err().to_string();
            assert!(said.contains(&format!("`{field}` is 5, expected a text")), "{said}");
        }
        let said = encoded(&json!({}), &json!({ "add_bos_token": "yes" })).unwrap_err().to_string();
        assert!(said.contains("`add_bos_token` is \"yes\", expected true or false"), "{said}");
    }

    /// As transformers chooses the class: by the file, or by the type of the model.
    #[test]
    fn without_a_class_in_the_file_the_one_of_the_model_counts() {
        let path = Path::new("tokenizer_config.json");
        let encoded = |word: &str, class: &str, settings: &Value| {
            // Number 3 is this word.
            let changes = json!({
                "/model/vocab": { "a": 0, "b": 1, "ab": 2, word: 3 }, "/model/merges": [["a", "b"]],
            });
            let tokens = from_json(Path::new("tokenizer.json"), &file(&changes), 4).unwrap();
            let settings = fields(path, &settings.to_string())?;
            let tokens =
                tokens.configured(path, &settings, Some(class), &written_by(&json!({})))?;
            Ok::<_, anyhow::Error>(whole(&tokens, "ab"))
        };
        let (llama, qwen) = ("LlamaTokenizer", "Qwen2Tokenizer");
        let begin = json!({ "bos_token": "b" });
        let stated = json!({ "bos_token": "b", "tokenizer_class": qwen });
        let off = json!({ "bos_token": "b", "add_bos_token": false });
        for (word, class, settings, expected) in [
            ("c", llama, &begin, &[1, 2][..]),
            ("c", qwen, &begin, &[2]),
            ("c", llama, &stated, &[2]),
            ("c", llama, &off, &[2]),
            // Llama's own first token, where the vocabulary has it.
            ("<s>", llama, &json!({}), &[3, 2]),
            ("<s>", qwen, &json!({}), &[2]),
            ("c", llama, &json!({}), &[2]),
        ] {
            assert_eq!(encoded(word, class, settings).unwrap(), expected, "{class} {settings}");
        }
        let foreign = json!({ "bos_token": "<s>" });
        let said = encoded("c", llama, &foreign).unwrap_err().to_string();
        assert!(said.contains("\"<s>\", which tokenizer.json does not have"), "{said}");
    }

    #[test]
    fn sparse_ids_are_refused_with_numbers() {
        let sparse = file(&json!({ "/model/vocab/b": u32::MAX }));
        let said = from_json(Path::new("tokenizer.json"), &sparse, 4).unwrap_err().to_string();
        assert!(said.contains("4 tokens with ids up to 4294967295"), "{said}");
    }
}
