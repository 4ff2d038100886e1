//! Compares the fused engine with the reference engine: outputs and all gradients.

mod by_rows;
mod cpu_operands;
mod extremes;
#[cfg(feature = "cube")]
mod on_cores;
mod random;
mod terms;

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::attention::by_rows::AttentionInputs;
use crate::attention::engine::attend_block as fused;
use crate::attention::{Engine, Weights};
use crate::init::standard_normal;
use crate::ops::MatmulPrecision;
use crate::score::{
    Beyond, Contextual, ContextualFunction, Current, GateSource, HiddenActivation, LogitScaling,
    Perceptron, Remainder, StickBreakingRule,
};
use crate::testkit::close::{self, Tolerance, numbers};
use crate::{Positions, ScoreMod};

/// Tolerance for sums over hundreds of terms in a different order.
const SUMS: Tolerance = Tolerance { absolute: 5e-5, relative: 4e-4 };

struct Sizes {
    batch: usize,
    heads: usize,
    rows: usize,
    columns: usize,
    head_dim: usize,
    value_dim: usize,
}

const ODD: Sizes = Sizes { batch: 2, heads: 3, rows: 69, columns: 75, head_dim: 6, value_dim: 5 };

fn tensor<const D: usize>(shape: [usize; D], spread: f64, seed: u64) -> Tensor<D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values = (0..shape.iter().product::<usize>())
        .map(|_| (spread * standard_normal(&mut rng)) as f32)
        .collect::<Vec<_>>();
    let device = Device::flex().autodiff();
    Tensor::from_data(TensorData::new(values, shape), &device).require_grad()
}

/// Leaf tensors of one problem, whose gradients are compared.
struct Leaves {
    four: Vec<Tensor<4>>,
    three: Vec<Tensor<3>>,
    two: Vec<Tensor<2>>,
    one: Vec<Tensor<1>>,
}

/// Function that makes a modifier and registers the leaf tensors it depends on.
type Make = fn(&Sizes, &mut Leaves) -> ScoreMod;

/// Function that makes a modifier, and may read others.
type Way<'a> = &'a dyn Fn(&Sizes, &mut Leaves) -> ScoreMod;

fn compare_at(sizes: &Sizes, at: &Positions, spread: f64, make: Make) {
    let Sizes { batch, heads, rows, columns, head_dim, .. } = *sizes;
    compare_leaves(sizes, at, spread, make, || {
        (
            tensor([batch, heads, rows, head_dim], spread, 1),
            tensor([batch, heads, columns, head_dim], spread, 2),
        )
    });
}

/// Compares as [`compare_at`] does, with the given queries and keys.
fn compare_leaves(
    sizes: &Sizes,
    at: &Positions,
    spread: f64,
    make: Make,
    queries_and_keys: impl Fn() -> (Tensor<4>, Tensor<4>),
) {
    compare_ways(sizes, at, spread, [(fused, make), (reference, make)], queries_and_keys);
}

