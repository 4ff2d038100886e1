//! Inspection of trained cells.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::path::Path;

use pe_zoo::Combination;
use pe_zoo::attention::TraceKind;
use pe_zoo::model::{Decoder, ModelConfig};
use program::{bench, refused, text};
use tasks::{Task, TaskConfig};
use train::run::{AttentionMap, GateSamples, Look, Observed, gate_scores, observe};
use train::streams::{Stream, stream};

fn device() -> burn::tensor::Device {
    train::backend::device("flex").unwrap()
}

/// A model that has learned nothing, and its task.
fn model(encoding: &str, task: &str) -> (Decoder, Box<dyn Task>) {
    let task = TaskConfig::from_id(task).unwrap().build().unwrap();
    let config = Combination::parse(encoding).unwrap();
    let sizes = ModelConfig { width: 16, ..ModelConfig::default() };
    let model = Decoder::new(
        &sizes,
        task.vocab_size(),
        &config,
        &sizes.dims(32, 32),
        &mut stream(1, Stream::Model),
        &mut stream(1, Stream::Encoding),
        &device(),
    );
    (model.unwrap(), task)
}

fn seen(encoding: &str) -> Observed {
    let (model, task) = model(encoding, "flip-flop");
    let samples = task.eval_set("in-distribution", 12, 1, 5).unwrap();
    observe(&model, "test", &samples, &device()).unwrap().remove(0)
}

fn map(seen: &Observed, layer: usize, look: Look) -> &AttentionMap {
    seen.layers[layer].iter().find(|map| map.look == look).unwrap()
}

#[test]
fn maps_have_the_columns_that_rows_see_and_weights_sum_to_one() {
    let seen = seen("cope+rope");
    assert_eq!(seen.layers.len(), 2);
    for layer in 0..2 {
        let weights = map(&seen, layer, Look::Attention);
        let gates = map(&seen, layer, Look::Trace(TraceKind::Gates));
        let positions = map(&seen, layer, Look::Trace(TraceKind::ContextualPositions));
        assert_eq!(weights.heads.len(), 2);
        for head in 0..2 {
            for row in 0..11 {
                let row = |map: &AttentionMap| map.heads[head][row].clone();
                let (weights, gates, positions) = (row(weights), row(gates), row(positions));
                assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                assert_eq!((weights.len(), gates.len()), (positions.len(), positions.len()));
                assert!((gates.iter().sum::<f32>() - positions[0]).abs() < 1e-4);
            }
        }
        map(&seen, layer, Look::Trace(TraceKind::PositionProducts));
    }
}

#[test]
fn gate_scores_are_there_where_there_are_gates_and_something_is_counted() {
    let scores = |encoding: &str, task: &str| {
        let (model, task) = model(encoding, task);
        let counted = |sample: &tasks::Sample| task.counted(sample);
        let samples = GateSamples { len: 48, count: 8, seed: 7 };
        gate_scores(&model, "test", &*task, &counted, samples, &device()).unwrap()
    };
    let found = scores("cope", "flip-flop");
    let places = found.iter().map(|s| (s.layer, s.head)).collect::<Vec<_>>();
    assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert!(found.iter().all(|s| s.gate == "gates" && (0.0..=1.0).contains(&s.auc) && s.rows >= 8));
    assert_eq!(scores("fox+rope", "counting")[0].gate, "forgetting");
    assert_eq!(scores("stick-breaking", "selective-copy")[0].gate, "shares");
    assert!(scores("rope", "flip-flop").is_empty(), "no gates");
    assert!(scores("cope", "copy").is_empty(), "nothing is counted");
}

#[test]
fn what_tasks_count_fits_their_samples() {
    let mut counting = Vec::new();
    for meta in tasks::ALL.iter().filter(|meta| !meta.takes_path) {
        let task = TaskConfig::from_id(meta.id).unwrap().build().unwrap();
        let len = (8..80).find(|len| task.check_len(*len).is_ok());
        let Some(len) = len else { continue };
        let samples = task.eval_set(task.splits()[0].name, len, 8, 3).unwrap();
        let counted = samples.iter().map(|s| task.counted(s)).collect::<Vec<_>>();
        let kinds = counted.iter().map(Option::is_some).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(kinds.len(), 1, "{}: all samples or none", meta.id);
        for (sample, counted) in samples.iter().zip(counted) {
            assert!(counted.is_none_or(|marks| marks.len() == sample.tokens.len()), "{}", meta.id);
        }
        counting.extend(kinds.contains(&true).then_some(meta.id));
    }
    assert_eq!(
        counting,
        [
            "counting",
            "flip-flop",
            "mrcr",
            "parity",
            "passage",
            "selective-copy",
            "selective-counting"
        ]
    );
}

const SUITE: &str = r#"
name = "looks"
title = "ClaimStamp"
about = "For tests."
seeds = [0]
encodings = ["cope", "rope"]
[model]
layers = 1
width = 16
[train]
steps = 5
batch_size = 4
len = 12
[eval]
samples = 4
[[workload]]
name = "flip-flop"
task = "flip-flop"
"#;

fn named_arguments<'a>(suite: &'a str, out: &'a str, page: &'a str) -> [&'a str; 8] {
    ["inspect", suite, "flip-flop", "cope", "--results", out, "--out", page]
}

