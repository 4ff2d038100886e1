//! Valid inputs to start from.

use std::path::Path;

use pe_zoo::Registry;
use polars::prelude::{Column, DataFrame, NamedFrom as _, ParquetWriter, Series};
use records::RunRecord;
use serde_json::json;
use tasks::TaskConfig;
use train::run::checkpoint::{CheckpointFolder, pack};
use train::suite::BUILT_IN;
use train::weights::NamedTensors;

use crate::properties::files::{KEY, WORDS, tiny_llama, trainer};

/// Suites up to this size: larger ones take time and hold nothing that smaller ones do not.
const SMALL_SUITE: usize = 1600;

const SUITES: &[&str] = &[
    r#"name = "a"
title = "t"
about = "x"
seeds = [0, 1]
encodings = ["nope", { kind = "rope", base = 500.0 }, "cope{max_positions=8}+rope"]
[train]
steps = 7
optimizer = { warmup_steps = 2, learning_rate = 1e-3, decay = "cosine", clip_norm = 1.0 }
[[workload]]
name = "w"
task = "flip-flop"
train = { batch_size = 5 }
"#,
    r#"name = "b"
title = "t"
about = "x"
seeds = [3]
learning_rates = [3e-4, 1e-3]
[ablation]
base = "cope"
axes = { max_positions = [8, 16], gates = ["query-value"] }
changes = ["alibi"]
[budget]
seconds = 60.5
memory_bytes = 1000000
[report]
solved_exact_match = 0.9
[model]
layers = 2
width = 64
heads = 2
feed_forward_width = 96
dropout = 0.1
[train]
len = 16
validation = { every_steps = 10, samples = 8, seed = 5, solved_exact_match = 0.5, solved_checks = 1, stop = { cooldown_steps = 3 } }
[[workload]]
name = "w"
task = { kind = "counting", variables = 2, pass_weight = 10.0 }
axes = { "task.max_value" = [5, 10], "model.layers" = [1, 2], "train.steps" = [10] }
eval = { lens = [16, 32], samples = 9, splits = ["in-distribution"], seed = 12 }
"#,
    r#"name = "c"
title = "t"
about = "x"
seeds = [0]
encodings = ["*"]
[[workload]]
name = "w"
task = { kind = "selective-copy", preset = "mad", copied = 4 }
train = { len = 32, batch_size = 4 }
"#,
];

const EXPRESSIONS: &[&str] = &[
    "rope+cope",
    "cope{max_positions=16,layers={type=every,n=2}}+rope",
    "randomized{longest=4096,evaluation={type=sampled,seed=7}}(fire{width=8})",
    "tape(yarn{factor=4})",
    "tape{feed_forward_update={type=on,position_size=12},training_shift={type=random,max=9}}",
    "dape(fire)",
    "dape(alibi{slopes={given=[0.5,0.25]}})",
    "alibi{slopes={given=[0.5,0.25,-0.0]},learning=per-layer}",
    "cope-alibi{slopes=\"from-1/4\"}",
    "rope{scaling={rope_type=yarn,factor=4.5,beta_fast=32,beta_slow=1}}",
    "rope{scaling={rope_type=longrope,short_factor=[1,1.5],long_factor=[1,2.5],factor=2}}",
];

/// Suites.
pub(crate) fn suites() -> Vec<Vec<u8>> {
    let built_in = BUILT_IN.iter().map(|(_, text)| *text).filter(|text| text.len() < SMALL_SUITE);
    SUITES.iter().copied().chain(built_in).map(|text| text.as_bytes().to_vec()).collect()
}

/// Expressions: some combinations, and every encoding with all of its settings.
pub(crate) fn expressions() -> Vec<Vec<u8>> {
    let registry = Registry::builtin();
    let alone = registry.cards().filter_map(|card| {
        let part = registry.encoding(card.id).ok()?;
        Some(format!("{}{}", card.id, pe_zoo::compose::settings_text(&part)))
    });
    EXPRESSIONS.iter().map(|text| (*text).to_owned()).chain(alone).map(String::into_bytes).collect()
}

/// Every task with all of its settings, as JSON and as TOML.
pub(crate) fn tasks() -> Vec<Vec<u8>> {
    let configs = tasks::ALL.iter().filter_map(|meta| TaskConfig::from_id(meta.id).ok());
    configs
        .flat_map(|config| {
            [serde_json::to_string_pretty(&config).ok(), toml::to_string(&config).ok()]
        })
        .flatten()
        .map(String::into_bytes)
        .collect()
}

/// Models whose cost is asked for.
pub(crate) fn cost_configs() -> Vec<Vec<u8>> {
    let built_in = train::flops::config::BUILT_IN.iter().map(|(_, text)| *text);
    built_in.map(|text| text.as_bytes().to_vec()).collect()
}

