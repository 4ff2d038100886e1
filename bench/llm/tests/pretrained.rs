//! Loading pretrained models: equal to an independent implementation, and damaged files refused.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod tiny;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use burn::tensor::Device;
use llm::pretrained::Pretrained;
use pe_zoo::Combination;
use pe_zoo::encoding::PositionRequest;
use pe_zoo::erased::positions;
use pe_zoo::rotary::Scaling;
use pe_zoo::zoo::rope::{self, Rope};
use serde::Deserialize;
use serde_json::{Value, json};
use tiny::{logits, open};
use train::streams::{Stream, stream};

/// Largest difference that f32 sums in another order leave in these logits (they reach 20).
const TINY_TOLERANCE: f64 = 2e-4;

#[derive(Deserialize)]
struct Expected {
    ids: Vec<u32>,
    logits: Vec<Vec<f64>>,
}

/// Numbers of transformers for one of the small models.
fn expected(fixture: &str) -> Expected {
    let text = include_str!("../fixtures/tiny.json");
    serde_json::from_str::<BTreeMap<String, _>>(text).unwrap().remove(fixture).unwrap()
}

#[test]
fn a_small_model_gives_the_logits_of_transformers() {
    let pretrained = open(tiny::folder().path()).unwrap();
    let Expected { ids, logits: expected } = expected("tiny-llama");
    assert_eq!((pretrained.model.heads, pretrained.model.kv_heads), (4, Some(2)));
    assert_eq!(pretrained.rope.clone().unwrap().scaling.id(), "yarn");
    let found = logits(&pretrained, &pretrained.own_encoding(), &ids);
    assert_close(&found, &expected, TINY_TOLERANCE);
    // The test would see another rotation.
    let unscaled = rope::RopeConfig { scaling: Scaling::None, ..pretrained.rope.clone().unwrap() };
    let unscaled =
        Combination::try_from(pe_zoo::EncodingConfig::of::<Rope>(unscaled).unwrap()).unwrap();
    let other = logits(&pretrained, &unscaled, &ids);
    assert!(other.concat().iter().zip(expected.concat()).any(|(a, b)| (a - b).abs() > 0.05));
}

/// Numbers of `ci/peers/tiny_kinds.py`, whose text states how those of Qwen2 are made.
#[test]
fn other_kinds_give_the_logits_of_transformers() {
    for (fixture, encoding) in [
        ("tiny-mistral", "rope{base=500.0}"),
        ("tiny-qwen2", "rope{base=500.0}"),
        ("tiny-qwen3", "rope{base=500.0}"),
        ("tiny-smollm3", "rope{base=500.0}/rope{base=500.0}/rope{base=500.0}/nope"),
        ("tiny-olmo2", "rope{base=500.0}"),
        (
            "tiny-olmo3",
            "rope{base=500}+window{size=5}/rope{base=500}+window{size=5}/rope{base=500}+window{size=5}/\
             rope{base=500,scaling={type=yarn,factor=4,original_max_position_embeddings=16}}",
        ),
        ("tiny-mistral-window", "rope{base=500.0}+window{size=6}"),
        ("tiny-qwen3-wide", "rope{base=500.0}"),
        (
            "tiny-gemma2",
            "rope{base=500}+window{size=5}+logit-cap{cap=2}/rope{base=500}+logit-cap{cap=2}",
        ),
        (
            "tiny-gemma3",
            "rope{base=50}+window{size=5}/rope{base=50}+window{size=5}/rope{base=500,scaling={type=linear,factor=4}}",
        ),
    ] {
        let pretrained = open(tiny::folder_of(fixture).path()).unwrap();
        let Expected { ids, logits: expected } = expected(fixture);
        assert_eq!(pretrained.own_encoding(), Combination::parse(encoding).unwrap());
        let found = logits(&pretrained, &pretrained.own_encoding(), &ids);
        assert_close(&found, &expected, TINY_TOLERANCE);
    }
}

