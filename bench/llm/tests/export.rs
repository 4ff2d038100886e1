//! Exported models give our logits in PyTorch and in transformers.

#![expect(
    clippy::print_stdout,
    reason = "prints the measured differences, and why a test is skipped"
)]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod tiny;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use llm::export::{Exported, ModelFacts, TokenizerFiles, export, write_llama};
use pe_zoo::attention::Engine;
use pe_zoo::model::{ActivationKind, Decoder, ModelConfig, NormKind, NormPlace, QkNormKind};
use pe_zoo::testkit::close::numbers;
use pe_zoo::testkit::randomise_by;
use pe_zoo::{Combination, Registry};
use records::WeightsAt;
use serde_json::{Value, json};
use tasks::TaskConfig;
use train::experiment::{Budget, EvalConfig, Experiment, TrainConfig};
use train::run::kept::{self, KeptTraining, weights_path};
use train::run::{RunContext, build, unfinished_record};
use train::weights::NamedTensors;

/// Tokens of a sequence, longer than the trained length of 12.
const TOKENS: usize = 20;

/// Kept weights of an untrained model with random numbers in all parameters, and its logits.
fn kept(encoding: &str, model: ModelConfig, folder: &Path) -> (KeptTraining, Vec<f64>) {
    let task = TaskConfig::from_id("flip-flop").unwrap();
    let built = task.build().unwrap();
    let experiment = Experiment {
        workload: "test".into(),
        name: encoding.into(),
        encoding: Combination::parse(encoding).unwrap(),
        task,
        model,
        train: TrainConfig { len: 12, ..TrainConfig::default() },
        eval: EvalConfig { lens: vec![TOKENS + 2], ..EvalConfig::default() },
        grid: None,
        budget: Budget::default(),
        seed: 3,
        backend: "flex".into(),
        engine: Engine::Fused,
    };
    let (decoder, _) = build(&experiment, &*built).unwrap();
    let decoder = randomise_by(0.3, decoder.valid(), 5);
    let context = RunContext { suite: "test".into(), suite_sha256: None, threads: 1, jobs: 1 };
    let record = unfinished_record(&experiment, &*built, &context);
    let path = weights_path(folder, &experiment.training(&*built), WeightsAt::Last);
    kept::write(&path, &decoder, &record, WeightsAt::Last, 1, true).unwrap();
    (KeptTraining::read(&path).unwrap().unwrap(), logits(&decoder))
}

fn ids() -> Vec<i32> {
    (0..TOKENS as i32).map(|n| n * n % 5).collect()
}

fn logits(model: &Decoder) -> Vec<f64> {
    let tokens = TensorData::new(ids(), [1, TOKENS]);
    let tokens = Tensor::<2, Int>::from_data(tokens, &Device::flex());
    numbers(model.predict(tokens, None).unwrap())
}

/// Python with these modules; `None` if it is not on this machine. `PE_ZOO_PYTHON` names another than `python3`.
fn python(modules: &str) -> Option<PathBuf> {
    let program = std::env::var_os("PE_ZOO_PYTHON").map_or("python3".into(), PathBuf::from);
    let import = Command::new(&program).args(["-c", &format!("import {modules}")]).output();
    let is_there = import.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIPPED: {} cannot import {modules}", program.display());
    }
    is_there.then_some(program)
}

/// Runs a script in a folder and reads the JSON that it prints.
fn run(program: &Path, folder: &Path, script: &str) -> Value {
    let output = Command::new(program).args(["-c", script]).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"))
}

