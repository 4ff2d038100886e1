//! Attention under each `ScoreMod`, forward and backward, on both engines.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

mod place;

use std::hint::black_box;

use burn::tensor::{Device, Tensor};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pe_zoo::attention::{Engine, Weights};
use pe_zoo::init;
use pe_zoo::score::{
    Beyond, Contextual, ContextualFunction, Current, GateSource, HiddenActivation, LogitScaling,
    Perceptron, Remainder, StickBreakingRule,
};
use pe_zoo::{Positions, ScoreMod};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const BATCH: usize = 4;
const HEADS: usize = 4;
const LEN: usize = 512;
const HEAD_DIM: usize = 64;

fn tensor<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    init::normal(1.0, shape, &mut ChaCha8Rng::seed_from_u64(seed), device).val()
}

fn contextual(function: ContextualFunction) -> ScoreMod {
    ScoreMod::Contextual(Contextual {
        gates: GateSource::QueryKey,
        max_position: 63.0,
        function,
        convention: LogitScaling::Listing,
    })
}

/// Every kind of modifier, at the sizes of this benchmark.
fn modifiers(device: &Device) -> Vec<(&'static str, ScoreMod)> {
    let vector = |len, seed| tensor([len], seed, device);
    let matrix = |rows, columns, seed| tensor([rows, columns], seed, device);
    let slope = ScoreMod::Slope(vector(HEADS, 1));
    let decay = tensor([BATCH, HEADS, LEN], 2, device).abs().neg().cumsum(2);
    let table = contextual(ContextualFunction::Table(matrix(HEAD_DIM, 64, 3)));
    let perceptron = Perceptron {
        w1: vector(64, 4),
        b1: vector(64, 5),
        w2: matrix(HEAD_DIM, 64, 6),
        b2: vector(HEAD_DIM, 7),
        activation: HiddenActivation::Relu,
    };
    let sticks = StickBreakingRule { current: Current::Excluded, remainder: Remainder::Dropped };
    vec![
        ("none", ScoreMod::None),
        ("slope", slope.clone()),
        ("distance", ScoreMod::Distance { table: matrix(HEADS, 128, 8), beyond: Beyond::Last }),
        (
            "query-distance",
            ScoreMod::QueryDistance { table: matrix(HEAD_DIM, LEN, 9), beyond: Beyond::Zero },
        ),
        ("decay", ScoreMod::Decay { cumulative: decay }),
        ("contextual-table", table.clone()),
        ("contextual-slope", contextual(ContextualFunction::Slope(vector(HEADS, 10)))),
        ("contextual-perceptron", contextual(ContextualFunction::Mlp(perceptron))),
        ("stick-breaking", ScoreMod::StickBreaking(sticks)),
        ("dense", ScoreMod::Dense(tensor([1, HEADS, LEN, LEN], 11, device))),
        ("sum", ScoreMod::Sum(vec![slope, table])),
    ]
}

fn forward_backward(criterion: &mut Criterion) {
    let device = place::device().autodiff();
    let plane = [BATCH, HEADS, LEN, HEAD_DIM];
    let [q, k, v] = [21, 22, 23].map(|seed| tensor(plane, seed, &device).require_grad());
    let at = Positions::contiguous(0, LEN);
    let scale = 1.0 / (HEAD_DIM as f64).sqrt();
    for (name, modifier) in modifiers(&device) {
        let mut group = criterion.benchmark_group(format!("score-mod-{name}"));
        group.sample_size(10);
        for engine in [Engine::Fused, Engine::Reference] {
            group.bench_function(BenchmarkId::from_parameter(engine.id()), |bencher| {
                bencher.iter(|| {
                    let values = v.clone();
                    let attended =
                        engine.attend(&q, &k, &v, values, &modifier, &at, scale, Weights::Drop);
                    black_box(attended.output.sum().backward())
                });
            });
        }
    }
}

criterion_group!(benches, forward_backward);
criterion_main!(benches);
