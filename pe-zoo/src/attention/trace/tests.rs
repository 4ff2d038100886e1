use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::attention::{Engine, LayerInput, LayerOutput, Weights, layer};
use crate::reference::Heads;
use crate::reference::cope::{GateSide, positions};
use crate::score::LogitScaling;
use crate::testkit::close::{self, F32_REORDERED, numbers};
use crate::testkit::problem::{Problem, tensor3, tensor4};
use crate::testkit::randomise;
use crate::{Combination, Dims, Positions, TokenState};

const TOKENS: usize = 7;
const DIMS: Dims =
    Dims { layers: 2, width: 8, heads: 2, head_dim: 4, train_len: TOKENS, max_len: TOKENS };

/// One layer's attention over a random problem, by the reference engine.
fn attended(text: &str, weights: Weights) -> (LayerOutput, Problem) {
    let device = Device::flex();
    let config = Combination::parse(text).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let encoding = randomise(config.init(&DIMS, &mut rng, &device).unwrap(), 2);
    let problem = Problem::random(1, TOKENS, &DIMS, 3);
    let at = Positions::contiguous(0, TOKENS);
    let x = tensor3(&problem.x, &device);
    let carried = TokenState::default();
    let input = LayerInput {
        engine: Engine::Reference,
        ..LayerInput::new(
            0,
            &at,
            &x,
            [&problem.q, &problem.k, &problem.v].map(|heads| tensor4(heads, &device)),
            &carried,
        )
    };
    (layer(&encoding, input, None, weights), problem)
}

fn explained(text: &str) -> LayerOutput {
    attended(text, Weights::Explain).0
}

/// Returns the values of one trace, `[head][row][column]`; values that belong to columns alone are
/// repeated for all rows.
fn of(output: &LayerOutput, kind: TraceKind) -> Heads {
    let trace = output.traces.iter().find(|trace| trace.kind == kind).unwrap();
    square(trace.values.clone())
}

fn square(values: Tensor<4>) -> Heads {
    let values = numbers(values.expand([1, DIMS.heads, TOKENS, TOKENS]));
    let rows = values.chunks(TOKENS).map(<[f64]>::to_vec).collect::<Vec<_>>();
    rows.chunks(TOKENS).map(<[Vec<f64>]>::to_vec).collect()
}

/// Asserts that two tables are equal wherever rows see columns.
fn assert_seen(actual: &Heads, expected: impl Fn(usize, usize, usize) -> f64) {
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    for (h, head) in actual.iter().enumerate() {
        for i in 0..TOKENS {
            for j in 0..=i {
                found.push(head[i][j]);
                wanted.push(expected(h, i, j));
            }
        }
    }
    close::compare(&found, &wanted, F32_REORDERED).unwrap();
}

#[test]
fn contextual_positions_are_those_of_the_scalar_reference_and_sums_of_the_gates() {
    for (text, convention, by_values) in [
        ("cope", LogitScaling::Listing, false),
        ("cope{convention=equation}", LogitScaling::Equation, false),
        ("cope{gates=query-value}", LogitScaling::Listing, true),
        ("cope-mlp", LogitScaling::Listing, false),
    ] {
        let (output, problem) = attended(text, Weights::Explain);
        let (gates, found) =
            (of(&output, TraceKind::Gates), of(&output, TraceKind::ContextualPositions));
        let at = Positions::contiguous(0, TOKENS);
        let side = if by_values { GateSide::Values } else { GateSide::Keys };
        let input = problem.scalar(0, 0, &at);
        let truth = positions(&input, f64::INFINITY, convention, side);
        assert_seen(&found, |h, i, j| truth[h][i][j]);
        assert_seen(&found, |h, i, j| gates[h][i][j..=i].iter().sum());
        assert!(gates.iter().flatten().flatten().all(|gate| (0.0..=1.0).contains(gate)));
    }
}

#[test]
fn forgetting_says_what_retention_keeps_and_retention_what_is_added() {
    let output = explained("fox");
    let forgetting = of(&output, TraceKind::Forgetting);
    let retention = of(&output, TraceKind::Retention);
    let added = of(&output, TraceKind::AddedLogits);
    assert_seen(&retention, |h, i, j| {
        forgetting[h][i][j + 1..=i].iter().map(|x| 1.0 - x).product()
    });
    assert_seen(&retention, |h, i, j| added[h][i][j].exp());
    assert!(forgetting.iter().flatten().flatten().any(|x| *x > 0.05), "nothing is forgotten");
}

#[test]
fn shares_of_the_stick_give_the_weights() {
    let output = explained("stick-breaking");
    let shares = of(&output, TraceKind::Shares);
    let weights = square(output.weights.unwrap());
    assert_seen(&weights, |h, i, j| {
        let left: f64 = shares[h][i][j + 1..i.max(j + 1)].iter().map(|x| 1.0 - x).product();
        if j < i { shares[h][i][j] * left } else { 0.0 }
    });
}

#[test]
fn rotations_make_products_of_distances_alone() {
    let products = of(&explained("rope"), TraceKind::PositionProducts);
    // Frequencies 1 and 1/100 of a head of 4 channels.
    let expected = |distance: f64| 2.0 * (distance.cos() + (distance / 100.0).cos()) / 2.0;
    assert_seen(&products, |_, i, j| expected((i - j) as f64));
}

#[test]
fn slopes_are_added_and_leave_products_alone() {
    let output = explained("alibi");
    let kinds = output.traces.iter().map(|trace| trace.kind).collect::<Vec<_>>();
    assert_eq!(kinds, [TraceKind::AddedLogits]);
    // 2 heads: slopes 2^-4 and 2^-8.
    let slopes = [0.0625, 0.003_906_25];
    assert_seen(&of(&output, TraceKind::AddedLogits), |h, i, j| -slopes[h] * (i - j) as f64);
    assert!(explained("nope").traces.is_empty());
}

#[test]
fn combinations_show_what_each_part_does() {
    let kinds = |text| explained(text).traces.iter().map(|t| t.kind).collect::<Vec<_>>();
    assert_eq!(
        kinds("cope+rope"),
        [
            TraceKind::Gates,
            TraceKind::ContextualPositions,
            TraceKind::AddedLogits,
            TraceKind::PositionProducts
        ]
    );
    assert!(kinds("fox+rope").contains(&TraceKind::Forgetting));
}

#[test]
fn looking_changes_nothing_and_every_encoding_can_be_looked_into() {
    for meta in crate::Registry::builtin().cards() {
        let [dropped, returned, explained] = [Weights::Drop, Weights::Return, Weights::Explain]
            .map(|weights| attended(meta.id, weights).0);
        assert_eq!(numbers(dropped.output.clone()), numbers(explained.output), "{}", meta.id);
        assert!(dropped.traces.is_empty() && dropped.weights.is_none(), "{}", meta.id);
        assert!(returned.traces.is_empty() && returned.weights.is_some(), "{}", meta.id);
        assert!(explained.weights.is_some(), "{}", meta.id);
        for trace in explained.traces {
            let values = square(trace.values);
            let seen = |head: &Vec<Vec<f64>>| {
                (0..TOKENS).all(|i| head[i][..=i].iter().all(|x| x.is_finite()))
            };
            assert!(values.iter().all(seen), "{}: {:?}", meta.id, trace.kind);
        }
    }
}