/// What the command line reads.
pub(crate) fn command_lines() -> Vec<Vec<u8>> {
    let settings = "solved_exact_match = 0.99\nsolved_loss = 0.05\neffective_exact_match = 0.9\n\
                    ablation_base = \"rope\"\n";
    [settings, "4GiB", "1.5 MiB", "1000000"].map(|text| text.as_bytes().to_vec()).to_vec()
}

/// Committed records, three of each small folder, cut to one point of each list so that a mutation meets every field.
pub(crate) fn records(root: &Path) -> Vec<Vec<u8>> {
    const MOST_BYTES: u64 = 1 << 19;
    let mut texts = Vec::new();
    let suites = std::fs::read_dir(root.join("results")).into_iter().flatten().flatten();
    let folders = suites.flat_map(|suite| std::fs::read_dir(suite.path()).into_iter().flatten());
    for folder in folders.flatten().map(|folder| folder.path()) {
        let packed = std::fs::metadata(folder.join("records.parquet"));
        if packed.is_ok_and(|packed| packed.len() <= MOST_BYTES) {
            let records = analysis::folder::read_dir(&folder).unwrap_or_default();
            texts.extend(records.iter().take(3).filter_map(shortened));
        }
    }
    texts.sort();
    texts
}

fn shortened(record: &RunRecord) -> Option<Vec<u8>> {
    let mut value = serde_json::to_value(record).ok()?;
    for list in ["/train/curve", "/evals", "/train/validations"] {
        if let Some(list) = value.pointer_mut(list).and_then(serde_json::Value::as_array_mut) {
            list.truncate(1);
        }
    }
    // It seals the whole record, and a record without it is read as well.
    value.as_object_mut()?.remove("sha256");
    serde_json::to_vec_pretty(&value).ok()
}

/// The short files of published numbers.
pub(crate) fn published(root: &Path) -> Vec<Vec<u8>> {
    let path = |file: &str| root.join("reports/analysis/published").join(format!("{file}.toml"));
    crate::properties::PUBLISHED.iter().filter_map(|file| std::fs::read(path(file)).ok()).collect()
}

