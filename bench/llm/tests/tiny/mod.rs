//! A random Llama-type model of 5,000 weights with numbers of transformers (`ci/peers/smollm2.py tiny`).
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use llm::pretrained::Pretrained;
use pe_zoo::attention::Weights;
use pe_zoo::model::Dropout;
use pe_zoo::testkit::close::numbers;
use pe_zoo::{Combination, Positions};
use serde_json::{Map, Value, json};
use train::streams::{Stream, stream};

pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../llm/fixtures/tiny-llama");

/// Size of its vocabulary.
pub(crate) const WORDS: usize = 23;

/// A `tokenizer.json` that knows whole words only, the first of them standing for all others.
pub(crate) fn tokenizer(words: &[&str], pre_tokenizer: &Value) -> String {
    let vocab = words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), json!(id)));
    json!({
        "version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null, "decoder": null,
        "pre_tokenizer": pre_tokenizer,
        "model": { "type": "WordLevel", "vocab": vocab.collect::<Map<_, _>>(), "unk_token": words[0] },
    })
    .to_string()
}

/// The words `w0`, `w1` and so on.
pub(crate) fn numbered(count: usize) -> String {
    let words = (0..count).map(|id| format!("w{id}")).collect::<Vec<_>>();
    let words = words.iter().map(String::as_str).collect::<Vec<_>>();
    tokenizer(&words, &json!({ "type": "Whitespace" }))
}

/// Puts the model into a folder, with this tokenizer.
pub(crate) fn copy_to(folder: &Path, tokenizer: &str) {
    copy(Path::new(FOLDER), folder, tokenizer);
}

/// Puts the model of another fixture into a folder, with the numbered words.
pub(crate) fn folder_of(fixture: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(FOLDER).with_file_name(fixture), folder.path(), &numbered(WORDS));
    folder
}

fn copy(fixture: &Path, folder: &Path, tokenizer: &str) {
    for file in ["config.json", "model.safetensors"] {
        fs::copy(fixture.join(file), folder.join(file)).unwrap();
    }
    fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
}

/// A folder of it, where it can be changed.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_to(folder.path(), &numbered(WORDS));
    folder
}

/// Makes a folder one of another version of transformers, or of none that is known; the rotation stays.
pub(crate) fn set_version(folder: &Path, version: Option<&str>) {
    let path = folder.join("config.json");
    let mut config: Map<String, Value> =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    if let Some(Value::Object(mut scaling)) = config.remove("rope_parameters") {
        config.insert("rope_theta".to_owned(), scaling.remove("rope_theta").unwrap());
        config.insert("rope_scaling".to_owned(), Value::Object(scaling));
    }
    config.remove("transformers_version");
    config.extend(version.map(|version| ("transformers_version".to_owned(), json!(version))));
    fs::write(path, Value::Object(config).to_string()).unwrap();
}

pub(crate) fn open(path: &Path) -> anyhow::Result<Pretrained> {
    Pretrained::open(path.to_str().unwrap(), &Device::flex())
}

/// Logits of all tokens of a text, `T` rows.
pub(crate) fn logits(
    pretrained: &Pretrained,
    encoding: &Combination,
    ids: &[u32],
) -> Vec<Vec<f64>> {
    let mut rng = stream(0, Stream::Encoding);
    let model = pretrained.decoder(encoding, ids.len(), &mut rng).unwrap();
    let ints = ids.iter().map(|id| *id as i32).collect::<Vec<_>>();
    let ints = TensorData::new(ints, [1, ids.len()]);
    let tokens = Tensor::<2, Int>::from_data(ints, &Device::flex());
    let at = Positions::contiguous(0, ids.len());
    let hidden = model.forward(tokens, &at, None, Dropout::off(), Weights::Drop).hidden;
    let values = numbers(model.logits(hidden.squeeze_dim::<2>(0)));
    values.chunks(pretrained.vocabulary).map(<[f64]>::to_vec).collect()
}
