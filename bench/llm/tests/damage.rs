//! Files of pretrained models with random damage: an error or a model, never a panic, and no memory beyond their size.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]
#![allow(unsafe_code, reason = "an allocator that counts; it is the test's own")]

#[path = "tiny/gguf.rs"]
mod gguf;
mod tiny;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::quantized::gguf_file::Value as Gguf;
use candle_core::quantized::{GgmlDType, QTensor};
use pe_zoo::rotary::Scaling;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tiny::open;

struct Counting;

/// The largest piece of memory that was asked for.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands everything on to the system's allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Far above what the small files need, far below what a wrong length could ask for.
const MOST_BYTES: usize = 64 << 20;

/// One of: a bit turned, bytes made large, a piece cut out, the end cut off, noise put in.
fn damage(bytes: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    // Half of all damage goes to the beginning, where lengths and settings stand.
    let end = if rng.random::<bool>() { bytes.len() } else { bytes.len().min(2000) };
    let place = rng.random_range(0..end);
    match rng.random_range(0..5_u8) {
        0 => bytes[place] ^= 1 << rng.random_range(0..8_u8),
        1 => {
            let length = rng.random_range(1..=8).min(bytes.len() - place);
            bytes[place..place + length].fill(0xff);
        }
        2 => {
            let length = rng.random_range(1..=40).min(bytes.len() - place);
            bytes.drain(place..place + length);
        }
        3 => bytes.truncate(place),
        _ => bytes.insert(place, rng.random()),
    }
    bytes
}

/// Damages one file again and again; gives how many were refused.
fn refused(path: &Path, model: &Path, times: usize, seed: u64) -> usize {
    let whole = fs::read(path).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut refused = 0;
    for round in 0..times {
        fs::write(path, damage(&whole, &mut rng)).unwrap();
        LARGEST.store(0, Ordering::SeqCst);
        if let Err(error) = open(model) {
            refused += 1;
            assert!(error.to_string().len() < 2000, "round {round}: {error}");
        }
        let largest = LARGEST.load(Ordering::SeqCst);
        assert!(largest < MOST_BYTES, "round {round} asked for {largest} bytes");
    }
    fs::write(path, whole).unwrap();
    open(model).unwrap();
    refused
}

#[test]
fn damaged_folders_give_errors_and_take_no_memory() {
    let place = tempfile::tempdir().unwrap();
    tiny::copy_to(place.path(), &tiny::numbered(tiny::WORDS));
    for (seed, file) in (1..).zip(["model.safetensors", "config.json", "tokenizer.json"]) {
        let refused = refused(&place.path().join(file), place.path(), 300, seed);
        // Many changes are of a value that may be anything; most are of what holds the file together.
        assert!((60..300).contains(&refused), "{file}: {refused} of 300");
    }
}

