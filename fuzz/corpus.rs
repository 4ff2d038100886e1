//! Valid inputs to start from.

use std::path::Path;

use pe_bench::suite::BUILT_IN;
use pe_zoo::Registry;
use tasks::TaskConfig;

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
    let built_in = pe_bench::flops::config::BUILT_IN.iter().map(|(_, text)| *text);
    built_in.map(|text| text.as_bytes().to_vec()).collect()
}

/// What the command line reads.
pub(crate) fn command_lines() -> Vec<Vec<u8>> {
    let settings = "solved_exact_match = 0.99\nsolved_loss = 0.05\neffective_exact_match = 0.9\n\
                    ablation_base = \"rope\"\n";
    [settings, "4GiB", "1.5 MiB", "1000000"].map(|text| text.as_bytes().to_vec()).to_vec()
}

/// Committed records of both schemas, cut to one point of each list so that a mutation meets every field.
pub(crate) fn records(root: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let folders = std::fs::read_dir(root.join("results")).into_iter().flatten().flatten();
    for folder in folders {
        let cells = std::fs::read_dir(folder.path().join("cells")).into_iter().flatten().flatten();
        let mut files = cells.map(|entry| entry.path()).collect::<Vec<_>>();
        files.sort();
        let texts = files.iter().take(3).filter_map(|file| std::fs::read(file).ok());
        found.extend(texts.filter_map(|text| shortened(&text)));
    }
    found.sort();
    found
}

fn shortened(text: &[u8]) -> Option<Vec<u8>> {
    let mut value: serde_json::Value = serde_json::from_slice(text).ok()?;
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
    let path = |file: &str| root.join("reports/published").join(format!("{file}.toml"));
    crate::properties::PUBLISHED.iter().filter_map(|file| std::fs::read(path(file)).ok()).collect()
}