/// Within the window numbers are those of full attention; longer sequences are refused, whether the decoder knows their
/// length when it is built or not.
#[test]
fn sequences_longer_than_the_window_are_refused() {
    let folder = tiny::folder_of("tiny-mistral");
    let config = folder.path().join("config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"sliding_window\": null", "\"sliding_window\": 64")).unwrap();
    let pretrained = open(folder.path()).unwrap();
    assert_eq!((pretrained.context, pretrained.window), (64, Some(64)));
    let own = pretrained.own_encoding();
    let built = |len: usize| pretrained.decoder(&own, len, &mut stream(0, Stream::Encoding));
    // Of 66 tokens the last is only predicted.
    let error = built(66).unwrap_err();
    assert!(error.to_string().contains("the last 64 tokens"), "{error}");
    assert!(error.to_string().contains("so sequences of up to 65 tokens are too long"), "{error}");
    let decoder = built(65).unwrap();
    for (tokens, is_allowed) in [(64, true), (65, false)] {
        let request = PositionRequest { cached_tokens: 0, new_tokens: tokens, training_rng: None };
        let at = positions(&decoder.encoding, "rope", request);
        assert_eq!(at.is_ok(), is_allowed, "{tokens}");
    }
    // A window counts tokens: their positions may be any.
    let far = "randomized{longest=256,evaluation={type=spread}}(rope)";
    let far = Combination::parse(far).unwrap();
    let decoder = pretrained.decoder(&far, 65, &mut stream(0, Stream::Encoding)).unwrap();
    let at = |new_tokens: usize| {
        let request = PositionRequest { cached_tokens: 32, new_tokens, training_rng: None };
        positions(&decoder.encoding, far.id(), request)
    };
    assert_eq!(at(32).unwrap().cols().last(), Some(&252));
    let said = at(33).unwrap_err().to_string();
    assert!(said.contains("65 tokens, expected at most 64"), "{said}");
}

/// A version number in the name of a folder belongs to the name; the ending of a file does not.
#[test]
fn models_are_named_by_the_whole_name_of_their_folder() {
    let place = tempfile::tempdir().unwrap();
    for name in ["Llama-3.1-8B", "Llama-3.2-1B"] {
        let folder = place.path().join(name);
        fs::create_dir(&folder).unwrap();
        tiny::copy_to(&folder, &tiny::numbered(tiny::WORDS));
        assert_eq!(open(&folder).unwrap().name, name);
    }
}

#[test]
fn files_beside_the_settings_add_ends_of_a_text_and_special_tokens() {
    let folder = tiny::folder();
    tiny::set_version(folder.path(), Some("4.57.1"));
    let tokens = |pretrained: &Pretrained| pretrained.tokenizer().prompt("w5 w9").unwrap();
    let plain = open(folder.path()).unwrap();
    assert_eq!((&plain.end[..], &tokens(&plain)[..]), (&[2][..], &[5, 9][..]));
    let put = |file: &str, value: Value| {
        fs::write(folder.path().join(file), value.to_string()).unwrap();
    };
    put("generation_config.json", json!({ "eos_token_id": [7, 2] }));
    put(
        "tokenizer_config.json",
        json!({ "tokenizer_class": "LlamaTokenizer", "bos_token": "w1", "eos_token": "w2" }),
    );
    let read = open(folder.path()).unwrap();
    assert_eq!((&read.end[..], &tokens(&read)[..]), (&[2, 7][..], &[1, 5, 9][..]));
    assert_eq!(read.tokenizer().special_tokens()["eos_token"], "w2");
    assert_eq!(read.rules.as_deref(), Some("4.57: config.json states 4.57.1"));
    // Version 5 takes the template of tokenizer.json alone, which is none.
    tiny::set_version(folder.path(), Some("5.24.0"));
    let read = open(folder.path()).unwrap();
    assert_eq!(tokens(&read), [5, 9]);
    assert_eq!(read.rules.as_deref(), Some("5: config.json states 5.24.0"));
    put("generation_config.json", json!({ "eos_token_id": 23 }));
    let said = open(folder.path()).unwrap_err().to_string();
    assert!(said.contains("generation_config.json: `eos_token_id` is 23"), "{said}");
}

/// As editors on Windows save files.
#[test]
fn byte_order_marks_change_nothing() {
    let folder = tiny::folder();
    let put = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    put("generation_config.json", "{\"eos_token_id\": [7, 2]}");
    put(
        "tokenizer_config.json",
        "{\"tokenizer_class\": \"LlamaTokenizer\", \"bos_token\": \"w1\"}",
    );
    let plain = open(folder.path()).unwrap();
    for file in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
    {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        put(file, &format!("\u{feff}{text}"));
    }
    let marked = open(folder.path()).unwrap();
    assert_eq!((&marked.model, &marked.rope, &marked.end), (&plain.model, &plain.rope, &plain.end));
    let [before, after] = [&plain, &marked].map(|model| model.tokenizer().json().unwrap());
    assert_eq!(before, after);
    put("config.json", "\u{feff}{");
    let said = open(folder.path()).unwrap_err().to_string();
    assert!(said.contains("config.json is damaged: EOF"), "{said}");
}