/// As in a cache that was cleared.
#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_no_absent_file() {
    let place = tempfile::tempdir().unwrap();
    tiny::copy_to(place.path(), &tiny::numbered(tiny::WORDS));
    open(place.path()).unwrap();
    for file in ["generation_config.json", "tokenizer_config.json"] {
        let path = place.path().join(file);
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        let said = open(place.path()).unwrap_err().to_string();
        assert!(said.contains(file), "{said}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_gguf_file_is_the_model_that_its_folder_is() {
    let place = tempfile::tempdir().unwrap();
    tiny::copy_to(place.path(), &tiny::numbered(tiny::WORDS));
    let path = place.path().join("tiny.gguf");
    fs::write(&path, gguf::file(&|_, _| {})).unwrap();
    let [from_folder, from_file] = [place.path(), &path].map(|path| open(path).unwrap());
    assert_eq!(from_file.rope, from_folder.rope);
    // The file has the epsilon in f32.
    let off = from_file.model.norm_epsilon.unwrap() - from_folder.model.norm_epsilon.unwrap();
    assert!(off.abs() < 1e-10);
    assert_eq!((from_file.context, from_file.vocabulary), (64, 23));
    let [a, b] = [&from_folder, &from_file]
        .map(|model| tiny::logits(model, &model.own_encoding(), &[1, 5, 9, 22, 3]).concat());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
    let tokens = from_file.tokenizer();
    let ids = tokens.prompt("badcab").unwrap();
    assert_eq!(ids, [1, 0, 3, 2, 0, 1]);
    assert_eq!(tokens.decode(&ids).unwrap(), "badcab");
    let with_end = gguf::file(&|metadata, _| {
        metadata.push(("tokenizer.ggml.add_eos_token".to_owned(), Gguf::Bool(true)));
    });
    fs::write(&path, with_end).unwrap();
    let with_end = open(&path).unwrap();
    let tokens = with_end.tokenizer();
    assert_eq!(tokens.around().after, [2], "the end token is `c`, number 2");
    assert_eq!(tokens.prompt("ba").unwrap(), [1, 0], "more text is to follow a prompt");
    let wrong = gguf::file(&|metadata, _| {
        metadata.retain(|(name, _)| name != "tokenizer.ggml.token_type");
        metadata.push(("tokenizer.ggml.token_type".to_owned(), Gguf::U32(1)));
    });
    fs::write(&path, wrong).unwrap();
    let said = open(&path).unwrap_err().to_string();
    assert!(said.contains("tokenizer.ggml.token_type") && said.contains("a list"), "{said}");
}

/// As llama.cpp reads the settings of the rotation.
#[test]
fn the_scaling_of_a_gguf_file_is_that_of_llama_cpp() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let read = |given: &[(&str, Gguf)]| {
        let bytes = gguf::file(&|metadata, _| {
            metadata.retain(|(name, _)| !name.starts_with("llama.rope.scal"));
            let given =
                given.iter().map(|(key, value)| (format!("llama.rope.{key}"), value.clone()));
            metadata.extend(given);
        });
        fs::write(&path, bytes).unwrap();
        open(&path).map(|model| model.rope.unwrap().scaling)
    };
    let (text, number) = (|text: &str| Gguf::String(text.to_owned()), Gguf::F32);
    let linear = Scaling::Linear { factor: 4.0 };
    assert_eq!(read(&[]).unwrap(), Scaling::None);
    assert_eq!(read(&[("scaling.factor", number(4.0))]).unwrap(), linear);
    assert_eq!(read(&[("scale_linear", number(4.0))]).unwrap(), linear);
    assert_eq!(read(&[("scaling.factor", number(0.0))]).unwrap(), Scaling::None);
    let none = [("scaling.type", text("none")), ("scaling.factor", number(4.0))];
    assert_eq!(read(&none).unwrap(), Scaling::None);
    let yarn = |attention: f32| {
        let given = [
            ("scaling.type", text("yarn")),
            ("scaling.factor", number(4.0)),
            ("scaling.attn_factor", number(attention)),
        ];
        let Scaling::Yarn(yarn) = read(&given).unwrap() else { panic!("not YaRN") };
        yarn.attention_factor.unwrap()
    };
    let own = 0.1 * 4.0_f64.ln() + 1.0;
    assert!((yarn(1.0) - own).abs() < 1e-9 && (yarn(0.5) - 0.5 * own).abs() < 1e-9);
    let linear = [("scaling.factor", number(4.0)), ("scaling.attn_factor", number(0.5))];
    let said = read(&linear).unwrap_err().to_string();
    assert!(said.contains("attn_factor` is 0.5, expected 1"), "{said}");
    let extrapolated = |share: f32| {
        read(&[
            ("scaling.type", text("yarn")),
            ("scaling.factor", number(4.0)),
            ("scaling.yarn_ext_factor", number(share)),
        ])
    };
    assert!(extrapolated(-1.0).is_ok() && extrapolated(1.0).is_ok());
    let said = extrapolated(0.5).unwrap_err().to_string();
    assert!(said.contains("yarn_ext_factor` is 0.5, expected 1 or a negative"), "{said}");
}

/// As llama.cpp takes the divisors of Llama 3.1.
#[test]
fn divisors_of_frequencies_are_a_scaling_at_all_lengths() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let bytes = gguf::file(&|metadata, tensors| {
        metadata.retain(|(name, _)| !name.starts_with("llama.rope.scal"));
        tensors.push(("rope_freqs.weight".to_owned(), tensor_of_freqs()));
    });
    fs::write(&path, bytes).unwrap();
    let model = open(&path).unwrap();
    let scaling = &model.rope.as_ref().unwrap().scaling;
    let spectrum = |scaling: &Scaling, len| scaling.spectrum(500.0, 4, 64, len);
    let plain = spectrum(&Scaling::None, 1).frequencies;
    for len in [1, 64, 256] {
        let divided = spectrum(scaling, len);
        assert_eq!(divided.frequencies, [plain[0], plain[1] / 2.0]);
        assert!((divided.attention_factor - 1.0).abs() < 1e-12);
    }
}

