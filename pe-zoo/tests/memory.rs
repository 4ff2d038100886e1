//! The fused engine's memory grows with the length, not with its square.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]
#![allow(unsafe_code, reason = "an allocator that counts; it is the test's own")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::{Device, Tensor};
use pe_zoo::attention::{AttentionKind, Engine, LayerInput, Weights, layer};
use pe_zoo::ops::MatmulPrecision;
use pe_zoo::score::Term;
use pe_zoo::testkit::problem::{Problem, tensor3, tensor4};
use pe_zoo::{Combination, Dims, Positions, Registry, ScoreMod, TokenState};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

mod common;

use common::{Cable, KerplePower};

/// An allocator that counts the bytes in use.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are forwarded to the system's allocator; only counters are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        PEAK.fetch_max(now, Ordering::SeqCst);
        // SAFETY: the caller's guarantees are those that the system's allocator requires.
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
const HEAD_DIM: usize = 16;

/// Variants tested in addition to the defaults of every encoding, with modifiers of other forms.
const VARIANTS: [&str; 9] = [
    "grape{variant={type=additive}}",
    "grape{variant={type=contextual}}",
    "grape{variant={type=multiplicative}}",
    "grape{variant={type=additive,gate=both}}",
    "dape(fire)",
    "dape{mixer=convolution}",
    "dape(none)+pope",
    "path{forget={type=gate}}",
    "cope+path",
];

/// Every encoding, by default as far as that serves these lengths, and the variants.
fn all() -> Vec<&'static str> {
    let ids = Registry::builtin().cards().map(|card| card.id).collect::<Vec<_>>();
    let ids = ids.into_iter().map(|id| match id {
        "randomized" => "randomized{longest=8192}",
        id => id,
    });
    // An encoding that needs several layers is not measured.
    let fits = |text: &&str| Combination::parse(text).unwrap().check(&dims(LONG)).is_ok();
    ids.filter(fits).chain(VARIANTS).collect()
}

/// Bytes in use at the peak of `work`, beyond those in use before.
fn peak_of<T>(work: impl FnOnce() -> T) -> usize {
    let start = NOW.load(Ordering::SeqCst);
    PEAK.store(start, Ordering::SeqCst);
    let _kept = work();
    PEAK.load(Ordering::SeqCst) - start
}

/// Sizes of one layer.
fn dims(tokens: usize) -> Dims {
    Dims {
        layers: 1,
        width: HEADS * HEAD_DIM,
        heads: HEADS,
        head_dim: HEAD_DIM,
        train_len: tokens,
        max_len: tokens,
    }
}

/// Bytes that one layer's forward and backward pass needs beyond its inputs.
fn of_encoding(expression: &str, tokens: usize, engine: Engine) -> usize {
    let dims = dims(tokens);
    let device = Device::flex().autodiff();
    let encoding = Combination::parse(expression)
        .unwrap()
        .init(&dims, &mut ChaCha8Rng::seed_from_u64(1), &device)
        .unwrap();
    let problem = Problem::random(1, tokens, &dims, 1);
    let [q, k, v] =
        [&problem.q, &problem.k, &problem.v].map(|x| tensor4(x, &device).require_grad());
    let (x, at) = (tensor3(&problem.x, &device), Positions::contiguous(0, tokens));
    let carried = TokenState::default();
    let (attention_kind, precision) = (AttentionKind::Soft, MatmulPrecision::F32);
    let input = LayerInput {
        layer: 0,
        at: &at,
        x: &x,
        q,
        k,
        v,
        carried: &carried,
        engine,
        attention_kind,
        precision,
    };
    peak_of(|| layer(&encoding, input, None, Weights::Drop).output.sum().backward())
}

/// As [`of_encoding`], for a modifier alone.
fn of_modifier(modifier: &ScoreMod, tokens: usize) -> usize {
    let device = Device::flex().autodiff();
    let plane = || Tensor::<4>::ones([1, HEADS, tokens, HEAD_DIM], &device).require_grad();
    let (q, k, v) = (plane(), plane(), plane());
    let at = Positions::contiguous(0, tokens);
    let attend =
        || Engine::Fused.attend(&q, &k, &v, v.clone(), modifier, &at, 0.25, Weights::Drop).output;
    peak_of(|| attend().sum().backward())
}

/// The two terms of `common`.
fn terms(tokens: usize) -> [(&'static str, ScoreMod); 2] {
    let device = Device::flex().autodiff();
    let params = Tensor::<2>::ones([HEADS, 3], &device).require_grad();
    let state = Tensor::<4>::ones([1, HEADS, tokens, 1], &device).require_grad();
    [
        ("kerple-power", ScoreMod::Term(Term::new(KerplePower).head_params(params))),
        ("cable", ScoreMod::Term(Term::new(Cable).token_state(state.cumsum(2)))),
    ]
}

const SHORT: usize = 1024;
const LONG: usize = 4096;

/// Why the memory at two lengths is not in proportion to the length, if so.
fn complaint(at_short: usize, at_long: usize) -> Option<String> {
    let square = HEADS * LONG * LONG * size_of::<f32>();
    if at_long >= square {
        return Some(format!("{at_long} bytes, one attention matrix is {square}"));
    }
    // Linear growth gives a factor of 4, quadratic growth 16. Deviations from 4 come from threads that
    // hold their buffers at the same time.
    (at_long >= 8 * at_short)
        .then(|| format!("{at_short} bytes at {SHORT} tokens, {at_long} at {LONG}"))
}

#[test]
fn no_tensor_of_length_squared_exists_in_the_fused_engine() {
    // Measured one after the other, because the counter is shared by the process.
    let fused = |expression: &str, tokens| of_encoding(expression, tokens, Engine::Fused);
    for expression in all() {
        let found = complaint(fused(expression, SHORT), fused(expression, LONG));
        assert_eq!(found, None, "{expression}");
    }
    for ((id, short), (_, long)) in terms(SHORT).iter().zip(&terms(LONG)) {
        let found = complaint(of_modifier(short, SHORT), of_modifier(long, LONG));
        assert_eq!(found, None, "{id}");
    }
    let square = HEADS * SHORT * SHORT * size_of::<f32>();
    // Checks the measurement itself: the reference engine does allocate such tensors.
    assert!(of_encoding("nope", SHORT, Engine::Reference) > square);
}