/// As in folders of Llama without a `tokenizer_config.json`, or with one that names no class.
#[test]
fn a_llama_without_a_class_of_its_tokenizer_begins_texts_with_its_first_token() {
    let folder = tiny::folder();
    tiny::set_version(folder.path(), None);
    let words = tiny::numbered(tiny::WORDS).replace("w3", "<s>");
    fs::write(folder.path().join("tokenizer.json"), words).unwrap();
    let tokens = || {
        let pretrained = open(folder.path()).unwrap();
        pretrained.tokenizer().prompt("w5 w9").unwrap()
    };
    assert_eq!(tokens(), [3, 5, 9]);
    let config = folder.path().join("tokenizer_config.json");
    fs::write(&config, json!({ "bos_token": "w1" }).to_string()).unwrap();
    assert_eq!(tokens(), [1, 5, 9]);
    fs::write(&config, json!({ "tokenizer_class": "PreTrainedTokenizerFast" }).to_string())
        .unwrap();
    assert_eq!(tokens(), [5, 9]);
}

/// A Qwen2 without one of its biases is refused, and a Llama with one.
#[test]
fn biases_belong_to_qwen2_alone() {
    let folder = tiny::folder_of("tiny-qwen2");
    let path = folder.path().join("model.safetensors");
    let tensors = read_tensors(&path);
    let rest = tensors.iter().filter(|tensor| !tensor.name.ends_with("1.self_attn.k_proj.bias"));
    write_tensors(&path, &rest.cloned().collect::<Vec<_>>());
    let said = open(folder.path()).unwrap_err().to_string();
    assert!(said.contains("model.layers.1.self_attn.k_proj.bias"), "{said}");

    let folder = tiny::folder_of("tiny-qwen2");
    let config = folder.path().join("config.json");
    let text = fs::read_to_string(&config).unwrap().replace("qwen2", "llama");
    fs::write(&config, text.replace("4096", "null")).unwrap();
    let said = open(folder.path()).unwrap_err().to_string();
    assert!(said.contains("self_attn.k_proj.bias"), "{said}");
}

fn assert_close(found: &[Vec<f64>], expected: &[Vec<f64>], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len());
        for (token, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a - b).abs() <= tolerance, "place {place}, token {token}: {a} against {b}");
        }
    }
}

#[test]
fn half_precision_and_shards_load_to_the_same_model() {
    let whole = tiny::folder();
    let reference = open(whole.path()).unwrap();
    let ids = [1, 5, 9, 22, 3];
    let expected = logits(&reference, &reference.own_encoding(), &ids);

    let tensors = read_tensors(&whole.path().join("model.safetensors"));
    let (first, second) = tensors.split_at(tensors.len() / 2);
    let sharded = tiny::folder();
    fs::remove_file(sharded.path().join("model.safetensors")).unwrap();
    write_tensors(&sharded.path().join("model-1.safetensors"), first);
    write_tensors(&sharded.path().join("model-2.safetensors"), second);
    let listed = |tensors: &[Stored], file: &str| {
        tensors.iter().map(|t| (t.name.clone(), json!(file))).collect::<Vec<_>>()
    };
    let map =
        [listed(first, "model-1.safetensors"), listed(second, "model-2.safetensors")].concat();
    let index = sharded.path().join("model.safetensors.index.json");
    let write_index = |map: &[(String, Value)]| {
        let map = map.iter().cloned().collect::<serde_json::Map<_, _>>();
        fs::write(&index, json!({ "weight_map": map }).to_string()).unwrap();
    };
    write_index(&map);
    let found = open(sharded.path()).unwrap();
    let found = logits(&found, &found.own_encoding(), &ids);
    assert_close(&found, &expected, 0.0);

    let said = |path: &Path| open(path).unwrap_err().to_string();
    write_index(&map[1..]);
    assert!(said(sharded.path()).contains("does not list"));
    let strange = [map.clone(), vec![("x".to_owned(), json!("model-2.safetensors"))]].concat();
    write_index(&strange);
    assert!(said(sharded.path()).contains("`x`"));
    let outside = [map, vec![("x".to_owned(), json!("../model.safetensors"))]].concat();
    write_index(&outside);
    assert!(said(sharded.path()).contains("../model.safetensors"));
    fs::write(&index, "{").unwrap();
    assert!(said(sharded.path()).contains("not an index of shards"));

    // bf16 keeps the upper half of an f32.
    let rounded = tiny::folder();
    let half = |stored: &Stored, dtype: &str| {
        let bytes = stored.bytes.chunks(4).flat_map(|b| [b[2], b[3]]).collect();
        Stored { dtype: dtype.to_owned(), bytes, ..stored.clone() }
    };
    let halves = tensors.iter().map(|t| half(t, "BF16")).collect::<Vec<_>>();
    write_tensors(&rounded.path().join("model.safetensors"), &halves);
    let full = tensors.iter().map(|stored| {
        let bytes = stored.bytes.chunks(4).flat_map(|b| [0, 0, b[2], b[3]]).collect();
        Stored { bytes, ..stored.clone() }
    });
    let cut = tiny::folder();
    write_tensors(&cut.path().join("model.safetensors"), &full.collect::<Vec<_>>());
    let [a, b] = [rounded.path(), cut.path()].map(|path| {
        let model = open(path).unwrap();
        logits(&model, &model.own_encoding(), &ids)
    });
    assert_close(&a, &b, 0.0);

    // f16 keeps 10 bits of the fraction and has a smaller exponent; what is below its normal numbers becomes zero.
    let cut = |b: &[u8]| {
        let bits = u32::from_le_bytes(b.try_into().unwrap());
        if ((bits >> 23) & 0xff) < 113 { 0 } else { bits & !0x1fff }
    };
    let narrow = |bits: u32| {
        let rest = ((bits & 0x7fff_ffff) >> 13).saturating_sub(112 << 10);
        u16::try_from(((bits >> 16) & 0x8000) | rest).unwrap()
    };
    let loaded = |dtype: &str, bytes_of: &dyn Fn(u32) -> Vec<u8>| {
        let folder = tiny::folder();
        let changed = tensors.iter().map(|stored| {
            let bytes = stored.bytes.chunks(4).flat_map(|b| bytes_of(cut(b))).collect();
            Stored { dtype: dtype.to_owned(), bytes, ..stored.clone() }
        });
        write_tensors(&folder.path().join("model.safetensors"), &changed.collect::<Vec<_>>());
        let model = open(folder.path()).unwrap();
        logits(&model, &model.own_encoding(), &ids)
    };
    let halves = loaded("F16", &|bits| narrow(bits).to_le_bytes().to_vec());
    let whole = loaded("F32", &|bits| bits.to_le_bytes().to_vec());
    assert_close(&halves, &whole, 0.0);
}