#[test]
fn a_cell_is_looked_into_through_its_kept_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (suite, out, page) = (path("looks.toml"), path("out"), path("page"));
    std::fs::write(&suite, SUITE).unwrap();
    let ran = bench(&["run", &suite, "--out", &out]);
    assert!(ran.status.success(), "{}", text(&ran));
    let records = analysis::folder::read_dir(Path::new(&out)).unwrap();
    let cope = records.iter().find(|r| r.encoding.name == "cope").unwrap();
    let rope = records.iter().find(|r| r.encoding.name == "rope").unwrap();
    assert_eq!((cope.gates.len(), rope.gates.len()), (2, 0));

    let looked = bench(&["inspect", &cope.key[..6], "--results", &out, "--out", &page, "--json"]);
    assert!(looked.status.success(), "{}", text(&looked));
    let json: serde_json::Value = serde_json::from_slice(&looked.stdout).unwrap();
    assert_eq!(json["gate_scores"], serde_json::to_value(&cope.gates).unwrap());
    assert_eq!(json["tokens"].as_array().unwrap().len(), 12);
    assert_eq!(json["layers"][0]["maps"][0]["name"], "attention");
    for file in ["index.html", "inspect.json", "layer-1-attention.svg", "layer-1-gates.svg"] {
        assert!(Path::new(&page).join(file).is_file(), "{file}");
    }

    // By name, the same cell: the same scores.
    let more = ["--sample", "2", "--link", "All results=../zoo/index.html"];
    let named = bench(&[&named_arguments(&suite, &out, &page)[..], &more].concat());
    assert!(named.status.success(), "{}", text(&named));
    let html = std::fs::read_to_string(Path::new(&page).join("index.html")).unwrap();
    assert_eq!(
        html.matches("href=\"../zoo/index.html\"").count(),
        2,
        "in the menu and at the foot"
    );
    assert!(html.contains("<a href=\"inspect.json\">Data</a>"), "{html}");
    assert!(text(&named).contains(&format!("{:.3}", cope.gates[0].auc)), "{}", text(&named));

    // Gates against marks of text, and maps less those of another model: only what both have.
    let two = [&named_arguments(&suite, &out, &page)[..], &["--against", &rope.key]].concat();
    let two = bench(&[&two[..], &["--marks", "sentence", "--json", "--len", "600"]].concat());
    assert!(two.status.success(), "{}", text(&two));
    let json: serde_json::Value = serde_json::from_slice(&two.stdout).unwrap();
    assert_eq!((&json["against"], &json["tokens_per_cell"]), (&"rope".into(), &5.into()));
    let maps = json["layers"][0]["maps"].as_array().unwrap();
    let names: Vec<&str> = maps.iter().map(|map| map["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["attention", "positions-alone"]);
    // 599 tokens in blocks of five; no instruction or bit is the end of a sentence.
    assert_eq!(maps[0]["heads"][0].as_array().unwrap().len(), 120);
    assert_eq!(json["gate_scores"], serde_json::json!([]));
    assert_eq!(maps[0]["heads"][0][10].as_array().unwrap().len(), 11);

    for (arguments, expected) in [
        (
            vec!["inspect", &suite, "flip-flop", "cope", "--results", &out, "--seed", "5"],
            "--workloads 'flip-flop' --encodings 'cope' --seeds 5 --keep-weights last`",
        ),
        (vec!["inspect", &cope.key, "--results", &out, "--best"], "--keep-weights best --force`"),
        (
            vec!["inspect", &cope.key, "--results", &out, "--against", "zzzz"],
            "no record has a key that begins with `zzzz`",
        ),
        (vec!["inspect", "zzzz", "--results", &out], "no record has a key that begins with `zzzz`"),
        (vec!["inspect", "", "--results", &out], "give more characters of the key"),
        (
            vec!["inspect", &suite, "flip-flap", "cope", "--results", &out],
            "did you mean `flip-flop`?",
        ),
        (vec!["inspect", &suite, "flip-flop"], "SUITE WORKLOAD ENCODING"),
        (vec!["inspect", &cope.key, "--results", &out, "--seed", "1"], "has its own seed"),
        (vec!["inspect", &cope.key, "--results", &out, "--len", "3000"], "smaller --len"),
        (
            vec!["inspect", &cope.key, "--results", &out, "--split", "spars"],
            "did you mean `sparse`?",
        ),
    ] {
        refused(&arguments, expected);
    }
}

#[test]
fn two_encodings_are_compared_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (suite, out) = (path("looks.toml"), path("out"));
    std::fs::write(&suite, SUITE.replace("seeds = [0]", "seeds = [0, 1, 2]")).unwrap();
    assert!(bench(&["run", &suite, "--out", &out]).status.success());
    let compared = bench(&["compare", "cope", "rope", &out, "--points"]);
    assert!(compared.status.success(), "{}", text(&compared));
    for expected in ["3 seeds in common: 0, 1, 2.", "in distribution", "won-lost-tied", "--slices"]
    {
        assert!(text(&compared).contains(expected), "{expected}: {}", text(&compared));
    }
    let json = bench(&["compare", "cope", "rope", &out, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["duels"][0]["regions"][0]["n"], 3);
    let markdown = text(&bench(&["compare", "cope", "rope", &out, "--markdown"]));
    assert!(markdown.starts_with("# CoPE against RoPE"), "{markdown}");
    let page = path("pages/compare.html");
    let written = bench(&["compare", "cope", "rope", &out, "--page", &page]);
    assert!(written.status.success(), "{}", text(&written));
    assert!(std::fs::read_to_string(&page).unwrap().contains("<h1>CoPE against RoPE</h1>"));
    let wrong = bench(&["compare", "cope", "rop", &out]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong).contains("did you mean `rope`?"), "{}", text(&wrong));
    let usage = bench(&["compare", "cope"]);
    assert_eq!(usage.status.code(), Some(2), "a command line that cannot be read");
    let completions = bench(&["completions", "bash"]);
    assert!(completions.status.success() && text(&completions).contains("nightly"));
}
