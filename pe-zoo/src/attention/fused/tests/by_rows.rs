//! Compares attention in blocks of rows, which the backward pass computes again, with that of all rows.

use super::cpu_operands::{
    channel_decay, far_products, head_mlp, position_mlp, reflected, row_distance, step_prices,
    token_price,
};
use super::terms::everything;
use super::*;
use crate::attention::by_rows::attend_by_rows;
use crate::score::FarPairs;

const SIZES: Sizes = Sizes { batch: 2, heads: 3, rows: 13, columns: 18, head_dim: 6, value_dim: 5 };

/// The fused engine, for five rows at a time.
fn fused_by_rows(inputs: AttentionInputs<'_>) -> Tensor<4> {
    attend_by_rows(inputs, 5, fused)
}

/// The reference engine, for five rows at a time.
fn reference_by_rows(inputs: AttentionInputs<'_>) -> Tensor<4> {
    attend_by_rows(inputs, 5, reference)
}

fn compare_blocks(make: Make) {
    let whole = Sizes { columns: SIZES.rows, ..SIZES };
    // The last ones have lost their first columns, as within a horizon.
    let within = Positions::contiguous(9, SIZES.rows).own_block(0..SIZES.rows, 4..22);
    let [cached, scattered] = positions(&SIZES);
    let problems = [
        (&SIZES, cached),
        (&SIZES, scattered),
        (&SIZES, within),
        (&whole, positions(&whole)[0].clone()),
    ];
    for (sizes, at) in problems {
        let ways: [[Attend; 2]; 2] = [[fused_by_rows, fused], [reference_by_rows, reference]];
        for ways in ways {
            compare_ways(sizes, &at, 1.0, ways.map(|attend| (attend, make)), || {
                let shape = |tokens| [sizes.batch, sizes.heads, tokens, sizes.head_dim];
                (tensor(shape(sizes.rows), 1.0, 1), tensor(shape(sizes.columns), 1.0, 2))
            });
        }
    }
}

#[test]
fn perceptrons_across_heads() {
    for_taps::<1>();
    for_taps::<3>();
}

fn for_taps<const TAPS: usize>() {
    compare_blocks(|sizes, leaves| head_mlp(sizes, leaves, TAPS, None));
    compare_blocks(|sizes, leaves| {
        let base = slope(sizes, leaves);
        head_mlp(sizes, leaves, TAPS, Some(base))
    });
    compare_blocks(|sizes, leaves| {
        let base = distance(sizes, leaves, Beyond::Zero);
        head_mlp(sizes, leaves, TAPS, Some(base))
    });
    compare_blocks(|sizes, leaves| {
        let base = ScoreMod::PositionMlp(position_mlp(sizes, leaves, [0.5, 20.0], 0.01));
        head_mlp(sizes, leaves, TAPS, Some(base))
    });
}

#[test]
fn products_of_other_vectors() {
    compare_blocks(reflected);
    compare_blocks(|sizes, leaves| {
        ScoreMod::Sum(vec![reflected(sizes, leaves), decay(sizes, leaves)])
    });
    compare_blocks(|sizes, leaves| channel_decay(sizes, leaves, 0.3));
    compare_blocks(|sizes, leaves| far_products(sizes, leaves, FarPairs::Distance { from: 3 }));
    compare_blocks(|sizes, leaves| {
        let query = tensor([sizes.batch, sizes.heads, sizes.rows, sizes.head_dim], 1.0, 21);
        let key = tensor([sizes.batch, sizes.heads, sizes.columns, sizes.head_dim], 1.0, 22);
        leaves.four.drain(0..2);
        leaves.four.extend([query.clone(), key.clone()]);
        ScoreMod::Products(query.matmul(key.swap_dims(2, 3)))
    });
}

#[test]
fn biases_and_prices() {
    compare_blocks(|_, _| ScoreMod::None);
    compare_blocks(dense);
    compare_blocks(|sizes, leaves| query_distance(sizes, leaves, Beyond::Zero));
    compare_blocks(|sizes, leaves| row_distance(sizes, leaves, Beyond::Last));
    compare_blocks(|sizes, leaves| token_price(sizes, leaves, [true, true]));
    compare_blocks(step_prices);
    compare_blocks(|sizes, leaves| {
        let sinks = tensor([sizes.heads], 2.0, 17);
        leaves.one.push(sinks.clone());
        ScoreMod::Sum(vec![everything(sizes, leaves), ScoreMod::Sinks(sinks)])
    });
    compare_blocks(|sizes, leaves| ScoreMod::Sum(vec![slope(sizes, leaves), ScoreMod::Hard]));
}

#[test]
fn contextual_positions_and_stick_breaking() {
    fn gated(sizes: &Sizes, leaves: &mut Leaves, gates: GateSource) -> ScoreMod {
        let contextual = contextual(sizes, leaves, 6, LogitScaling::Code);
        ScoreMod::Contextual(Contextual { gates, ..contextual })
    }
    compare_blocks(|sizes, leaves| gated(sizes, leaves, GateSource::QueryKey));
    compare_blocks(|sizes, leaves| gated(sizes, leaves, GateSource::QueryValue));
    compare_blocks(|sizes, leaves| {
        let keys = tensor([sizes.batch, sizes.heads, sizes.columns, sizes.head_dim], 1.0, 17);
        leaves.four.push(keys.clone());
        gated(sizes, leaves, GateSource::Keys(keys))
    });
    compare_blocks(|sizes, leaves| {
        let (w1, b1) = (tensor([5], 0.3, 23), tensor([5], 0.5, 24));
        let (w2, b2) = (tensor([sizes.head_dim, 5], 0.3, 25), tensor([sizes.head_dim], 0.3, 26));
        leaves.one.extend([w1.clone(), b1.clone(), b2.clone()]);
        leaves.two.push(w2.clone());
        let activation = HiddenActivation::Gelu;
        let function = ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation });
        let (gates, convention) = (GateSource::QueryKey, LogitScaling::Equation);
        ScoreMod::Contextual(Contextual { gates, max_position: 9.0, function, convention })
    });
    compare_blocks(|sizes, leaves| {
        let rule = StickBreakingRule { current: Current::Excluded, remainder: Remainder::OwnToken };
        ScoreMod::Sum(vec![ScoreMod::StickBreaking(rule), slope(sizes, leaves)])
    });
}

#[test]
fn sums_of_parts() {
    compare_blocks(|sizes, leaves| {
        let base = ScoreMod::PositionMlp(position_mlp(sizes, leaves, [0.5, 20.0], 0.01));
        let gated = contextual(sizes, leaves, 6, LogitScaling::Listing);
        ScoreMod::Sum(vec![
            head_mlp(sizes, leaves, 3, Some(base)),
            ScoreMod::Sum(vec![token_price(sizes, leaves, [true, false]), decay(sizes, leaves)]),
            ScoreMod::Contextual(gated),
            reflected(sizes, leaves),
        ])
    });
}