#[derive(Debug, Clone)]
struct Stored {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn read_tensors(path: &Path) -> Vec<Stored> {
    let bytes = fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = file
        .iter()
        .map(|(name, view)| Stored {
            name: name.to_owned(),
            dtype: "F32".to_owned(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        })
        .collect::<Vec<_>>();
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    tensors
}

/// Writes the format without a library, so that invalid files can be written too.
fn write_tensors(path: &Path, tensors: &[Stored]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for Stored { name, dtype, shape, bytes } in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        header.insert(
            name.clone(),
            json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets }),
        );
        data.extend(bytes);
    }
    let header = Value::Object(header).to_string();
    let mut file = fs::File::create(path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.write_all(&data).unwrap();
}

#[test]
fn damaged_weights_are_refused_with_the_tensor_at_fault() {
    let folder = tiny::folder();
    let path = folder.path().join("model.safetensors");
    let tensors = read_tensors(&path);
    let place = |name: &str| tensors.iter().position(|t| t.name == name).unwrap();
    let key = place("model.layers.1.self_attn.k_proj.weight");
    let refused = |change: &dyn Fn(&mut Vec<Stored>)| {
        let mut changed = tensors.clone();
        change(&mut changed);
        write_tensors(&path, &changed);
        open(folder.path()).unwrap_err().to_string()
    };
    let name = &tensors[key].name;
    let said = refused(&|t| {
        t.remove(key);
    });
    assert!(
        said.contains(&format!(
            "has no tensor `{name}`, but the settings require it with shape [8, 16]"
        )),
        "{said}"
    );
    let said = refused(&|t| t[key].shape = vec![16, 8]);
    let expected = format!("tensor `{name}` has shape [16, 8], but the settings require [8, 16]");
    assert!(said.contains(&expected), "{said}");
    let said = refused(&|t| t[key].dtype = "I32".to_owned());
    assert!(said.contains(&format!("tensor `{name}` is I32, expected F32")), "{said}");
    let said = refused(&|t| t[key].bytes[4..8].copy_from_slice(&f32::NAN.to_le_bytes()));
    assert!(
        said.contains(&format!("tensor `{name}` contains values that are not finite")),
        "{said}"
    );
    let said = refused(&|t| t.push(Stored { name: "extra".to_owned(), ..t[key].clone() }));
    assert!(said.contains("has 1 tensors") && said.contains("for example `extra`"), "{said}");
    let said = refused(&|t| t[key].shape = vec![8, 17]);
    assert!(said.contains("is damaged"), "{said}");

    write_tensors(&path, &tensors);
    let whole = fs::read(&path).unwrap();
    for cut in [0, 7, 8, 100, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = open(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is damaged"), "{cut}: {error}");
        assert!(error.to_string().contains("model.safetensors"), "{error}");
    }
    // Buffers of old checkpoints are passed over.
    let mut old = tensors.clone();
    old.push(Stored {
        name: "model.layers.0.self_attn.rotary_emb.inv_freq".to_owned(),
        ..old[key].clone()
    });
    write_tensors(&path, &old);
    open(folder.path()).unwrap();
}

/// As transformers 4.57.1 and 5.24.0 read such a folder.
#[test]
fn a_tied_head_may_be_stored_twice_and_a_differing_one_follows_the_version() {
    let folder = tiny::folder();
    let path = folder.path().join("model.safetensors");
    let config = folder.path().join("config.json");
    let put = |from: &str, to: &str| {
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replace(from, to)).unwrap();
    };
    let (untied, tied) = ("\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true");
    tiny::set_version(folder.path(), None);
    let own = open(folder.path()).unwrap();
    put(untied, tied);
    let said = open(folder.path()).unwrap_err().to_string();
    let expected =
        "`tie_word_embeddings` is true, expected false, because `lm_head.weight` differs";
    assert!(said.contains(expected) && said.contains("set it to false to use the head"), "{said}");
    let values = |model: &Pretrained| logits(model, &model.own_encoding(), &[1, 5, 9]).concat();
    tiny::set_version(folder.path(), Some("5.24.0"));
    let five = open(folder.path()).unwrap();
    assert_eq!((five.model.tied_head, five.notes.len()), (false, 1));
    assert_eq!(values(&five), values(&own));
    assert!(five.notes[0].contains("the head is used, as in transformers 5"), "{:?}", five.notes);
    tiny::set_version(folder.path(), Some("4.57.1"));
    let four = open(folder.path()).unwrap();
    assert_eq!((four.model.tied_head, four.notes.len()), (true, 1));
    assert_ne!(values(&four), values(&own));
    tiny::set_version(folder.path(), None);
    let mut tensors = read_tensors(&path);
    let embedding = tensors.iter().find(|t| t.name == "model.embed_tokens.weight").unwrap().clone();
    for tensor in &mut tensors {
        if tensor.name == "lm_head.weight" {
            tensor.bytes.clone_from(&embedding.bytes);
        }
    }
    write_tensors(&path, &tensors);
    let equal = open(folder.path()).unwrap();
    assert!(equal.model.tied_head && equal.notes.is_empty());
    assert_eq!(values(&equal), values(&four), "version 4 uses the embedding");
    // Without a head, the message says what may be wrong.
    tensors.retain(|tensor| tensor.name != "lm_head.weight");
    write_tensors(&path, &tensors);
    assert!(open(folder.path()).unwrap().model.tied_head);
    put(tied, untied);
    let said = open(folder.path()).unwrap_err().to_string();
    let expected = "set `tie_word_embeddings` to true in config.json if the embedding is the head";
    assert!(said.contains("no tensor `lm_head.weight`") && said.contains(expected), "{said}");
}

