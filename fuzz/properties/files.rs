//! Properties of the readers of files that a user has or a download brings: tokenizers, weights, settings of models,
//! checkpoints, tables, lines of JSON.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use llm::pretrained::Pretrained;
use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use pe_zoo::model::ModelConfig;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tasks::TaskConfig;
use tasks::tokenizer::{HubTokenizer, Tokenizer as _};
use train::experiment::{Budget, EvalConfig, Experiment, TrainConfig};
use train::run::checkpoint::{CheckpointFolder, pack, unpack};
use train::run::train::Trainer;
use train::weights::NamedTensors;

/// Key of the cell whose checkpoints are read.
pub(crate) const KEY: &str = "0123456789abcdef";

/// Model with 5,000 weights.
pub(crate) fn tiny_llama() -> PathBuf {
    // Tests of the workspace include this file too.
    let roots = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = roots.map(|root| root.join("bench/llm/fixtures/tiny-llama"));
    folders.find(|folder| folder.is_dir()).expect("a fixture of the repository")
}

/// A `tokenizer.json` for the tiny model: words and the first of them for all others.
pub(crate) const WORDS: &str = r#"{
  "version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null, "decoder": null,
  "pre_tokenizer": { "type": "Whitespace" },
  "model": { "type": "WordLevel", "vocab": { "w0": 0, "w1": 1, "w2": 2, "w22": 22 }, "unk_token": "w0" }
}"#;

const PROMPT: &str = "w1 w2, abab! Größer\n  漢字 123 \u{0}";

thread_local! {
    /// Folder of this thread with the input as a file; a model is complete but for it.
    static FOLDER: tempfile::TempDir = {
        // Where files are kept in memory, a write takes microseconds instead of milliseconds.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(tiny_llama().join(file), folder.path().join(file)).expect(file);
        }
        std::fs::write(folder.path().join("tokenizer.json"), WORDS).expect("tokenizer.json");
        folder
    };
    static TRAINER: RefCell<Trainer<'static>> = RefCell::new(trainer("rope"));
}

/// Calls `read` with a file that holds these bytes, and puts back what the file held before.
fn in_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path) -> bool) -> bool {
    FOLDER.with(|folder| {
        let path = folder.path().join(name);
        let before = std::fs::read(&path).ok();
        std::fs::write(&path, bytes).expect("the temporary folder can be written");
        let valid = read(&path);
        if let Some(before) = before {
            std::fs::write(&path, before).expect("the temporary folder can be written");
        }
        valid
    })
}

/// A `tokenizer.json`: a text has the same tokens each time, all of them in the vocabulary.
pub(crate) fn tokenizer(bytes: &[u8]) -> bool {
    if let Ok(loaded) = tasks::tokenizer::load(bytes) {
        let around = || loaded.encode_fast(PROMPT, true).ok().map(|e| e.get_ids().to_vec());
        assert_eq!(around(), around());
    }
    in_file("other.json", bytes, |path| {
        let Ok(read) = HubTokenizer::read(path) else { return false };
        let [mut once, mut again] = [Vec::new(), Vec::new()];
        let encoded = [read.encode(PROMPT, &mut once), read.encode(PROMPT, &mut again)];
        assert!(once == again && encoded[0].is_ok() == encoded[1].is_ok());
        assert!(once.iter().all(|token| (*token as usize) < read.vocab_size()));
        let _shown = read.decode(&once);
        true
    })
}

/// A model that was read gives a decoder or refuses to, and its tokenizer takes a prompt.
fn model(path: &Path) -> bool {
    let Ok(read) = Pretrained::open(&path.to_string_lossy(), &Device::flex()) else { return false };
    let encoding = read.own_encoding();
    let _decoder = read.decoder(&encoding, 0, &mut ChaCha8Rng::seed_from_u64(0));
    if let Ok(ids) = read.tokenizer().prompt(PROMPT) {
        let _shown = read.tokenizer().decode(&ids);
    }
    true
}

/// A GGUF file.
pub(crate) fn gguf(bytes: &[u8]) -> bool {
    in_file("tiny.gguf", bytes, model)
}

/// Weights in the format of safetensors.
pub(crate) fn weights(bytes: &[u8]) -> bool {
    in_file("model.safetensors", bytes, |path| model(path.parent().expect("a folder")))
}

/// Settings of a model, as HuggingFace's `config.json`.
pub(crate) fn model_config(bytes: &[u8]) -> bool {
    in_file("config.json", bytes, |path| model(path.parent().expect("a folder")))
}

/// A Parquet file of documents.
pub(crate) fn parquet(bytes: &[u8]) -> bool {
    in_file("rows.parquet", bytes, |path| tasks::data::read(path, None).is_ok())
}

/// Documents as lines of JSON.
pub(crate) fn json_lines(bytes: &[u8]) -> bool {
    in_file("rows.jsonl", bytes, |path| tasks::data::read(path, None).is_ok())
}

/// Questions of a published benchmark, as lines of JSON.
pub(crate) fn questions(bytes: &[u8]) -> bool {
    in_file("items.jsonl", bytes, |path| llm::benchmarks::read(path).is_ok())
}

/// A checkpoint, as a file and as a content whose checksum is right: a state that was read is written as the same bytes.
pub(crate) fn checkpoint(bytes: &[u8]) -> bool {
    let file = in_file("0000000001.ckpt", bytes, |path| {
        CheckpointFolder::new(path.parent().expect("a folder"), KEY).read(path).is_ok()
    });
    let content = TRAINER.with_borrow_mut(|trainer| {
        let Ok(kept) = unpack(bytes, trainer.state_mut()) else { return false };
        let once = pack(trainer.state(), kept.cell_seconds).expect("a state that was read");
        unpack(&once, trainer.state_mut()).expect("a state that was written");
        assert!(pack(trainer.state(), kept.cell_seconds).is_ok_and(|again| again == once));
        true
    });
    file || content
}

/// Kept weights: tensors that were read are written as bytes that give the same tensors.
pub(crate) fn named_tensors(bytes: &[u8]) -> bool {
    let Ok(read) = NamedTensors::parse(bytes) else { return false };
    let again = read.bytes().expect("tensors that were read");
    assert!(NamedTensors::parse(&again).is_ok_and(|again| again == read));
    for (name, dims) in read.shapes() {
        let values = read.values(name).expect("a tensor that was listed");
        assert_eq!(values.len(), dims.iter().product::<usize>(), "{name}");
    }
    true
}

/// A training of a very small model that has not begun.
pub(crate) fn trainer(encoding: &str) -> Trainer<'static> {
    let task = TaskConfig::from_id("flip-flop").expect("a task");
    let experiment = Box::leak(Box::new(Experiment {
        workload: "fuzz".to_owned(),
        name: encoding.to_owned(),
        encoding: Combination::parse(encoding).expect("an encoding"),
        task: task.clone(),
        model: ModelConfig { layers: 1, width: 4, heads: 1, ..ModelConfig::default() },
        train: TrainConfig { steps: 9, batch_size: 2, len: 8, ..TrainConfig::default() },
        eval: EvalConfig::default(),
        grid: None,
        budget: Budget::default(),
        seed: 1,
        backend: "flex".to_owned(),
        engine: Engine::Reference,
    }));
    let task = Box::leak(task.build().expect("a task without data"));
    let (model, device) = train::run::build(experiment, task).expect("a small model");
    Trainer::new(model, encoding, &experiment.train, 0.0, task, 1, &device)
}
