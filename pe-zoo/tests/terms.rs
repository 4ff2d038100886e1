//! Pair terms defined outside the library: the fused engine compared with the reference engine in f64.
#![cfg(feature = "flex")]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod common;

use std::sync::OnceLock;

use burn::tensor::activation::softplus;
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use common::{Cable, KerplePower};
use pe_zoo::attention::{Engine, Support, Weights};
use pe_zoo::init::standard_normal;
use pe_zoo::score::Term;
use pe_zoo::testkit::close::{self, Tolerance, numbers};
use pe_zoo::{Positions, ScoreMod};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// f32 in another order against f64, through hundreds of terms; as a share of the largest number.
const F32_SUMS: Tolerance = Tolerance { absolute: 2e-5, relative: 2e-4 };

/// The processor with f64 as the type of what the engines make themselves; f32 operands stay f32.
fn device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    let device = DEVICE.get_or_init(|| {
        let mut device = Device::flex();
        device.configure(FloatDType::F64).unwrap();
        device
    });
    device.clone().autodiff()
}

fn leaf<const D: usize>(dtype: DType, shape: [usize; D], spread: f64, seed: u64) -> Tensor<D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values = (0..shape.iter().product::<usize>())
        .map(|_| f64::from((spread * standard_normal(&mut rng)) as f32))
        .collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, shape), (&device(), dtype)).require_grad()
}

#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    rows: usize,
    columns: usize,
    head_dim: usize,
}

const ODD: Sizes = Sizes { batch: 2, heads: 3, rows: 69, columns: 75, head_dim: 6 };

/// A modifier and the leaf that its gradient is compared at.
struct Made {
    modifier: ScoreMod,
    params: Option<Tensor<2>>,
    state: Option<Tensor<4>>,
}

type Make = fn(&Sizes, DType) -> Made;

fn kerple_power(sizes: &Sizes, dtype: DType) -> Made {
    // Temperatures near 1, slopes and powers positive.
    let params = leaf(dtype, [sizes.heads, 3], 0.2, 11);
    let modifier = ScoreMod::Term(Term::new(KerplePower).head_params(params.clone().abs() + 0.3));
    Made { modifier, params: Some(params), state: None }
}

fn cable(sizes: &Sizes, dtype: DType) -> Made {
    let rates = leaf(dtype, [sizes.batch, sizes.heads, sizes.columns, 1], 1.0, 12);
    let sums = softplus(rates.clone(), 1.0).neg().cumsum(2);
    let modifier = ScoreMod::Term(Term::new(Cable).token_state(sums));
    Made { modifier, params: None, state: Some(rates) }
}

fn both(sizes: &Sizes, dtype: DType) -> Made {
    let (kerple, cable) = (kerple_power(sizes, dtype), cable(sizes, dtype));
    let modifier = ScoreMod::Sum(vec![kerple.modifier, cable.modifier]);
    Made { modifier, params: kerple.params, state: cable.state }
}

const ALL: [(&str, Make); 3] = [("kerple-power", kerple_power), ("cable", cable), ("both", both)];

/// Output and every gradient.
fn run(engine: Engine, dtype: DType, sizes: &Sizes, at: &Positions, make: Make) -> Vec<Vec<f64>> {
    let Sizes { batch, heads, rows, columns, head_dim } = *sizes;
    let q = leaf(dtype, [batch, heads, rows, head_dim], 1.0, 1);
    let k = leaf(dtype, [batch, heads, columns, head_dim], 1.0, 2);
    let values = leaf(dtype, [batch, heads, columns, head_dim], 1.0, 3);
    let upstream = leaf(dtype, [batch, heads, rows, head_dim], 1.0, 4).detach();
    let made = make(sizes, dtype);
    let scale = 1.0 / (head_dim as f64).sqrt();
    let weights = Weights::Drop;
    let output =
        engine.attend(&q, &k, &values, values.clone(), &made.modifier, at, scale, weights).output;
    let grads = (output.clone() * upstream).sum().backward();
    let mut all = vec![numbers(output)];
    all.extend([&q, &k, &values].map(|leaf| numbers(leaf.grad(&grads).unwrap())));
    all.extend(made.params.map(|leaf| numbers(leaf.grad(&grads).unwrap())));
    all.extend(made.state.map(|leaf| numbers(leaf.grad(&grads).unwrap())));
    all
}

fn positions(sizes: &Sizes) -> [Positions; 2] {
    let first_row = sizes.columns - sizes.rows;
    let scattered = (0..sizes.columns).map(|n| 3 + n * 2 + n * n % 2).collect();
    [Positions::contiguous(first_row, sizes.rows), Positions::new(scattered, first_row).unwrap()]
}