#[test]
fn tokenizers_that_do_not_fit_are_refused() {
    let folder = tiny::folder();
    let path = folder.path().join("tokenizer.json");
    let said = |text: &str| {
        fs::write(&path, text).unwrap();
        open(folder.path()).unwrap_err().to_string()
    };
    assert!(said(&tiny::numbered(24)).contains("has token 23, expected less than 23"));
    // A token before each text that the model does not have.
    let mut foreign: Value = serde_json::from_str(&tiny::numbered(23)).unwrap();
    foreign["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [
            { "SpecialToken": { "id": "<s>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } },
        ],
        "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
        "special_tokens": { "<s>": { "id": "<s>", "ids": [5000], "tokens": ["<s>"] } },
    });
    assert!(said(&foreign.to_string()).contains("has token 5000, expected less than 23"));
    let error = said("{}");
    assert!(error.contains("not a known kind of tokenizer.json"), "{error}");
    let unknown = json!({ "version": "1.0", "added_tokens": [], "model": { "type": "Guess" } });
    assert!(said(&unknown.to_string()).contains("tokenizer.json"));
    fs::remove_file(&path).unwrap();
    assert!(open(folder.path()).unwrap_err().to_string().contains("tokenizer.json"));
    let said = Pretrained::open("smollm3", &Device::flex()).unwrap_err().to_string();
    assert!(said.contains("`smollm3` is not a model") && said.contains("smollm2"), "{said}");
}
