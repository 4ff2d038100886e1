//! How fast tasks are generated: tokens a second on one core.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tasks::TaskConfig;

const LEN: usize = 512;

fn generation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("task-generation");
    for meta in tasks::ALL {
        let task = match TaskConfig::from_id(meta.id).and_then(|config| config.build()) {
            Ok(task) => task,
            Err(error) => {
                eprintln!("{}: left out: {error}", meta.id);
                continue;
            }
        };
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mean =
            (0..200).map(|_| task.train_sample(LEN, &mut rng).tokens.len()).sum::<usize>() / 200;
        group.throughput(Throughput::Elements(mean as u64));
        group.bench_function(meta.id, |bencher| {
            bencher.iter(|| black_box(task.train_sample(LEN, &mut rng)));
        });
    }
}

criterion_group!(benches, generation);
criterion_main!(benches);
