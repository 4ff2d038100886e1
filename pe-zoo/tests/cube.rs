//! Comparison of the GPU kernels with the reference engine in f64: outputs and every gradient.
//!
//! Runs on any device that wgpu finds, or with `cuda` and without `wgpu` on the first NVIDIA GPU; `ci/gpu-sim.sh`
//! installs a software Vulkan for machines without a GPU.
#![cfg(all(any(feature = "wgpu", feature = "cuda"), feature = "flex"))]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::sync::OnceLock;

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use pe_zoo::attention::{Engine, Weights};
use pe_zoo::count::CountedMatmul;
use pe_zoo::init::standard_normal;
use pe_zoo::score::{
    Beyond, Contextual, ContextualFunction, Current, GateSource, HiddenActivation, LogitScaling,
    Number, Pair, PairTerm, Perceptron, Remainder, StickBreakingRule, Term,
};
use pe_zoo::testkit::close::{self, Tolerance, numbers};
use pe_zoo::{Positions, ScoreMod};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// f32 in another order against f64, through hundreds of terms; as a share of the largest number.
const F32_SUMS: Tolerance = Tolerance { absolute: 2e-5, relative: 2e-4 };

#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    rows: usize,
    columns: usize,
    head_dim: usize,
    value_dim: usize,
}

/// One side of the comparison.
#[derive(Clone)]
struct Side {
    device: Device,
    dtype: DType,
    engine: Engine,
}

fn sides() -> [Side; 2] {
    static FLEX: OnceLock<Device> = OnceLock::new();
    let flex = FLEX.get_or_init(|| {
        let mut device = Device::flex();
        device.configure(FloatDType::F64).unwrap();
        device
    });
    #[cfg(feature = "wgpu")]
    let gpu = Device::wgpu(burn::tensor::DeviceKind::DefaultDevice);
    #[cfg(not(feature = "wgpu"))]
    let gpu = Device::cuda(0);
    [
        Side { device: gpu.autodiff(), dtype: DType::F32, engine: Engine::Fused },
        Side { device: flex.clone().autodiff(), dtype: DType::F64, engine: Engine::Reference },
    ]
}

/// Leaves of one problem, whose gradients are compared.
struct Leaves {
    side: Side,
    found: Vec<(&'static str, Leaf)>,
}

enum Leaf {
    One(Tensor<1>),
    Two(Tensor<2>),
    Three(Tensor<3>),
    Four(Tensor<4>),
}

macro_rules! leaf {
    ($name:ident, $variant:ident, $axes:literal) => {
        fn $name(
            &mut self,
            name: &'static str,
            shape: [usize; $axes],
            spread: f64,
            seed: u64,
        ) -> Tensor<$axes> {
            let tensor = self.side.tensor(shape, spread, seed).require_grad();
            self.found.push((name, Leaf::$variant(tensor.clone())));
            tensor
        }
    };
}

impl Leaves {
    leaf!(one, One, 1);
    leaf!(two, Two, 2);
    leaf!(three, Three, 3);
    leaf!(four, Four, 4);
}

impl Side {
    /// The same numbers on both sides.
    fn tensor<const D: usize>(&self, shape: [usize; D], spread: f64, seed: u64) -> Tensor<D> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let values = (0..shape.iter().product::<usize>())
            .map(|_| f64::from((spread * standard_normal(&mut rng)) as f32))
            .collect::<Vec<_>>();
        Tensor::from_data(TensorData::new(values, shape), (&self.device, self.dtype))
    }
}

/// A temperature and a slope for each head, and a decay that token state carries.
#[derive(Debug, Clone)]
struct Tempered;

impl PairTerm<2, 1> for Tempered {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 2, 1>) -> N {
        let [temperature, slope] = pair.params;
        let decay = pair.row[0] - pair.column[0];
        temperature * pair.content - slope * (pair.distance + N::constant(1.0)).ln() + decay
    }
}

/// Makes a modifier from leaves that it registers.
type Make = fn(&Sizes, &mut Leaves) -> ScoreMod;

