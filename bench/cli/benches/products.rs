//! Products of matrices at the sizes of a training step, and of a large square: floating-point operations a second, to which
//! the operations of a whole step (`pe-bench flops`) are compared. Allocating the result is part of the time, which dominates
//! where the result is large and the inner size small.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

mod place;

use std::hint::black_box;

use burn::tensor::{Distribution, Tensor};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Rows of the left matrix, inner size, columns of the right one.
const SIZES: [[usize; 3]; 6] = [
    [2048, 2048, 2048],
    [8192, 256, 768],
    [8192, 256, 1024],
    [8192, 1024, 256],
    [256, 8192, 1024],
    [2048, 64, 256],
];

fn products(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("matrix-product");
    group.sample_size(10);
    let device = place::device();
    let random = |rows, columns| {
        Tensor::<2>::random([rows, columns], Distribution::Uniform(-1.0, 1.0), &device)
    };
    for [m, k, n] in SIZES {
        let (a, b) = (random(m, k), random(k, n));
        group.throughput(Throughput::Elements(2 * (m * k * n) as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{m}x{k}x{n}")), |bencher| {
            bencher.iter(|| black_box(a.clone().matmul(b.clone()).into_data()));
        });
    }
}

criterion_group!(benches, products);
criterion_main!(benches);