/// Largest difference of two lists.
fn difference(found: &Value, expected: &[f64]) -> f64 {
    let found: Vec<f64> = serde_json::from_value(found.clone()).unwrap();
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn small() -> ModelConfig {
    ModelConfig { width: 24, heads: 2, ..ModelConfig::default() }
}

fn llama() -> ModelConfig {
    ModelConfig {
        heads: 4,
        width: 32,
        kv_heads: Some(2),
        norm: NormKind::RmsNorm,
        norm_epsilon: Some(1e-6),
        activation: ActivationKind::SwiGlu,
        bias: false,
        ..ModelConfig::default()
    }
}

/// Variants beside the encodings of the registry at their defaults.
const VARIANTS: [&str; 32] = [
    "rope{layout=interleaved,rotary_fraction=0.5}",
    "rope{scaling={type=linear,factor=2.0}}",
    "rope{scaling={type=ntk,factor=2.0}}",
    "rope{scaling={type=dynamic,factor=2.0}}",
    "rope{scaling={type=yarn}}",
    "rope{scaling={type=llama3,factor=8.0,low_freq_factor=1.0,high_freq_factor=4.0,original_max_position_embeddings=8}}",
    "rope{scaling={type=longrope,factor=2.0,short_factor=[1.0,1.0,1.0,1.0,1.0,1.0],long_factor=[1.0,2.0,3.0,4.0,5.0,6.0]}}",
    "rope{scaling={type=proportional,partial_rotary_factor=0.5}}",
    "rope{scaling={type=part-ntk,factor=2.0}}",
    "rope{scaling={type=composed,parts=[{type=llama3,factor=8.0,low_freq_factor=1.0,high_freq_factor=4.0,original_max_position_embeddings=8},{type=yarn,factor=2.0}]}}",
    "alibi{learning=per-layer}",
    "t5-bias{num_buckets=8,max_distance=16,sharing=per-layer}",
    "t5-bias{buckets=bidirectional,num_buckets=8,max_distance=9}",
    "cope{max_positions=6,convention=code,gates=query-value}",
    "cope{max_positions=6,convention=equation,sharing=all-layers}",
    "cope{gates=separate-keys,layers={type=every,n=2}}",
    "fox{gates={type=bias-only}}",
    "fox{gates={type=fixed}}",
    "fox{gates={type=per-row,dim=3}}",
    "fox+window{size=4}",
    "rope/nope",
    "alibi{learning=per-layer}+window{size=3}/cope+rope",
    "cope+rope",
    "fox+rope",
    "alibi+sinusoidal",
    "abacus+rope",
    "dape(fire)",
    "kerple{kernel=generalized-gaussian,mean=learned}+temperature",
    "path{forget={type=gate}}",
    "randomized{longest=99,evaluation={type=spread}}(rope)",
    "rope+sinks",
    "tape{attention_update=full-mix}+learned-absolute",
];

#[test]
fn pytorch_gives_our_logits_of_every_encoding() {
    let Some(program) = python("torch") else { return };
    let mut most = 0.0_f64;
    let folder = tempfile::tempdir().unwrap();
    let package = json!(concat!(env!("CARGO_MANIFEST_DIR"), "/../python"));
    let import =
        format!("import json, sys, torch\nsys.path.insert(0, {package})\nimport pe_zoo.torch\n");
    let script = format!("{import}print(json.dumps(list(pe_zoo.torch.ENCODINGS)))");
    // A new encoding gets its class in PyTorch before a release, which the tests of the package demand.
    let known: Vec<String> = serde_json::from_value(run(&program, folder.path(), &script)).unwrap();
    assert!(known.len() >= 34, "{known:?}");
    let cards = Registry::builtin();
    let all = cards.cards().map(|card| card.id).filter(|id| known.iter().any(|known| known == id));
    // PyTorch draws other random positions.
    let encodings = all.filter(|id| *id != "randomized").chain(VARIANTS);
    let mut models = encodings.map(|encoding| (encoding, small())).collect::<Vec<_>>();
    let post =
        ModelConfig { norm_place: NormPlace::Post, activation: ActivationKind::Gelu, ..small() };
    models.push(("fox", post));
    let gated = ModelConfig { qk_norm: QkNormKind::Head, output_gate: true, ..small() };
    models.push(("rope", gated));
    let olmo2 =
        ModelConfig { qk_norm: QkNormKind::Width, norm_place: NormPlace::Output, ..llama() };
    models.push(("alibi", olmo2));
    models.push(("rope/alibi{learning=per-layer}+cope/nope", ModelConfig { layers: 5, ..small() }));
    models.push(("cope+(fope/nope)", small()));
    models.push(("alibi", ModelConfig { tied_head: true, ..llama() }));
    let gemma = ModelConfig {
        head_dim: Some(12),
        norm_place: NormPlace::Both,
        activation: ActivationKind::GeGlu,
        tied_head: true,
        scaled_embedding: true,
        head_cap: Some(3.0),
        ..llama()
    };
    models.push(("fox+rope", gemma));
    let mut expected = Vec::new();
    for (index, (encoding, model)) in models.into_iter().enumerate() {
        let (kept, logits) = kept(encoding, model, folder.path());
        let out = folder.path().join(index.to_string());
        assert_eq!(export(&kept, &out).unwrap(), Exported::Torch, "{encoding}");
        assert!(out.join("vocabulary.json").exists() && out.join("record.json").exists());
        expected.push((encoding, logits));
    }
    let script = format!(
        "{import}ids = torch.tensor([{}])\n\
         print(json.dumps([pe_zoo.torch.load(str(n))(ids).detach().flatten().tolist() for n in range({})]))",
        json!(ids()),
        expected.len()
    );
    let found = run(&program, folder.path(), &script);
    for ((encoding, expected), found) in expected.iter().zip(found.as_array().unwrap()) {
        let apart = difference(found, expected);
        assert!(apart < 1e-4, "{encoding}: {apart}");
        most = most.max(apart);
    }
    println!("largest difference of {} models: {most:.1e}", expected.len());
}

#[test]
fn transformers_gives_our_logits_of_a_llama() {
    // The module came with 4.43, the first version that reads `rope_type`.
    let modules = "torch, transformers, transformers.modeling_rope_utils";
    let Some(program) = python(modules) else { return };
    for encoding in ["rope", "rope{base=500.0,scaling={type=linear,factor=2.0}}"] {
        let folder = tempfile::tempdir().unwrap();
        let (kept, expected) = kept(encoding, llama(), folder.path());
        let out = folder.path().join("out");
        assert_eq!(export(&kept, &out).unwrap(), Exported::Llama);
        let script = format!(
            "import json, torch\nfrom transformers import AutoModelForCausalLM\n\
             model = AutoModelForCausalLM.from_pretrained('out')\nids = torch.tensor([{}])\n\
             print(json.dumps(model(ids).logits.detach().flatten().tolist()))",
            json!(ids())
        );
        let apart = difference(&run(&program, folder.path(), &script), &expected);
        assert!(apart < 1e-4, "{encoding}: {apart}");
        println!("{encoding}: largest difference {apart:.1e}");
    }
}

/// Kept weights have parameters alone.
#[test]
fn constants_are_exported_beside_the_parameters() {
    let folder = tempfile::tempdir().unwrap();
    for (encoding, name) in [
        ("fope", "encoding.0.cos.1"),
        ("cope+fope", "encoding.1.sin.0"),
        ("cope+(nope/fope)", "encoding.1.kinds.1.0.cos.0"),
    ] {
        let (kept, _) = kept(encoding, small(), folder.path());
        assert!(kept.tensors.values(name).is_none(), "{encoding}");
        let out = folder.path().join("out");
        export(&kept, &out).unwrap();
        let tensors =
            NamedTensors::parse(&fs::read(out.join("model.safetensors")).unwrap()).unwrap();
        let values = tensors.values(name).unwrap_or_else(|| panic!("{encoding}: no `{name}`"));
        assert!(values.iter().any(|value| *value != 0.0), "{encoding}");
    }
}

#[test]
fn an_earlier_export_is_replaced_and_other_files_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, _) = kept("rope", llama(), folder.path());
    let out = folder.path().join("out");
    for _ in 0..2 {
        assert_eq!(export(&kept, &out).unwrap(), Exported::Llama);
    }
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    tiny::copy_to(&model, &tiny::numbered(tiny::WORDS));
    let weights = fs::read(model.join("model.safetensors")).unwrap();
    let said = export(&kept, &model).unwrap_err().to_string();
    assert!(said.contains("files that pe-bench did not export"), "{said}");
    assert!(!model.join("record.json").exists());
    assert_eq!(fs::read(model.join("model.safetensors")).unwrap(), weights);
}