/// The same numbers in memory `[B, T, H, D]`, the order of projections; their gradient is in it as well.
fn by_token(u: Tensor<4>) -> Tensor<4> {
    let [batch, heads, tokens, width] = u.dims();
    let rows = u.swap_dims(1, 2).reshape([batch, tokens, heads * width]);
    rows.reshape([batch, tokens, heads, width]).swap_dims(1, 2)
}

fn run(
    side: &Side,
    sizes: &Sizes,
    at: &Positions,
    spread: f64,
    make: Make,
) -> Vec<(&'static str, Vec<f64>)> {
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = *sizes;
    let mut leaves = Leaves { side: side.clone(), found: vec![] };
    let q = by_token(leaves.four("queries", [batch, heads, rows, head_dim], spread, 1));
    let k = leaves.four("keys", [batch, heads, columns, head_dim], spread, 2);
    let values = by_token(leaves.four("values", [batch, heads, columns, value_dim], 1.0, 4));
    let v = side.tensor([batch, heads, columns, head_dim], spread, 3).require_grad();
    let upstream = side.tensor([batch, heads, rows, value_dim], 1.0, 5);
    let modifier = make(sizes, &mut leaves);
    let scale = 1.0 / (head_dim as f64).sqrt();
    let attended =
        side.engine.attend(&q, &k, &v, values, &modifier, at, scale, Weights::Drop).output;
    let attended = by_token(attended);
    let grads = (attended.clone() * upstream).sum().backward();
    let mut all = vec![("output", numbers(attended))];
    if let Some(grad) = v.grad(&grads) {
        all.push(("gates' values", numbers(grad)));
    }
    all.extend(leaves.found.iter().map(|(name, leaf)| {
        let grad = match leaf {
            Leaf::One(leaf) => leaf.grad(&grads).map(numbers),
            Leaf::Two(leaf) => leaf.grad(&grads).map(numbers),
            Leaf::Three(leaf) => leaf.grad(&grads).map(numbers),
            Leaf::Four(leaf) => leaf.grad(&grads).map(numbers),
        };
        (*name, grad.unwrap_or_default())
    }));
    all
}

fn compare_at(sizes: &Sizes, at: &Positions, spread: f64, make: Make) {
    let [gpu, reference] = sides();
    let found = run(&gpu, sizes, at, spread, make);
    let expected = run(&reference, sizes, at, spread, make);
    assert_eq!(
        found.len(),
        expected.len(),
        "{sizes:?}: gradients of the gates' values on one side"
    );
    for ((name, found), (_, expected)) in found.iter().zip(&expected) {
        let largest = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
        let tolerance = Tolerance {
            absolute: F32_SUMS.absolute * largest * spread.max(1.0),
            relative: F32_SUMS.relative * spread.max(1.0),
        };
        close::compare(found, expected, tolerance)
            .map_err(|e| format!("{name}, {sizes:?}, spread {spread}: {e}"))
            .unwrap();
    }
}

fn positions(sizes: &Sizes) -> [Positions; 2] {
    let first_row = sizes.columns - sizes.rows;
    let scattered = (0..sizes.columns).map(|n| 3 + n * 2 + n * n % 2).collect();
    [Positions::contiguous(first_row, sizes.rows), Positions::new(scattered, first_row).unwrap()]
}

/// Every size of tile, odd sizes around them, decoding, several blocks of rows to one cube.
fn compare(make: Make) {
    let odd = Sizes { batch: 2, heads: 3, rows: 69, columns: 75, head_dim: 6, value_dim: 5 };
    for at in positions(&odd) {
        compare_at(&odd, &at, 1.0, make);
    }
    compare_at(&odd, &positions(&odd)[0], 20.0, make);
    for (rows, columns) in [(1, 1), (2, 2), (16, 16), (17, 40), (65, 65), (1, 70), (3, 130)] {
        let sizes = Sizes { batch: 1, heads: 2, rows, columns, head_dim: 6, value_dim: 5 };
        compare_at(&sizes, &positions(&sizes)[0], 1.0, make);
    }
    // Short, because a count that lies exactly on a kink of the bias has different derivatives on both
    // sides, and more counts make such a case more likely.
    let many = Sizes { batch: 8, heads: 9, rows: 40, columns: 40, head_dim: 6, value_dim: 5 };
    compare_at(&many, &positions(&many)[0], 1.0, make);
}

