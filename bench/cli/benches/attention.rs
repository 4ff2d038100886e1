//! Attention under each encoding, forward alone and with its backward pass, at three lengths; at one of them on the
//! reference engine too.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

mod place;

use std::hint::black_box;

use burn::tensor::{Device, Tensor};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pe_zoo::attention::{Engine, LayerInput, Weights, layer};
use pe_zoo::card::Card;
use pe_zoo::testkit::problem::{Problem, tensor3, tensor4};
use pe_zoo::{AnyEncoding, Dims, Positions, Registry, TokenState};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const BATCH: usize = 4;
const LENS: [usize; 3] = [128, 512, 1024];

fn dims(len: usize) -> Dims {
    Dims { layers: 1, width: 256, heads: 4, head_dim: 64, train_len: len, max_len: len }
}

/// Encodings that one layer can have.
fn encodings(registry: &Registry) -> impl Iterator<Item = &Card> {
    let fits = |id| registry.encoding(id).is_ok_and(|config| config.check(&dims(LENS[0])).is_ok());
    registry.cards().filter(move |card| fits(card.id))
}

fn encoding(id: &str, len: usize, device: &Device) -> AnyEncoding {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let config = Registry::builtin().encoding(id).expect("an id of the list");
    config.build(&dims(len), &mut rng, device).expect("sizes that every encoding accepts")
}

struct Inputs {
    x: Tensor<3>,
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    at: Positions,
}

impl Inputs {
    fn new(len: usize, device: &Device) -> Self {
        let problem = Problem::random(BATCH, len, &dims(len), 1);
        let ready = |t: Tensor<4>| if device.is_autodiff() { t.require_grad() } else { t };
        Self {
            x: tensor3(&problem.x, device),
            q: ready(tensor4(&problem.q, device)),
            k: ready(tensor4(&problem.k, device)),
            v: ready(tensor4(&problem.v, device)),
            at: Positions::contiguous(0, len),
        }
    }

    /// Attends on an engine; on the fastest one of the device without.
    fn attend(&self, encoding: &AnyEncoding, engine: Option<Engine>) -> Tensor<4> {
        let carried = TokenState::default();
        let mut input = LayerInput {
            precision: place::precision(),
            ..LayerInput::new(
                0,
                &self.at,
                &self.x,
                [self.q.clone(), self.k.clone(), self.v.clone()],
                &carried,
            )
        };
        input.engine = engine.unwrap_or(input.engine);
        layer(encoding.hooks(), input, None, Weights::Drop).output
    }
}

fn forward(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("attention-forward");
    group.sample_size(10);
    let device = place::device();
    for len in LENS {
        let inputs = Inputs::new(len, &device);
        for meta in encodings(&Registry::builtin()) {
            let encoding = encoding(meta.id, len, &device);
            group.bench_function(BenchmarkId::new(meta.id, len), |bencher| {
                bencher.iter(|| black_box(inputs.attend(&encoding, None)));
            });
        }
    }
}

fn backward(criterion: &mut Criterion, name: &str, lens: &[usize], engine: Option<Engine>) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    let device = place::device().autodiff();
    for len in lens {
        let inputs = Inputs::new(*len, &device);
        for meta in encodings(&Registry::builtin()) {
            let encoding = encoding(meta.id, *len, &device);
            group.bench_function(BenchmarkId::new(meta.id, len), |bencher| {
                bencher.iter(|| black_box(inputs.attend(&encoding, engine).sum().backward()));
            });
        }
    }
}

fn forward_backward(criterion: &mut Criterion) {
    backward(criterion, "attention-forward-backward", &LENS, None);
}

fn reference(criterion: &mut Criterion) {
    let engine = Some(Engine::Reference);
    backward(criterion, "attention-forward-backward-reference", &LENS[1..2], engine);
}

criterion_group!(benches, forward, forward_backward, reference);
criterion_main!(benches);