/// Tokenizers of all four models of the library, with and without normalizers, templates and decoders.
pub(crate) fn tokenizers() -> Vec<Vec<u8>> {
    let byte_level = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let template = json!({
        "type": "TemplateProcessing",
        "single": [{ "SpecialToken": { "id": "a", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
        "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
        "special_tokens": { "a": { "id": "a", "ids": [0], "tokens": ["a"] } },
    });
    let added = json!([{
        "id": 4, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": true,
        "normalized": false,
    }]);
    let pairs = json!({
        "type": "BPE", "dropout": 0.1, "unk_token": "a", "fuse_unk": false, "byte_fallback": false,
        "vocab": { "a": 0, "b": 1, "ab": 2, "abab": 3 }, "merges": [["a", "b"], ["ab", "ab"]],
    });
    let pieces = json!({
        "type": "WordPiece", "unk_token": "w", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": { "w": 0, "##1": 1, "##2": 2, "ab": 3 },
    });
    let unigram = json!({
        "type": "Unigram", "unk_id": 0, "byte_fallback": false,
        "vocab": [["<unk>", 0.0], ["w", -1.5], ["ab", -2.0], ["a", -2.5]],
    });
    let file = |model: &serde_json::Value, changes: serde_json::Value| {
        let mut file = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": null, "post_processor": null, "decoder": null, "model": model,
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            file[key] = value.clone();
        }
        // Each key on a line of its own, so that lines of other entries fit.
        format!("{file:#}").into_bytes()
    };
    let truncation =
        json!({ "direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 2 });
    let padding = json!({
        "strategy": { "Fixed": 12 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 1,
        "pad_type_id": 0, "pad_token": "b",
    });
    let normalizer = json!({
        "type": "Sequence", "normalizers": [{ "type": "NFC" }, { "type": "Lowercase" },
            { "type": "Replace", "pattern": { "String": " " }, "content": "_" }],
    });
    let split = json!({
        "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": "\\p{L}+|\\d" }, "behavior": "Isolated", "invert": false },
            { "type": "Digits", "individual_digits": true }],
    });
    vec![
        WORDS.as_bytes().to_vec(),
        file(
            &pairs,
            json!({ "pre_tokenizer": byte_level, "decoder": byte_level, "added_tokens": added }),
        ),
        file(
            &pairs,
            json!({ "post_processor": template, "truncation": truncation, "padding": padding }),
        ),
        file(&pairs, json!({ "normalizer": normalizer, "pre_tokenizer": split })),
        file(
            &pieces,
            json!({ "pre_tokenizer": { "type": "BertPreTokenizer" },
            "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true },
            "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true } }),
        ),
        file(
            &unigram,
            json!({ "pre_tokenizer":
                { "type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": true } }),
        ),
    ]
}

/// Settings of models in the old and the new way of writing rotations.
pub(crate) fn model_configs() -> Vec<Vec<u8>> {
    let text = std::fs::read(tiny_llama().join("config.json")).unwrap_or_default();
    let whole = serde_json::from_slice::<serde_json::Value>(&text).unwrap_or_default();
    let changed = |key: &str, value: serde_json::Value| {
        let mut changed = whole.clone();
        for old in ["rope_scaling", "rope_parameters", "rope_theta"] {
            changed.as_object_mut().map(|fields| fields.remove(old));
        }
        changed[key] = value;
        format!("{changed:#}").into_bytes()
    };
    let llama3 = json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16 });
    let linear = json!({ "rope_theta": 500.0, "rope_type": "linear", "factor": 2.0 });
    vec![text, changed("rope_scaling", llama3), changed("rope_parameters", linear)]
}

/// Tables of documents.
pub(crate) fn parquet() -> Vec<Vec<u8>> {
    let table = |rows: &[&str]| {
        let texts: Column = Series::new("text".into(), rows).into();
        let numbers: Column =
            Series::new("id".into(), (0..rows.len() as i64).collect::<Vec<_>>()).into();
        let mut frame = DataFrame::new(rows.len(), vec![numbers, texts]).expect("two columns");
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).expect("a table in memory");
        bytes
    };
    vec![table(&["first row of text", "second row of text", "third"]), table(&["größer"; 40])]
}

/// Documents as lines of JSON.
pub(crate) fn json_lines() -> Vec<Vec<u8>> {
    let line = |number: usize| {
        json!({ "id": number, "text": format!("document {number} 漢字") }).to_string()
    };
    vec![(0..3).map(line).collect::<Vec<_>>().join("\n").into_bytes(), line(7).into_bytes()]
}

/// Questions with the fields of all four published benchmarks.
pub(crate) fn questions() -> Vec<Vec<u8>> {
    let lines = [
        json!({ "input": "A text.", "output": "answer" }),
        json!({ "id": "a", "input": "A text.", "output": "one" }),
        json!({ "id": "a", "input": "A text.", "output": "two" }),
        json!({ "input": "A text.", "outputs": ["one", "two"] }),
        json!({ "article": "A text.", "questions": [
            { "question": "Why?", "options": ["a", "b", "c", "d"], "gold_label": 2 }] }),
        json!({ "question": "Why?", "choices": ["a", "b"], "answer": 1 }),
        json!({ "question": "Why?", "choices": ["a", "b"], "answer": "B" }),
        json!({ "question": "Why?", "choices": { "text": ["a", "b"], "label": ["A", "B"] }, "answerKey": "B" }),
        json!({ "question": { "stem": "Why?", "choices": [{ "text": "a", "label": "1" }, { "text": "b", "label": "2" }] }, "answerKey": "1" }),
    ];
    let lines = lines.map(|line| line.to_string().into_bytes());
    [&lines[..], &[lines.join(&b"\n"[..])]].concat()
}

/// Kept weights of a small model: tensors alone, with a tensor without elements, and those of a checkpoint.
pub(crate) fn named_tensors() -> Vec<Vec<u8>> {
    let mut tensors = NamedTensors::default();
    tensors.insert(
        "blocks.0.qkv.weight".to_owned(),
        vec![2, 3],
        &[0.5, -1.0, f32::NAN, 0.0, 2.0, 3.0],
    );
    tensors.insert("last_norm.weight".to_owned(), vec![2], &[1.0, 1.0]);
    let small = tensors.bytes().expect("two tensors");
    tensors.insert("empty".to_owned(), vec![0, 7], &[]);
    let with_empty = tensors.bytes().expect("three tensors");
    let state = pack(trainer("rope").state(), 0.0).expect("a small state");
    vec![small, with_empty, state]
}

/// Contents of checkpoints, before and after a few steps, and the file of one.
pub(crate) fn checkpoints() -> Vec<Vec<u8>> {
    let mut trainer = trainer("rope");
    let fresh = pack(trainer.state(), 0.0).expect("a small state");
    for _ in 0..4 {
        trainer.step().expect("a small step");
    }
    let trained = pack(trainer.state(), 1.5).expect("a small state");
    let results = tempfile::tempdir().expect("a temporary folder");
    let folder = CheckpointFolder::new(results.path(), KEY);
    folder.write(4, &trained).expect("a temporary folder");
    let file = folder.newest_first().expect("a temporary folder").remove(0);
    let file = std::fs::read(file).expect("a temporary folder");
    vec![fresh, trained, file]
}