fn slope(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    ScoreMod::Slope(leaves.one("slopes", [sizes.heads], 0.1, 11))
}

fn distance(sizes: &Sizes, leaves: &mut Leaves, entries: usize, beyond: Beyond) -> ScoreMod {
    ScoreMod::Distance { table: leaves.two("distances", [sizes.heads, entries], 1.0, 12), beyond }
}

fn query_distance(sizes: &Sizes, leaves: &mut Leaves, beyond: Beyond) -> ScoreMod {
    let table = leaves.two("query distances", [sizes.head_dim, 23], 1.0, 13);
    ScoreMod::QueryDistance { table, beyond }
}

fn row_distance(sizes: &Sizes, leaves: &mut Leaves, beyond: Beyond) -> ScoreMod {
    let vectors = [sizes.batch, sizes.heads, sizes.rows, 5];
    let vectors = leaves.four("row vectors", vectors, 1.0, 43);
    ScoreMod::RowDistance { vectors, table: leaves.two("row distances", [5, 31], 1.0, 44), beyond }
}

fn decay(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let logs = leaves.three("decays", [sizes.batch, sizes.heads, sizes.columns], 0.2, 14);
    ScoreMod::Decay { cumulative: logs.cumsum(2) }
}

fn dense(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    ScoreMod::Dense(leaves.four("dense", [1, sizes.heads, sizes.rows, sizes.columns], 1.0, 15))
}

fn contextual(
    sizes: &Sizes,
    leaves: &mut Leaves,
    entries: usize,
    convention: LogitScaling,
) -> Contextual {
    Contextual {
        gates: GateSource::QueryKey,
        max_position: (entries - 1) as f64,
        function: ContextualFunction::Table(leaves.two(
            "table",
            [sizes.head_dim, entries],
            1.0,
            16,
        )),
        convention,
    }
}

#[test]
fn pair_terms_become_dense_biases() {
    compare(|sizes, leaves| {
        let params = leaves.two("head parameters", [sizes.heads, 2], 0.5, 41);
        let state = leaves.four("state", [sizes.batch, sizes.heads, sizes.columns, 1], 0.3, 42);
        let term = Term::new(Tempered).head_params(params).token_state(state);
        ScoreMod::Sum(vec![ScoreMod::Term(term), slope(sizes, leaves)])
    });
}

#[test]
fn no_modifier() {
    compare(|_, _| ScoreMod::None);
}

#[test]
fn slopes() {
    compare(slope);
}

#[test]
fn distance_tables() {
    compare(|sizes, leaves| distance(sizes, leaves, 20, Beyond::Last));
    compare(|sizes, leaves| distance(sizes, leaves, 20, Beyond::Zero));
    compare(|sizes, leaves| distance(sizes, leaves, 1, Beyond::Last));
    compare(|sizes, leaves| distance(sizes, leaves, 400, Beyond::Last));
}

#[test]
fn query_distance_tables() {
    compare(|sizes, leaves| query_distance(sizes, leaves, Beyond::Last));
    compare(|sizes, leaves| query_distance(sizes, leaves, Beyond::Zero));
}

#[test]
fn distance_tables_of_vectors_of_the_rows() {
    compare(|sizes, leaves| row_distance(sizes, leaves, Beyond::Last));
    compare(|sizes, leaves| {
        let of_queries = query_distance(sizes, leaves, Beyond::Zero);
        ScoreMod::Sum(vec![row_distance(sizes, leaves, Beyond::Zero), of_queries])
    });
}

#[test]
fn decays() {
    compare(decay);
    compare(|sizes, leaves| ScoreMod::Sum(vec![decay(sizes, leaves), decay(sizes, leaves)]));
}