#[test]
fn outputs_and_gradients_equal_those_in_f64() {
    let shapes = [(1, 1), (2, 2), (16, 16), (17, 40), (64, 64), (65, 65), (1, 70), (3, 130)];
    let shapes = shapes
        .map(|(rows, columns)| Sizes { batch: 1, heads: 2, rows, columns, head_dim: 4 })
        .into_iter()
        .chain([ODD]);
    for sizes in shapes {
        for at in positions(&sizes) {
            for (name, make) in ALL {
                let found = run(Engine::Fused, DType::F32, &sizes, &at, make);
                let expected = run(Engine::Reference, DType::F64, &sizes, &at, make);
                for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let largest = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
                    let tolerance = Tolerance { absolute: F32_SUMS.absolute * largest, ..F32_SUMS };
                    close::compare(found, expected, tolerance)
                        .map_err(|e| format!("{name}, tensor {number}, {sizes:?}: {e}"))
                        .unwrap();
                }
            }
        }
    }
}

#[test]
fn every_number_is_finite_at_distance_0() {
    // Only the own token is seen: `0^p`, and its derivative by `p`, for every power.
    let sizes = Sizes { batch: 1, heads: 3, rows: 1, columns: 1, head_dim: 4 };
    for (engine, dtype) in [(Engine::Fused, DType::F32), (Engine::Reference, DType::F64)] {
        for found in run(engine, dtype, &sizes, &Positions::contiguous(0, 1), kerple_power) {
            assert!(found.iter().all(|x| x.is_finite()), "{engine:?}: {found:?}");
        }
    }
}

#[test]
fn one_two_and_four_threads_give_the_same_bits() {
    for sizes in [ODD, Sizes { batch: 1, heads: 1, rows: 700, columns: 700, head_dim: 8 }] {
        let at = &positions(&sizes)[0];
        for (name, make) in ALL {
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let run = || run(Engine::Fused, DType::F32, &sizes, at, make);
                let bits = |numbers: Vec<f64>| numbers.into_iter().map(f64::to_bits).collect();
                pool.install(run).into_iter().map(bits).collect::<Vec<Vec<u64>>>()
            };
            let expected = on(1);
            for threads in [2, 4] {
                assert!(on(threads) == expected, "{name}, {threads} threads, {sizes:?}");
            }
        }
    }
}

#[test]
fn decoding_gives_the_rows_of_the_full_pass() {
    let full = Sizes { batch: 1, heads: 2, rows: 40, columns: 40, head_dim: 4 };
    for (name, make) in ALL {
        let attend = |first_row: usize| {
            let q = leaf(DType::F32, [1, 2, 40, 4], 1.0, 1).slice_dim(2, first_row..40);
            let [k, v] = [2, 3].map(|seed| leaf::<4>(DType::F32, [1, 2, 40, 4], 1.0, seed));
            let modifier = make(&full, DType::F32).modifier;
            let at = Positions::contiguous(first_row, 40 - first_row);
            let weights = Weights::Drop;
            let output = Engine::Fused.attend(&q, &k, &v, v.clone(), &modifier, &at, 0.5, weights);
            numbers(output.output.slice_dim(2, 39 - first_row..40 - first_row))
        };
        close::compare(&attend(39), &attend(0), F32_SUMS)
            .map_err(|e| format!("{name}: {e}"))
            .unwrap();
        close::compare(&attend(20), &attend(0), F32_SUMS)
            .map_err(|e| format!("{name}: {e}"))
            .unwrap();
    }
}

#[test]
fn numbers_that_are_none_give_nan_and_never_a_panic() {
    let sizes = Sizes { batch: 1, heads: 1, rows: 70, columns: 70, head_dim: 4 };
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (name, make) in ALL {
            let ones = Tensor::<4>::ones([1, 1, 70, 4], (&device(), DType::F32));
            let q = ones.clone().slice_fill([0..1, 0..1, 33..34, 0..1], bad).require_grad();
            let at = Positions::contiguous(0, 70);
            let modifier = make(&sizes, DType::F32).modifier;
            let weights = Weights::Drop;
            let output = Engine::Fused
                .attend(&q, &ones, &ones, ones.clone(), &modifier, &at, 0.5, weights)
                .output;
            let grad = q.grad(&output.clone().sum().backward()).unwrap();
            for found in [numbers(output), numbers(grad)] {
                let rows = found.chunks(4).map(|row| row.iter().any(|x| x.is_nan()));
                let expected = (0..70).map(|row| row == 33);
                assert!(rows.eq(expected), "{name}, {bad}: {found:?}");
            }
        }
    }
}

#[test]
fn terms_are_fused_on_the_processor() {
    for (name, make) in ALL {
        let modifier = make(&ODD, DType::F32).modifier;
        assert_eq!(modifier.support(&device()), Support::Fused, "{name}");
    }
}