/// Tokens of the `tokenizer.json` of Llama 3, whose words are split by its regular expression.
#[test]
fn texts_of_a_gguf_file_of_llama_3_begin_with_a_token_and_are_split_as_its_own() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let of = |begin: Option<bool>| {
        let bytes = gguf::file(&|metadata, _| {
            let own = ["tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.merges"];
            metadata.retain(|(name, _)| !own.contains(&name.as_str()));
            let text = |text: &str| Gguf::String(text.to_owned());
            let tokens = ["<s>", "a", "b", "1", "ab", "11", "111", "Ġ", "Ġab", "aba"];
            let others = (tokens.len()..23).map(|id| text(&format!("<{id}>")));
            let tokens = tokens.iter().map(|token| text(token)).chain(others).collect();
            let merges = ["a b", "Ġ ab", "1 1", "11 1"].map(text).to_vec();
            metadata.push(("tokenizer.ggml.pre".to_owned(), text("llama-bpe")));
            metadata.push(("tokenizer.ggml.tokens".to_owned(), Gguf::Array(tokens)));
            metadata.push(("tokenizer.ggml.merges".to_owned(), Gguf::Array(merges)));
            metadata.push(("tokenizer.ggml.bos_token_id".to_owned(), Gguf::U32(0)));
            if let Some(begin) = begin {
                metadata.push(("tokenizer.ggml.add_bos_token".to_owned(), Gguf::Bool(begin)));
            }
        });
        fs::write(&path, bytes).unwrap();
        open(&path).unwrap()
    };
    let model = of(None);
    // Numbers have up to three digits, and a word that is a token needs no merges.
    assert_eq!(model.tokenizer().prompt("ab ab1111aba").unwrap(), [0, 4, 8, 6, 3, 9]);
    assert_eq!(of(Some(false)).tokenizer().prompt("ab").unwrap(), [4]);
}

#[test]
fn foreign_gguf_files_are_refused_with_the_setting_at_fault() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let set = |key: &str, value: Gguf| {
        let bytes = gguf::file(&|metadata, _| {
            metadata.retain(|(name, _)| name != key);
            metadata.push((key.to_owned(), value.clone()));
        });
        fs::write(&path, bytes).unwrap();
        open(&path).unwrap_err().to_string()
    };
    for (key, value) in [
        ("general.architecture", Gguf::String("gpt2".to_owned())),
        ("general.alignment", Gguf::U32(0)),
        ("llama.block_count", Gguf::String("two".to_owned())),
        ("llama.attention.head_count_kv", Gguf::Array(vec![Gguf::U32(2)])),
        ("llama.expert_count", Gguf::U32(8)),
        ("llama.rope.dimension_count", Gguf::U32(2)),
        ("llama.rope.scaling.type", Gguf::String("spiral".to_owned())),
        ("llama.block_count", Gguf::U32(0)),
        ("llama.embedding_length", Gguf::U32(0)),
        ("llama.attention.head_count", Gguf::U32(3)),
        ("llama.attention.head_count_kv", Gguf::U32(0)),
        ("llama.feed_forward_length", Gguf::U32(0)),
        ("llama.context_length", Gguf::U32(0)),
        ("llama.attention.layer_norm_rms_epsilon", Gguf::F32(0.0)),
        ("llama.rope.freq_base", Gguf::F32(0.5)),
        ("llama.rope.scaling.factor", Gguf::F32(0.5)),
        ("tokenizer.ggml.eos_token_id", Gguf::U32(23)),
    ] {
        let said = set(key, value);
        assert!(said.contains(&format!("`{key}`")) && said.contains("tiny.gguf"), "{key}: {said}");
    }
    // The reader of the library takes this for the same key.
    let said = set("general.alignment\0", Gguf::U32(0));
    assert!(said.contains("`general.alignment` is 0, expected a power of two"), "{said}");
    let said = set("tokenizer.ggml.model", Gguf::String("llama".to_owned()));
    assert!(said.contains("\"llama\"") && said.contains("tokenizer.json"), "{said}");
    let said = set("tokenizer.ggml.pre", Gguf::String("qwen2".to_owned()));
    assert!(said.contains("\"qwen2\""), "{said}");
    assert!(set("llama.feed_forward_length", Gguf::U32(32)).contains("blk.0.ffn_gate.weight"));
    assert!(set("llama.vocab_size", Gguf::U32(32)).contains("token_embd.weight"));
    assert!(set("llama.block_count", Gguf::U32(3)).contains("blk.2.attn_norm.weight"));
    assert!(set("llama.block_count", Gguf::U32(1)).contains("blk.1."));
    let bytes = gguf::file(&|_, tensors| {
        let extra = tensor_of_freqs();
        tensors.push(("rope_freqs.weight".to_owned(), extra));
    });
    fs::write(&path, bytes).unwrap();
    assert!(open(&path).unwrap_err().to_string().contains("rope_freqs.weight"));
    let whole = gguf::file(&|_, _| {});
    for cut in [0, 3, 20, 1000, whole.len() - 200] {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = open(&path).unwrap_err();
        assert!(error.to_string().contains("is damaged"), "{cut}: {error}");
    }
}

fn tensor_of_freqs() -> QTensor {
    let device = candle_core::Device::Cpu;
    let tensor = candle_core::Tensor::from_vec(vec![1.0_f32, 2.0], 2, &device).unwrap();
    QTensor::quantize(&tensor, GgmlDType::F32).unwrap()
}

#[test]
fn damaged_gguf_files_give_errors_and_take_no_memory() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    fs::write(&path, gguf::file(&|_, _| {})).unwrap();
    let refused = refused(&path, &path, 600, 7);
    assert!((150..600).contains(&refused), "{refused} of 600");
}