#[test]
fn sinks_in_the_denominators() {
    fn sinks(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
        ScoreMod::Sinks(leaves.one("sinks", [sizes.heads], 2.0, 28))
    }
    compare(sinks);
    compare(|sizes, leaves| ScoreMod::Sum(vec![decay(sizes, leaves), sinks(sizes, leaves)]));
}

#[test]
fn dense_biases() {
    compare(dense);
}

#[test]
fn stick_breaking() {
    const fn sticks(current: Current, remainder: Remainder) -> ScoreMod {
        ScoreMod::StickBreaking(StickBreakingRule { current, remainder })
    }
    compare(|_, _| sticks(Current::Excluded, Remainder::Dropped));
    compare(|_, _| sticks(Current::Excluded, Remainder::OwnToken));
    compare(|_, _| sticks(Current::Included, Remainder::Dropped));
    compare(|_, _| sticks(Current::Included, Remainder::OwnToken));
}

#[test]
fn contextual_tables_in_all_conventions_below_and_beyond_the_largest_position() {
    fn table(sizes: &Sizes, leaves: &mut Leaves, entries: usize, by: LogitScaling) -> ScoreMod {
        ScoreMod::Contextual(contextual(sizes, leaves, entries, by))
    }
    compare(|sizes, leaves| table(sizes, leaves, 5, LogitScaling::Listing));
    compare(|sizes, leaves| table(sizes, leaves, 5, LogitScaling::Code));
    compare(|sizes, leaves| table(sizes, leaves, 2, LogitScaling::Equation));
    compare(|sizes, leaves| table(sizes, leaves, 400, LogitScaling::Listing));
}

#[test]
fn contextual_positions_that_end_between_entries() {
    compare(|sizes, leaves| {
        let mut contextual = contextual(sizes, leaves, 9, LogitScaling::Listing);
        contextual.max_position = 7.3;
        ScoreMod::Contextual(contextual)
    });
}

#[test]
fn gates_from_values_and_from_keys_of_their_own() {
    compare(|sizes, leaves| {
        let contextual = contextual(sizes, leaves, 12, LogitScaling::Code);
        ScoreMod::Contextual(Contextual { gates: GateSource::QueryValue, ..contextual })
    });
    compare(|sizes, leaves| {
        let shape = [sizes.batch, sizes.heads, sizes.columns, sizes.head_dim];
        let keys = leaves.four("gate keys", shape, 1.0, 17);
        let contextual = contextual(sizes, leaves, 12, LogitScaling::Listing);
        ScoreMod::Contextual(Contextual { gates: GateSource::Keys(keys), ..contextual })
    });
}

#[test]
fn contextual_slopes() {
    fn slopes(sizes: &Sizes, leaves: &mut Leaves, max_position: f64) -> ScoreMod {
        ScoreMod::Contextual(Contextual {
            gates: GateSource::QueryKey,
            max_position,
            function: ContextualFunction::Slope(leaves.one(
                "contextual slopes",
                [sizes.heads],
                0.3,
                18,
            )),
            convention: LogitScaling::Code,
        })
    }
    compare(|sizes, leaves| slopes(sizes, leaves, 11.0));
    compare(|sizes, leaves| slopes(sizes, leaves, f64::INFINITY));
}

#[test]
fn perceptrons_of_contextual_positions() {
    fn perceptron(sizes: &Sizes, leaves: &mut Leaves, activation: HiddenActivation) -> ScoreMod {
        let (w1, b1) = (leaves.one("w1", [5], 0.3, 23), leaves.one("b1", [5], 0.5, 24));
        let w2 = leaves.two("w2", [sizes.head_dim, 5], 0.3, 25);
        let b2 = leaves.one("b2", [sizes.head_dim], 0.3, 26);
        ScoreMod::Contextual(Contextual {
            gates: GateSource::QueryKey,
            max_position: 9.0,
            function: ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation }),
            convention: LogitScaling::Listing,
        })
    }
    compare(|sizes, leaves| perceptron(sizes, leaves, HiddenActivation::Gelu));
    compare(|sizes, leaves| perceptron(sizes, leaves, HiddenActivation::Relu));
}

