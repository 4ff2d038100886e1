//! The table of the keys of a suite, from the structures that read it: names and comments from their sources, values from serde.

use std::fmt::Write as _;

use pe_zoo::model::ModelConfig;
use records::settings::Settings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use train::experiment::{Budget, EvalConfig, OptimizerConfig, TrainConfig, ValidationConfig};

/// Section of a suite, and the structure that reads it.
struct KeySection {
    heading: &'static str,
    name: &'static str,
    source: &'static str,
    /// Values of the keys that have defaults.
    defaults: Value,
    /// Values that a key with words takes; `None` for other keys.
    words: fn(&str) -> Option<String>,
}

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $path))
    };
}

fn sections() -> Vec<KeySection> {
    const SUITE: &str = source!("bench/train/src/suite/file.rs");
    const TRAIN: &str = source!("bench/train/src/experiment/train.rs");
    let section = |heading, name, source| KeySection {
        heading,
        name,
        source,
        defaults: json!({}),
        words: |_| None,
    };
    vec![
        section("The file", "SuiteFile", SUITE),
        section("`[[workload]]`", "WorkloadSection", SUITE),
        with_defaults::<ModelConfig>(
            "`[model]`",
            "ModelConfig",
            source!("pe-zoo/src/model/config.rs"),
        ),
        with_defaults::<TrainConfig>("`[train]`", "TrainConfig", TRAIN),
        with_defaults::<OptimizerConfig>(
            "`train.optimizer`",
            "OptimizerConfig",
            source!("bench/train/src/experiment/optimizer.rs"),
        ),
        with_defaults::<ValidationConfig>("`train.validation`", "ValidationConfig", TRAIN),
        section("`train.validation.stop`", "EarlyStop", TRAIN),
        with_defaults::<EvalConfig>(
            "`[eval]`",
            "EvalConfig",
            source!("bench/train/src/experiment/eval.rs"),
        ),
        with_defaults::<Budget>(
            "`[budget]`",
            "Budget",
            source!("bench/train/src/experiment/budget.rs"),
        ),
        section("`[ablation]`", "AblationSection", source!("bench/train/src/suite/ablation.rs")),
        section("`[question]`", "Question", source!("reports/records/src/settings/question.rs")),
        section("`[[claim]]`", "PaperClaim", source!("reports/records/src/settings/question.rs")),
        section("`[[use]]`", "UseCase", source!("reports/records/src/settings/question.rs")),
        with_defaults::<Settings>(
            "`[report]`",
            "Settings",
            source!("reports/records/src/settings.rs"),
        ),
    ]
}

fn with_defaults<T: Default + Serialize + DeserializeOwned>(
    heading: &'static str,
    name: &'static str,
    source: &'static str,
) -> KeySection {
    let words = |key: &str| {
        let fields = Map::from_iter([(key.to_owned(), json!("?"))]);
        let error = serde_json::from_value::<T>(fields.into()).err()?.to_string();
        let (_, expected) = error.strip_prefix("unknown variant `?`, ")?.split_once("expected ")?;
        Some(expected.trim_start_matches("one of ").to_owned())
    };
    let defaults = serde_json::to_value(T::default()).unwrap();
    KeySection { heading, name, source, defaults, words }
}

/// Key of a section.
struct Key {
    name: String,
    comment: String,
    is_required: bool,
}

/// Keys of the structure in the source, in its order.
fn keys(section: &KeySection) -> Vec<Key> {
    let begin = format!("struct {} {{\n", section.name);
    let start = section.source.find(&begin).expect(section.name) + begin.len();
    let body = &section.source[start..];
    let body = &body[..body.find("\n}").unwrap()];
    let (mut keys, mut comment, mut attributes) = (Vec::new(), String::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment += text;
        } else if line.starts_with("#[") {
            attributes += line;
        } else if let Some((name, kind)) = line.split_once(": ") {
            let name = name.rsplit(' ').next().unwrap();
            let name = attributes
                .split_once("rename = \"")
                .map_or(name, |(_, rest)| rest.split('"').next().unwrap());
            let is_required = section.defaults == json!({})
                && !kind.starts_with("Option<")
                && !attributes.contains("default");
            let comment = readable(&std::mem::take(&mut comment));
            keys.push(Key { name: name.to_owned(), comment, is_required });
            attributes.clear();
        }
    }
    keys
}

/// The comment of a field for readers of a guide: sentences about records go, and links to items are names.
fn readable(comment: &str) -> String {
    let mut text = comment.trim().replace("`None`", "unset");
    while let Some(start) = text.find(" Not serialized") {
        let end = text[start..].find(". ").map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
    }
    while let Some((before, rest)) = text.split_once("](") {
        let after = rest.split_once(')').expect("the end of a link").1;
        let start = before.rfind('[').expect("the start of a link");
        text = format!("{}{}{after}", &before[..start], &before[start + 1..]);
    }
    text.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

/// The table of each section.
pub(super) fn suite_keys() -> String {
    let mut out = String::new();
    for section in sections() {
        writeln!(
            out,
            "\n## {}\n\n| key | default | meaning |\n| --- | --- | --- |",
            section.heading
        )
        .unwrap();
        for key in keys(&section) {
            assert!(!key.comment.is_empty(), "{}.{} has no comment", section.name, key.name);
            let default = match &section.defaults[&key.name] {
                _ if key.is_required => "required".to_owned(),
                Value::Null => "–".to_owned(),
                Value::String(word) => format!("`{word}`"),
                Value::Object(_) => "see below".to_owned(),
                value => format!("`{value}`"),
            };
            let words = (section.words)(&key.name);
            let words = words.map_or_else(String::new, |words| format!(" Values: {words}."));
            writeln!(out, "| `{}` | {default} | {}{words} |", key.name, key.comment).unwrap();
        }
    }
    out + "\n"
}
