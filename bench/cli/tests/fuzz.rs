//! Every parser of user input and of downloaded files against mutated inputs: none panics, and a value that was read
//! survives being written and read again. The mutations have a fixed seed; `fuzz/` has a target for libFuzzer on the
//! same properties.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests panic on failure")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

#[path = "../../../fuzz/corpus.rs"]
mod corpus;
#[path = "../../llm/tests/tiny/gguf.rs"]
mod gguf;
#[path = "../../../fuzz/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/properties.rs"]
mod properties;

/// Mutated inputs for each parser; the environment variable `PE_ZOO_FUZZ_INPUTS` sets another number.
fn inputs() -> usize {
    match std::env::var("PE_ZOO_FUZZ_INPUTS") {
        Ok(text) => text.parse().expect("PE_ZOO_FUZZ_INPUTS is a number"),
        Err(_) => 10_000,
    }
}

/// Tries the corpus, all of which must be valid, and then mutations of it, of which at least a twentieth must be: a
/// mutator that makes only garbage would test nothing but the first line of a parser.
fn attack(name: &str, corpus: &[Vec<u8>]) {
    let (_, property) = properties::ALL.iter().find(|(known, _)| *known == name).unwrap();
    for entry in corpus {
        assert!(property(entry), "not valid: {}", String::from_utf8_lossy(entry));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(20_261_121);
    let start = std::time::Instant::now();
    let mut read = 0;
    for number in 0..inputs() {
        let input = mutate::mutate(corpus, &mut rng);
        let Ok(was_read) = catch_unwind(AssertUnwindSafe(|| property(&input))) else {
            // The panic has printed its message.
            let file = std::env::temp_dir().join(format!("pe-zoo-fuzz-{name}"));
            std::fs::write(&file, &input).unwrap();
            panic!(
                "input {number}, kept as {}:\n{}",
                file.display(),
                String::from_utf8_lossy(&input)
            )
        };
        read += usize::from(was_read);
    }
    let share = read as f64 / inputs() as f64;
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{name}: {} inputs, {:.1}% valid, {seconds:.1} s", inputs(), 100.0 * share);
    assert!(share >= 0.05, "only {share} of the mutated inputs were valid");
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn suites() {
    attack("suite", &corpus::suites());
}

#[test]
fn records() {
    let corpus = corpus::records(root());
    assert!(corpus.len() >= 6, "{}", corpus.len());
    attack("record", &corpus);
}

#[test]
fn expressions() {
    attack("expression", &corpus::expressions());
}

#[test]
fn tasks() {
    attack("task", &corpus::tasks());
}

#[test]
fn cost_configurations() {
    attack("cost-config", &corpus::cost_configs());
}

#[test]
fn command_lines() {
    attack("command-line", &corpus::command_lines());
}

#[test]
fn published_numbers() {
    let corpus = corpus::published(root());
    assert_eq!(corpus.len(), properties::PUBLISHED.len());
    attack("published", &corpus);
}

#[test]
fn tokenizers() {
    attack("tokenizer", &corpus::tokenizers());
}

#[test]
fn gguf_files() {
    attack("gguf", &[gguf::file(&|_, _| {})]);
}

#[test]
fn files_of_weights() {
    attack(
        "weights",
        &[std::fs::read(properties::files::tiny_llama().join("model.safetensors")).unwrap()],
    );
}

#[test]
fn settings_of_models() {
    attack("model-config", &corpus::model_configs());
}

#[test]
fn parquet_files() {
    attack("parquet", &corpus::parquet());
}

#[test]
fn lines_of_json() {
    attack("json-lines", &corpus::json_lines());
}

#[test]
fn questions() {
    attack("questions", &corpus::questions());
}

#[test]
fn checkpoints() {
    attack("checkpoint", &corpus::checkpoints());
}

#[test]
fn kept_weights() {
    attack("named-tensors", &corpus::named_tensors());
}
