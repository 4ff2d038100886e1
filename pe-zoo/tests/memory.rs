//! The fused engine's memory grows with the length, not with its square.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]
#![allow(unsafe_code, reason = "an allocator that counts; it is the test's own")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::Device;
use pe_zoo::attention::{AttentionKind, Engine, LayerInput, Weights, layer};
use pe_zoo::ops::MatmulPrecision;
use pe_zoo::testkit::problem::{Problem, tensor3, tensor4};
use pe_zoo::{Combination, Dims, EncodingConfig, Positions, TokenState};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands everything on to the system's allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        PEAK.fetch_max(now, Ordering::SeqCst);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HEADS: usize = 2;

/// Encodings of every kind of modifier, with options in JSON, and every encoding whose modifier sees
/// pairs of tokens.
const ENCODINGS: [(&str, &str); 15] = [
    ("nope", "{}"),
    ("rope", "{}"),
    ("alibi", "{}"),
    ("cope", "{}"),
    ("relative", "{}"),
    ("relative-capped", "{}"),
    ("fire", "{}"),
    ("dape", "{}"),
    ("dape", r#"{ "mixer": "convolution" }"#),
    ("dape(fire)", "{}"),
    ("dape(none)+pope", "{}"),
    ("path", r#"{ "forget": { "type": "gate" } }"#),
    ("cope+path", "{}"),
    ("grape", "{}"),
    ("grape", r#"{ "variant": { "type": "additive", "gate": "both" } }"#),
];

/// Bytes that one layer's forward and backward pass needs beyond its inputs.
fn peak_bytes((id, options): (&str, &str), tokens: usize, engine: Engine) -> usize {
    let dims = Dims { layers: 1, heads: HEADS, head_dim: 16, train_len: tokens, max_len: tokens };
    let device = Device::flex().autodiff();
    let encoding = Combination::with_options(id, serde_json::from_str(options).unwrap())
        .unwrap()
        .init(&dims, &mut ChaCha8Rng::seed_from_u64(1), &device)
        .unwrap();
    let problem = Problem::random(1, tokens, &dims, 1);
    let [q, k, v] =
        [&problem.q, &problem.k, &problem.v].map(|x| tensor4(x, &device).require_grad());
    let (x, at) = (tensor3(&problem.x, &device), Positions::contiguous(0, tokens));
    let carried = TokenState::default();
    let start = NOW.load(Ordering::SeqCst);
    PEAK.store(start, Ordering::SeqCst);
    let (sharpness, factors) = (AttentionKind::Soft, MatmulPrecision::F32);
    let input = LayerInput {
        layer: 0,
        at: &at,
        x: &x,
        q,
        k,
        v,
        carried: &carried,
        engine,
        sharpness,
        factors,
    };
    let _grads = layer(&encoding, input, None, Weights::Drop).output.sum().backward();
    PEAK.load(Ordering::SeqCst) - start
}

#[test]
fn no_tensor_of_length_squared_exists_in_the_fused_engine() {
    // One after the other: the counter is the process's.
    for encoding in ENCODINGS {
        let id = encoding.0;
        let (short, long) = (1024, 4096);
        let square = HEADS * long * long * size_of::<f32>();
        let [at_short, at_long] = [short, long].map(|len| peak_bytes(encoding, len, Engine::Fused));
        assert!(at_long < square, "{id}: {at_long} bytes, one attention matrix is {square}");
        assert!(
            // Four times would be in proportion, sixteen times the square; threads that happen to
            // hold their buffers at the same time make the difference from four.
            at_long < 8 * at_short,
            "{id}: {at_short} bytes at {short} tokens, {at_long} at {long}"
        );
    }
    // The measure itself can fail: the reference engine does hold such tensors.
    let square = HEADS * 2048 * 2048 * size_of::<f32>();
    assert!(peak_bytes(("nope", "{}"), 2048, Engine::Reference) > square);
}
