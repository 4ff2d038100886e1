//! Version of transformers whose rules the files of a folder follow.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value};

use super::error;

/// Class of tokenizers that version 5 of transformers writes.
const CLASS_OF_5: &str = "TokenizersBackend";

/// Version of transformers that wrote a folder, as far as its files tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenBy {
    /// First number of the version; `None` if nothing tells it.
    major: Option<u32>,
    evidence: String,
}

impl WrittenBy {
    /// Version that `config.json` at `path` states. Without a statement, fields that only version 5 writes tell it.
    pub(super) fn of(
        path: &Path,
        config: &Map<String, Value>,
        tokenizer_config: &Map<String, Value>,
    ) -> Result<Self> {
        let of = |major, evidence: &str| Ok(Self { major, evidence: evidence.to_owned() });
        if let Some(stated) = config.get("transformers_version") {
            let major = stated.as_str().and_then(|text| text.split('.').next()?.parse().ok());
            if major.is_none() {
                let expected = "a version of transformers, such as \"4.57.1\"";
                let field = "transformers_version";
                return Err(error::unsupported(path, field, stated, expected));
            }
            return of(major, &format!("config.json states {}", stated.as_str().unwrap_or("")));
        }
        if config.contains_key("rope_parameters") {
            return of(Some(5), "config.json has rope_parameters");
        }
        if tokenizer_config.get("tokenizer_class").and_then(Value::as_str) == Some(CLASS_OF_5) {
            return of(Some(5), "tokenizer_config.json names TokenizersBackend");
        }
        of(None, "config.json and tokenizer_config.json do not state the version")
    }

    /// Whether the rules of version 5 hold.
    pub(super) fn is_5(&self) -> bool {
        self.major.is_some_and(|major| major >= 5)
    }

    /// Whether the folder is known to be older than version 5.
    pub(super) fn is_known_4(&self) -> bool {
        self.major.is_some_and(|major| major < 5)
    }

    /// Rules that the files are read by, with the reason.
    pub(super) fn rules(&self) -> String {
        format!("{}: {}", if self.is_5() { "5" } else { "4.57" }, self.evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_version_is_stated_or_told_by_what_only_version_5_writes() {
        let of = |config: Value, tokenizer: Value| {
            let [config, tokenizer] = [&config, &tokenizer].map(|file| file.as_object().unwrap());
            WrittenBy::of(Path::new("config.json"), config, tokenizer)
        };
        for (config, tokenizer, rules, is_known_4) in [
            (
                json!({ "transformers_version": "4.57.1" }),
                json!({}),
                "4.57: config.json states 4.57.1",
                true,
            ),
            (
                json!({ "transformers_version": "5.0.0.dev0" }),
                json!({}),
                "5: config.json states 5.0.0.dev0",
                false,
            ),
            (
                json!({ "transformers_version": "4.30.2" }),
                json!({ "tokenizer_class": CLASS_OF_5 }),
                "4.57: config.json states 4.30.2",
                true,
            ),
            (
                json!({ "rope_parameters": {} }),
                json!({}),
                "5: config.json has rope_parameters",
                false,
            ),
            (
                json!({}),
                json!({ "tokenizer_class": CLASS_OF_5 }),
                "5: tokenizer_config.json names TokenizersBackend",
                false,
            ),
            (
                json!({}),
                json!({ "tokenizer_class": "LlamaTokenizer" }),
                "4.57: config.json and tokenizer_config.json do not state the version",
                false,
            ),
        ] {
            let found = of(config, tokenizer).unwrap();
            assert_eq!((found.rules().as_str(), found.is_known_4()), (rules, is_known_4));
        }
        for wrong in [json!("new"), json!(5)] {
            let said = of(json!({ "transformers_version": wrong }), json!({})).unwrap_err();
            assert!(said.to_string().contains("`transformers_version` is"), "{said}");
        }
    }
}
