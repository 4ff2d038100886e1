//! Every parser of user input against mutated inputs: ten thousand and more for each, none a panic, and what
//! is read survives being written and read again. The mutations have a fixed seed; `fuzz/` has targets for
//! libFuzzer on the same properties, for searches without an end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests panic on failure")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

#[path = "../../fuzz/corpus.rs"]
mod corpus;
#[path = "../../fuzz/mutate.rs"]
mod mutate;
#[path = "../../fuzz/properties.rs"]
mod properties;

/// Mutated inputs for each parser.
const INPUTS: usize = 10_000;

/// Tries the corpus, all of which must be valid, and then mutations of it, of which at least the share
/// `valid` must be: a mutator that makes nothing but garbage tests nothing but the first line of a parser.
fn attack(corpus: &[Vec<u8>], valid: f64, property: fn(&[u8]) -> bool) {
    for entry in corpus {
        assert!(property(entry), "not valid: {}", String::from_utf8_lossy(entry));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(20_261_121);
    let mut read = 0;
    for number in 0..INPUTS {
        let input = mutate::mutate(corpus, &mut rng);
        let Ok(was_read) = catch_unwind(AssertUnwindSafe(|| property(&input))) else {
            // The panic's own message is on the screen already.
            panic!("input {number}:\n{}", String::from_utf8_lossy(&input))
        };
        read += usize::from(was_read);
    }
    let share = read as f64 / INPUTS as f64;
    assert!(share >= valid, "only {share} of the mutated inputs were valid");
}

#[test]
fn suites() {
    attack(&corpus::suites(), 0.05, properties::suite);
}

#[test]
fn records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let corpus = corpus::records(&root);
    assert!(corpus.len() >= 6, "{}", corpus.len());
    attack(&corpus, 0.05, properties::record);
}

#[test]
fn expressions() {
    attack(&corpus::expressions(), 0.05, properties::expression);
}

#[test]
fn tasks() {
    attack(&corpus::tasks(), 0.05, properties::task);
}

#[test]
fn cost_configurations() {
    attack(&corpus::cost_configs(), 0.05, properties::cost_config);
}

#[test]
fn what_the_command_line_reads() {
    attack(&corpus::command_lines(), 0.05, properties::command_line);
}

#[test]
fn published_numbers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let corpus = corpus::published(&root);
    assert_eq!(corpus.len(), properties::PUBLISHED.len());
    attack(&corpus, 0.05, properties::published);
}