/// Function that computes attention, such as an engine.
type Attend = fn(AttentionInputs<'_>) -> Tensor<4>;

fn reference(inputs: AttentionInputs<'_>) -> Tensor<4> {
    let AttentionInputs { q, k, v, values, modifier, at, scale, .. } = inputs;
    let (values, weights) = (values.clone(), Weights::Drop);
    Engine::Reference.attend(q, k, v, values, modifier, at, scale, weights).output
}

/// Compares the outputs and gradients of two engines, or of two ways to write a modifier.
fn compare_ways<M: Fn(&Sizes, &mut Leaves) -> ScoreMod>(
    sizes: &Sizes,
    at: &Positions,
    spread: f64,
    ways: [(Attend, M); 2],
    queries_and_keys: impl Fn() -> (Tensor<4>, Tensor<4>),
) {
    let run = |(attend, make): (Attend, M)| {
        let Sizes { batch, heads, rows, columns, head_dim, value_dim } = *sizes;
        let (q, k) = queries_and_keys();
        let v = tensor([batch, heads, columns, head_dim], spread, 3);
        let values = tensor([batch, heads, columns, value_dim], 1.0, 4);
        let upstream = tensor([batch, heads, rows, value_dim], 1.0, 5).detach();
        let mut leaves = Leaves {
            four: vec![q.clone(), k.clone(), values.clone()],
            three: vec![],
            two: vec![],
            one: vec![],
        };
        let modifier = make(sizes, &mut leaves);
        let scale = 1.0 / (head_dim as f64).sqrt();
        let output = attend(AttentionInputs {
            precision: MatmulPrecision::F32,
            q: &q,
            k: &k,
            v: &v,
            values: &values,
            modifier: &modifier,
            at,
            scale,
        });
        let grads = (output.clone() * upstream).sum().backward();
        // Only gates read `v`, and no others give it a gradient.
        let of_v = v.grad(&grads).map(numbers).unwrap_or_default();
        let mut all = vec![("output", numbers(output)), ("v", of_v)];
        let grad = "missing gradient";
        all.extend(leaves.four.iter().map(|l| ("[.;4]", numbers(l.grad(&grads).expect(grad)))));
        all.extend(leaves.three.iter().map(|l| ("[.;3]", numbers(l.grad(&grads).expect(grad)))));
        all.extend(leaves.two.iter().map(|l| ("[.;2]", numbers(l.grad(&grads).expect(grad)))));
        all.extend(leaves.one.iter().map(|l| ("[.;1]", numbers(l.grad(&grads).expect(grad)))));
        all
    };
    let [fused, reference] = ways.map(run);
    for (n, ((name, fused), (_, reference))) in fused.iter().zip(&reference).enumerate() {
        let largest = reference.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        // Logits, and with them rounding errors of weights, grow with the square of the spread.
        let tolerance = Tolerance {
            absolute: SUMS.absolute * largest.max(1.0) * spread.max(1.0),
            relative: SUMS.relative * spread.max(1.0),
        };
        close::compare(fused, reference, tolerance)
            .map_err(|e| format!("{name} number {n} of {} rows: {e}", sizes.rows))
            .unwrap();
    }
}

fn positions(sizes: &Sizes) -> [Positions; 2] {
    let first_row = sizes.columns - sizes.rows;
    let scattered = (0..sizes.columns).map(|n| 3 + n * 2 + n * n % 2).collect();
    [Positions::contiguous(first_row, sizes.rows), Positions::new(scattered, first_row).unwrap()]
}

fn compare(make: Make) {
    let grid =
        [(1, 1), (2, 2), (63, 63), (64, 64), (65, 65), (1, 70), (3, 130), (16, 16), (17, 40)];
    for at in positions(&ODD) {
        compare_at(&ODD, &at, 1.0, make);
        compare_at(&ODD, &at, 30.0, make);
    }
    for (rows, columns) in grid {
        let sizes = Sizes { batch: 1, heads: 1, rows, columns, head_dim: 4, value_dim: 4 };
        for at in positions(&sizes) {
            compare_at(&sizes, &at, 1.0, make);
        }
    }
    let long = Sizes { batch: 1, heads: 2, rows: 232, columns: 232, head_dim: 8, value_dim: 8 };
    compare_at(&long, &Positions::contiguous(0, 232), 1.0, make);
}

fn slope(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let slopes = tensor([sizes.heads], 0.1, 11);
    leaves.one.push(slopes.clone());
    ScoreMod::Slope(slopes)
}

fn distance(sizes: &Sizes, leaves: &mut Leaves, beyond: Beyond) -> ScoreMod {
    let table = tensor([sizes.heads, 20], 1.0, 12);
    leaves.two.push(table.clone());
    ScoreMod::Distance { table, beyond }
}

fn query_distance(sizes: &Sizes, leaves: &mut Leaves, beyond: Beyond) -> ScoreMod {
    let table = tensor([sizes.head_dim, 23], 1.0, 13);
    leaves.two.push(table.clone());
    ScoreMod::QueryDistance { table, beyond }
}

fn decay(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let logs = tensor([sizes.batch, sizes.heads, sizes.columns], 0.2, 14);
    leaves.three.push(logs.clone());
    ScoreMod::Decay { cumulative: logs.cumsum(2) }
}

fn dense(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let bias = tensor([1, sizes.heads, sizes.rows, sizes.columns], 1.0, 15);
    leaves.four.push(bias.clone());
    ScoreMod::Dense(bias)
}

fn contextual(
    sizes: &Sizes,
    leaves: &mut Leaves,
    max_positions: usize,
    convention: LogitScaling,
) -> Contextual {
    let table = tensor([sizes.head_dim, max_positions], 1.0, 16);
    leaves.two.push(table.clone());
    Contextual {
        gates: GateSource::QueryKey,
        max_position: (max_positions - 1) as f64,
        function: ContextualFunction::Table(table),
        convention,
    }
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
fn sinks() {
    compare(|sizes, leaves| {
        let sinks = tensor([sizes.heads], 2.0, 17);
        leaves.one.push(sinks.clone());
        ScoreMod::Sum(vec![slope(sizes, leaves), ScoreMod::Sinks(sinks)])
    });
}

#[test]
fn distance_tables() {
    compare(|sizes, leaves| distance(sizes, leaves, Beyond::Last));
    compare(|sizes, leaves| distance(sizes, leaves, Beyond::Zero));
}

#[test]
fn query_distance_tables() {
    compare(|sizes, leaves| query_distance(sizes, leaves, Beyond::Last));
    compare(|sizes, leaves| query_distance(sizes, leaves, Beyond::Zero));
}

#[test]
fn decays() {
    compare(decay);
}

#[test]
fn dense_biases() {
    compare(dense);
}

#[test]
fn decays_beside_decays() {
    compare(|sizes, leaves| {
        let three = [decay(sizes, leaves), decay(sizes, leaves), decay(sizes, leaves)];
        ScoreMod::Sum(three.into())
    });
}

#[test]
fn a_small_decay_beside_a_large_one_keeps_its_digits() {
    let device = Device::flex();
    let zeros = Tensor::<4>::zeros([1, 1, 40, 2], &device);
    let values = Tensor::<1, Int>::arange(0..40, &device).float().reshape([1, 1, 40, 1]);
    let run = |large: f32| {
        let large = Tensor::<3>::full([1, 1, 40], large, &device);
        let small = Tensor::<1, Int>::arange(0..40, &device).float() * -0.01;
        let modifier = ScoreMod::Sum(vec![
            ScoreMod::Decay { cumulative: large },
            ScoreMod::Decay { cumulative: small.reshape([1, 1, 40]) },
        ]);
        let at = Positions::contiguous(0, 40);
        let (q, v) = (&zeros, values.clone());
        let attended = Engine::Fused.attend(q, q, q, v, &modifier, &at, 1.0, Weights::Drop);
        numbers(attended.output)
    };
    // The large slope adds the same constant everywhere and cancels.
    assert_eq!(run(-1e6), run(0.0));
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
    compare(|sizes, leaves| {
        let rule = sticks(Current::Excluded, Remainder::Dropped);
        ScoreMod::Sum(vec![rule, slope(sizes, leaves)])
    });
}

#[test]
fn products_in_the_place_of_the_content() {
    fn products(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
        // Queries and keys affect the output only through separate products.
        let query = tensor([sizes.batch, sizes.heads, sizes.rows, sizes.head_dim], 1.0, 21);
        let key = tensor([sizes.batch, sizes.heads, sizes.columns, sizes.head_dim], 1.0, 22);
        leaves.four.drain(0..2);
        leaves.four.extend([query.clone(), key.clone()]);
        ScoreMod::Products(query.matmul(key.swap_dims(2, 3)))
    }
    compare(products);
    compare(|sizes, leaves| {
        ScoreMod::Sum(vec![products(sizes, leaves), slope(sizes, leaves), dense(sizes, leaves)])
    });
    compare(|sizes, leaves| {
        let gated = contextual(sizes, leaves, 6, LogitScaling::Equation);
        ScoreMod::Sum(vec![ScoreMod::Contextual(gated), products(sizes, leaves)])
    });
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
fn two_contextual_parts_in_every_pair_of_conventions() {
    fn two(sizes: &Sizes, leaves: &mut Leaves, by: [LogitScaling; 2]) -> ScoreMod {
        ScoreMod::Sum(by.map(|by| ScoreMod::Contextual(contextual(sizes, leaves, 6, by))).into())
    }
    use LogitScaling::{Code, Equation, Listing};
    compare(|sizes, leaves| two(sizes, leaves, [Listing, Listing]));
    compare(|sizes, leaves| two(sizes, leaves, [Listing, Code]));
    compare(|sizes, leaves| two(sizes, leaves, [Listing, Equation]));
    compare(|sizes, leaves| two(sizes, leaves, [Code, Listing]));
    compare(|sizes, leaves| two(sizes, leaves, [Code, Code]));
    compare(|sizes, leaves| two(sizes, leaves, [Code, Equation]));
    compare(|sizes, leaves| two(sizes, leaves, [Equation, Listing]));
    compare(|sizes, leaves| two(sizes, leaves, [Equation, Code]));
    compare(|sizes, leaves| two(sizes, leaves, [Equation, Equation]));
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
        let keys = tensor([sizes.batch, sizes.heads, sizes.columns, sizes.head_dim], 1.0, 17);
        leaves.four.push(keys.clone());
        let contextual = contextual(sizes, leaves, 12, LogitScaling::Listing);
        ScoreMod::Contextual(Contextual { gates: GateSource::Keys(keys), ..contextual })
    });
}

#[test]
fn contextual_slopes() {
    fn slopes(sizes: &Sizes, leaves: &mut Leaves, max_position: f64) -> Contextual {
        let slopes = tensor([sizes.heads], 0.3, 18);
        leaves.one.push(slopes.clone());
        Contextual {
            gates: GateSource::QueryKey,
            max_position,
            function: ContextualFunction::Slope(slopes),
            convention: LogitScaling::Code,
        }
    }
    compare(|sizes, leaves| ScoreMod::Contextual(slopes(sizes, leaves, 11.0)));
    // Unlimited counts: no column is constant, and infinity is never multiplied.
    compare(|sizes, leaves| ScoreMod::Contextual(slopes(sizes, leaves, f64::INFINITY)));
    compare(|sizes, leaves| {
        let convention = LogitScaling::Listing;
        let endless = slopes(sizes, leaves, f64::INFINITY);
        ScoreMod::Contextual(Contextual { gates: GateSource::QueryValue, convention, ..endless })
    });
}

#[test]
fn perceptrons_of_contextual_positions() {
    fn perceptron(sizes: &Sizes, leaves: &mut Leaves, activation: HiddenActivation) -> ScoreMod {
        let (w1, b1) = (tensor([5], 0.3, 23), tensor([5], 0.5, 24));
        let (w2, b2) = (tensor([sizes.head_dim, 5], 0.3, 25), tensor([sizes.head_dim], 0.3, 26));
        leaves.one.extend([w1.clone(), b1.clone(), b2.clone()]);
        leaves.two.push(w2.clone());
        ScoreMod::Contextual(Contextual {
            gates: GateSource::QueryKey,
            max_position: 9.0,
            function: ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation }),
            convention: LogitScaling::Listing,
        })
    }
    compare(|sizes, leaves| perceptron(sizes, leaves, HiddenActivation::Gelu));
    compare(|sizes, leaves| {
        let table = ScoreMod::Contextual(contextual(sizes, leaves, 6, LogitScaling::Listing));
        ScoreMod::Sum(vec![perceptron(sizes, leaves, HiddenActivation::Relu), table])
    });
}

#[test]
fn hard_attention_falls_back_to_the_reference() {
    compare(|sizes, leaves| ScoreMod::Sum(vec![slope(sizes, leaves), ScoreMod::Hard]));
}

#[test]
fn sums_of_everything() {
    compare(|sizes, leaves| {
        let table = contextual(sizes, leaves, 8, LogitScaling::Code);
        let second = contextual(sizes, leaves, 4, LogitScaling::Listing);
        ScoreMod::Sum(vec![
            slope(sizes, leaves),
            distance(sizes, leaves, Beyond::Zero),
            ScoreMod::Sum(vec![
                query_distance(sizes, leaves, Beyond::Last),
                query_distance(sizes, leaves, Beyond::Zero),
            ]),
            decay(sizes, leaves),
            dense(sizes, leaves),
            dense(sizes, leaves),
            ScoreMod::Contextual(table),
            ScoreMod::Contextual(second),
        ])
    });
}