/// What transformers needs beside the weights: original lengths where each of its versions takes them, and a tokenizer that
/// adds no special tokens of its own.
#[test]
fn settings_for_transformers_are_complete() {
    let place = tempfile::tempdir().unwrap();
    let window = Cell::new(None);
    let written = |encoding: &str, name: &str| {
        let (kept, _) = kept(encoding, llama(), place.path());
        let (out, own) = (place.path().join(name), Combination::parse(encoding).unwrap());
        let facts = ModelFacts {
            model: &llama(),
            encoding: &own,
            vocabulary: 5,
            lens: [12, 24],
            context: 16,
            window: window.get(),
            end: &[1],
        };
        let text = tiny::numbered(5);
        let special = [("eos_token".to_owned(), "w1".to_owned())].into();
        let tokenizer = TokenizerFiles { json: &text, special: &special };
        write_llama(facts, "other", &kept.tensors, tokenizer, &out).unwrap();
        let read = |file: &str| fs::read_to_string(out.join(file)).unwrap();
        assert_eq!(read("tokenizer.json"), text);
        let tokens: Value = serde_json::from_str(&read("tokenizer_config.json")).unwrap();
        let class = "PreTrainedTokenizerFast";
        assert_eq!(tokens, json!({ "tokenizer_class": class, "eos_token": "w1" }));
        serde_json::from_str::<Value>(&read("config.json")).unwrap()
    };
    let dynamic = "rope{scaling={type=dynamic,factor=2.0,original_max_position_embeddings=8}}";
    let dynamic = written(dynamic, "dynamic");
    assert_eq!(dynamic["max_position_embeddings"], 8);
    assert_eq!(
        written("rope{scaling={type=dynamic,factor=2.0}}", "own")["max_position_embeddings"],
        12
    );
    let yarn = written("rope{scaling={type=yarn,factor=2.0}}", "yarn");
    assert_eq!(yarn["max_position_embeddings"], 16);
    assert_eq!(yarn["rope_scaling"]["original_max_position_embeddings"], 12);
    let four = "[1.0,1.0,1.0,1.0]";
    let longrope = format!(
        "rope{{scaling={{type=longrope,factor=3.0,short_factor={four},long_factor={four},original_max_position_embeddings=8}}}}"
    );
    let longrope = written(&longrope, "longrope");
    assert_eq!(longrope["original_max_position_embeddings"], 8);
    assert_eq!(longrope["rope_scaling"]["original_max_position_embeddings"], 8);
    let factor = longrope["rope_scaling"]["attention_factor"].as_f64().unwrap();
    assert!((factor - (1.0 + 3_f64.ln() / 8_f64.ln()).sqrt()).abs() < 1e-9, "{factor}");
    assert!(longrope.get("sliding_window").is_none());
    window.set(Some(20));
    let windowed = written("rope", "window");
    assert_eq!(
        (&windowed["model_type"], &windowed["sliding_window"]),
        (&json!("mistral"), &json!(20))
    );
    let other = written("cope", "other");
    assert_eq!((&other["model_type"], &other["sliding_window"]), (&json!("other"), &json!(20)));
}