#[test]
fn products_in_the_place_of_the_content() {
    compare(|sizes, leaves| {
        let query = [sizes.batch, sizes.heads, sizes.rows, sizes.head_dim];
        let key = [sizes.batch, sizes.heads, sizes.columns, sizes.head_dim];
        let (query, key) =
            (leaves.four("other queries", query, 1.0, 21), leaves.four("other keys", key, 1.0, 22));
        let gated = contextual(sizes, leaves, 6, LogitScaling::Equation);
        let products = ScoreMod::Products(query.counted_matmul(key.swap_dims(2, 3)));
        ScoreMod::Sum(vec![products, ScoreMod::Contextual(gated)])
    });
}

#[test]
fn sums_of_everything() {
    compare(|sizes, leaves| {
        let table = contextual(sizes, leaves, 8, LogitScaling::Code);
        let second = contextual(sizes, leaves, 4, LogitScaling::Listing);
        let sticks =
            StickBreakingRule { current: Current::Included, remainder: Remainder::OwnToken };
        ScoreMod::Sum(vec![
            slope(sizes, leaves),
            distance(sizes, leaves, 20, Beyond::Zero),
            ScoreMod::Sum(vec![
                query_distance(sizes, leaves, Beyond::Last),
                query_distance(sizes, leaves, Beyond::Zero),
            ]),
            decay(sizes, leaves),
            dense(sizes, leaves),
            dense(sizes, leaves),
            ScoreMod::Contextual(table),
            ScoreMod::Contextual(second),
            ScoreMod::StickBreaking(sticks),
        ])
    });
}

#[test]
fn the_same_bits_every_time() {
    let sizes = Sizes { batch: 2, heads: 3, rows: 130, columns: 130, head_dim: 6, value_dim: 5 };
    let at = Positions::contiguous(0, 130);
    let [gpu, _] = sides();
    let make: Make = |sizes, leaves| {
        let table = contextual(sizes, leaves, 8, LogitScaling::Code);
        ScoreMod::Sum(vec![
            distance(sizes, leaves, 20, Beyond::Last),
            decay(sizes, leaves),
            ScoreMod::Contextual(table),
        ])
    };
    assert_eq!(run(&gpu, &sizes, &at, 1.0, make), run(&gpu, &sizes, &at, 1.0, make));
}

#[test]
fn hard_attention_and_tables_without_room_fall_back_to_the_reference() {
    let sizes = Sizes { batch: 1, heads: 2, rows: 9, columns: 9, head_dim: 6, value_dim: 5 };
    let at = Positions::contiguous(0, 9);
    compare_at(&sizes, &at, 1.0, |sizes, leaves| {
        ScoreMod::Sum(vec![slope(sizes, leaves), ScoreMod::Hard])
    });
    // A head so wide that not even the smallest block fits.
    let wide = Sizes { head_dim: 4096, value_dim: 4096, ..sizes };
    compare_at(&wide, &at, 0.1, |_, _| ScoreMod::None);
}

/// With more rows than a block has, and some in the last block only.
#[test]
fn dense_logits_of_long_passes_are_computed_in_blocks_of_rows() {
    let sizes = Sizes { batch: 1, heads: 2, rows: 300, columns: 310, head_dim: 6, value_dim: 5 };
    for at in positions(&sizes) {
        compare_at(&sizes, &at, 1.0, |sizes, leaves| {
            ScoreMod::Sum(vec![dense(sizes, leaves), decay(sizes, leaves)])
        });
        compare_at(&sizes, &at, 1.0, |sizes, leaves| {
            ScoreMod::Sum(vec![slope(sizes, leaves), ScoreMod::Hard])
        });
    }
    // Not at positions with gaps: there Burn adds up the gradient of a table from more than 65,536 pairs, and loses some of them.
    compare_at(&sizes, &positions(&sizes)[0], 1.0, |sizes, leaves| {
        let distances = distance(sizes, leaves, 20, Beyond::Zero);
        ScoreMod::Sum(vec![dense(sizes, leaves), distances])
    });
}
