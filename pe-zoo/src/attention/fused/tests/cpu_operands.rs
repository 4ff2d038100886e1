//! Compares modifiers that have operands of their own with the reference engine.

use burn::tensor::Tensor;
use burn::tensor::activation::{sigmoid, softplus};

use super::{
    Attend, Leaves, ODD, Sizes, Way, compare, compare_at, compare_ways, contextual, decay, dense,
    distance, positions, query_distance, reference, slope, tensor,
};
use crate::ScoreMod;
use crate::score::{
    Beyond, FarPairs, FarProducts, HeadMlp, LogitScaling, PositionMlp, Reflected, StepPrices,
    TokenPrice,
};

pub(super) fn position_mlp(
    sizes: &Sizes,
    leaves: &mut Leaves,
    [c, threshold]: [f64; 2],
    negative_slope: f64,
) -> PositionMlp {
    let leaf = |leaves: &mut Leaves, shape, seed, about: f64| {
        let leaf = tensor::<1>(shape, 0.5, seed);
        leaves.one.push(leaf.clone());
        leaf * 0.1 + about
    };
    let (w1, b1) = (tensor([7], 1.0, 41), tensor([7], 0.7, 42));
    let (w2, b2) = (tensor([sizes.heads, 7], 1.0, 43), tensor([sizes.heads], 1.0, 44));
    leaves.one.extend([w1.clone(), b1.clone(), b2.clone()]);
    leaves.two.push(w2.clone());
    let (c, threshold) = (leaf(leaves, [1], 45, c), leaf(leaves, [1], 46, threshold));
    PositionMlp { c, threshold, eps: 1e-6, w1, b1, w2, b2, negative_slope }
}

pub(super) fn head_mlp(
    sizes: &Sizes,
    leaves: &mut Leaves,
    taps: usize,
    base: Option<ScoreMod>,
) -> ScoreMod {
    let planes = sizes.heads * if base.is_some() { 2 } else { 1 };
    let (w1, c1) = (tensor([5, taps * planes], 0.3, 51), tensor([5], 0.5, 52));
    let (w2, c2) = (tensor([sizes.heads, taps * 5], 0.4, 53), tensor([sizes.heads], 0.5, 54));
    leaves.two.extend([w1.clone(), w2.clone()]);
    leaves.one.extend([c1.clone(), c2.clone()]);
    ScoreMod::HeadMlp(HeadMlp {
        base: base.map(Box::new),
        taps,
        w1,
        c1,
        w2,
        c2,
        negative_slope: 0.01,
        scale: 0.4,
    })
}

fn per_token(
    sizes: &Sizes,
    leaves: &mut Leaves,
    [tokens, width]: [usize; 2],
    seed: u64,
) -> Tensor<4> {
    let leaf = tensor([sizes.batch, sizes.heads, tokens, width], 1.0, seed);
    leaves.four.push(leaf.clone());
    leaf
}

pub(super) fn token_price(
    sizes: &Sizes,
    leaves: &mut Leaves,
    [keys, queries]: [bool; 2],
) -> ScoreMod {
    let rate = tensor([sizes.heads], 0.05, 61);
    leaves.one.push(rate.clone());
    let mut price = |tokens, seed| softplus(per_token(sizes, leaves, [tokens, 1], seed), 1.0);
    let keys = keys.then(|| price(sizes.columns, 62));
    let queries = queries.then(|| price(sizes.rows, 63));
    ScoreMod::TokenPrice(TokenPrice { rate, keys, queries })
}

pub(super) fn row_distance(sizes: &Sizes, leaves: &mut Leaves, beyond: Beyond) -> ScoreMod {
    let table = tensor([5, 23], 1.0, 69);
    leaves.two.push(table.clone());
    let vectors = per_token(sizes, leaves, [sizes.rows, 5], 70);
    ScoreMod::RowDistance { vectors, table, beyond }
}

#[test]
fn distance_tables_of_vectors_of_the_rows() {
    compare(|sizes, leaves| row_distance(sizes, leaves, Beyond::Last));
    compare(|sizes, leaves| row_distance(sizes, leaves, Beyond::Zero));
    compare(|sizes, leaves| {
        let of_queries = query_distance(sizes, leaves, Beyond::Zero);
        ScoreMod::Sum(vec![row_distance(sizes, leaves, Beyond::Zero), of_queries])
    });
    // The second one becomes a dense bias.
    compare(|sizes, leaves| {
        let two = [Beyond::Zero, Beyond::Last].map(|beyond| row_distance(sizes, leaves, beyond));
        ScoreMod::Sum(two.into())
    });
}

pub(super) fn step_prices(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let slopes = tensor([sizes.heads], 0.3, 64);
    leaves.one.push(slopes.clone());
    let queries = per_token(sizes, leaves, [sizes.rows, 6], 65);
    let keys = per_token(sizes, leaves, [sizes.columns, 6], 66);
    ScoreMod::StepPrices(StepPrices { queries, keys, slopes })
}

#[test]
fn step_prices_of_more_channels_of_zeros() {
    let padded = |sizes: &Sizes, leaves: &mut Leaves| match step_prices(sizes, leaves) {
        ScoreMod::StepPrices(prices) => ScoreMod::StepPrices(prices.in_whole_pieces()),
        other => other,
    };
    let at = &positions(&ODD)[0];
    let ways = [&step_prices as Way<'_>, &padded].map(|make| (reference as Attend, make));
    compare_ways(&ODD, at, 1.0, ways, || {
        let shape = |tokens| [ODD.batch, ODD.heads, tokens, ODD.head_dim];
        (tensor(shape(ODD.rows), 1.0, 1), tensor(shape(ODD.columns), 1.0, 2))
    });
}

pub(super) fn reflected(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let directions = per_token(sizes, leaves, [sizes.columns, sizes.head_dim], 67);
    let length = (directions.clone().powi_scalar(2).sum_dim(3) + 1e-6).sqrt();
    let strengths = sigmoid(per_token(sizes, leaves, [sizes.columns, 1], 68)) * 2.0;
    ScoreMod::Reflected(Reflected { directions: directions / length, strengths })
}

#[test]
fn perceptrons_of_distance_over_position() {
    // Rows below the threshold, beyond it, and on both sides; a scale that is negative.
    compare(|sizes, leaves| ScoreMod::PositionMlp(position_mlp(sizes, leaves, [0.1, 500.0], 0.0)));
    compare(|sizes, leaves| ScoreMod::PositionMlp(position_mlp(sizes, leaves, [-0.7, 30.0], 0.01)));
    compare(|sizes, leaves| {
        let mlp = ScoreMod::PositionMlp(position_mlp(sizes, leaves, [3.0, 0.5], 0.0));
        ScoreMod::Sum(vec![slope(sizes, leaves), mlp])
    });
}

#[test]
fn two_perceptrons_of_distance_in_one_sum() {
    compare(|sizes, leaves| {
        let two = [[0.1, 500.0], [1.0, 10.0]];
        let two = two.map(|at| ScoreMod::PositionMlp(position_mlp(sizes, leaves, at, 0.01)));
        ScoreMod::Sum(two.into())
    });
}

#[test]
fn hidden_units_without_weight_or_bias() {
    compare(|sizes, leaves| {
        let mut mlp = position_mlp(sizes, leaves, [0.4, 20.0], 0.0);
        // Units without a breakpoint, and with one at 0 from either side.
        let w1 = Tensor::<1>::from_floats([0., 1., -1., 0., 2., -2., 1.], &mlp.w1.device());
        let b1 = Tensor::<1>::from_floats([0., 0., 0., 1., -1., 1., 1.], &mlp.w1.device());
        (mlp.w1, mlp.b1) = (mlp.w1 * 0.0 + w1, mlp.b1 * 0.0 + b1);
        ScoreMod::PositionMlp(mlp)
    });
}

#[test]
fn perceptrons_across_heads_with_every_base() {
    compare(|sizes, leaves| head_mlp(sizes, leaves, 1, None));
    compare(|sizes, leaves| {
        let base = slope(sizes, leaves);
        head_mlp(sizes, leaves, 1, Some(base))
    });
    compare(|sizes, leaves| {
        let base = distance(sizes, leaves, Beyond::Zero);
        head_mlp(sizes, leaves, 1, Some(base))
    });
    compare(|sizes, leaves| {
        let base = ScoreMod::PositionMlp(position_mlp(sizes, leaves, [0.5, 20.0], 0.01));
        head_mlp(sizes, leaves, 1, Some(base))
    });
}

#[test]
fn convolutions_across_heads_with_every_base() {
    compare(|sizes, leaves| head_mlp(sizes, leaves, 3, None));
    compare(|sizes, leaves| {
        let base = distance(sizes, leaves, Beyond::Last);
        head_mlp(sizes, leaves, 3, Some(base))
    });
    compare(|sizes, leaves| {
        let base = ScoreMod::PositionMlp(position_mlp(sizes, leaves, [0.5, 20.0], 0.01));
        head_mlp(sizes, leaves, 3, Some(base))
    });
}

#[test]
fn a_base_without_operands_is_made_dense() {
    compare(|sizes, leaves| {
        let base = dense(sizes, leaves);
        head_mlp(sizes, leaves, 1, Some(base))
    });
    compare(|sizes, leaves| {
        let base = ScoreMod::Sum(vec![]);
        // An empty sum is no bias for either engine.
        let ScoreMod::HeadMlp(mlp) = head_mlp(sizes, leaves, 1, None) else { unreachable!() };
        ScoreMod::HeadMlp(HeadMlp { base: Some(Box::new(base)), ..mlp })
    });
}

#[test]
fn prices_of_tokens() {
    compare(|sizes, leaves| token_price(sizes, leaves, [true, false]));
    compare(|sizes, leaves| token_price(sizes, leaves, [false, true]));
    compare(|sizes, leaves| token_price(sizes, leaves, [true, true]));
    // Positions there are not exact in f32, but distances are.
    for at in positions(&ODD) {
        compare_at(&ODD, &at.shifted(1 << 25), 1.0, |sizes, leaves| {
            token_price(sizes, leaves, [true, true])
        });
    }
}

#[test]
fn prices_of_steps() {
    compare(step_prices);
}

#[test]
fn products_of_reflected_queries_and_keys() {
    compare(reflected);
    compare(|sizes, leaves| {
        ScoreMod::Sum(vec![reflected(sizes, leaves), decay(sizes, leaves), slope(sizes, leaves)])
    });
}

pub(super) fn far_products(sizes: &Sizes, leaves: &mut Leaves, pairs: FarPairs) -> ScoreMod {
    let queries = per_token(sizes, leaves, [sizes.rows, sizes.head_dim], 69);
    let keys = per_token(sizes, leaves, [sizes.columns, sizes.head_dim], 70);
    ScoreMod::FarProducts(FarProducts { queries, keys, pairs })
}

/// Function that makes products of other vectors of these pairs.
macro_rules! far {
    ($pairs:expr) => {
        |sizes, leaves| far_products(sizes, leaves, $pairs)
    };
}

#[test]
fn products_of_other_vectors_of_far_pairs() {
    // No pair is far, some are, and all are.
    compare(far!(FarPairs::Distance { from: 10_000 }));
    compare(far!(FarPairs::Distance { from: 33 }));
    compare(far!(FarPairs::Distance { from: 5 }));
    compare(far!(FarPairs::Distance { from: 1 }));
    compare(far!(FarPairs::Distance { from: 0 }));
    compare(|sizes, leaves| {
        let gated = contextual(sizes, leaves, 6, LogitScaling::Listing);
        let far = far_products(sizes, leaves, FarPairs::Distance { from: 7 });
        ScoreMod::Sum(vec![ScoreMod::Contextual(gated), far, slope(sizes, leaves)])
    });
    for at in positions(&ODD) {
        let at = at.shifted(1 << 25);
        compare_at(&ODD, &at, 1.0, far!(FarPairs::Distance { from: 4 }));
        compare_at(&ODD, &at, 1.0, far!(FarPairs::Chunks { chunk: 7, last: 2 }));
    }
}

#[test]
fn products_of_other_vectors_of_other_chunks() {
    compare(far!(FarPairs::Chunks { chunk: 10_000, last: 0 }));
    compare(far!(FarPairs::Chunks { chunk: 33, last: 7 }));
    compare(far!(FarPairs::Chunks { chunk: 5, last: 1 }));
    // Rows of a chunk are all near the chunk before.
    compare(far!(FarPairs::Chunks { chunk: 3, last: 8 }));
    compare(far!(FarPairs::Chunks { chunk: 1, last: 0 }));
}

/// Running sums of decays of up to `-fastest` per token.
pub(super) fn channel_decay(sizes: &Sizes, leaves: &mut Leaves, fastest: f64) -> ScoreMod {
    let gates = sigmoid(per_token(sizes, leaves, [sizes.columns, sizes.head_dim], 71));
    ScoreMod::ChannelDecay { cumulative: (gates * -fastest).cumsum(2) }
}

#[test]
fn products_of_channels_that_decay() {
    compare(|sizes, leaves| channel_decay(sizes, leaves, 0.1));
    compare(|sizes, leaves| channel_decay(sizes, leaves, 1.0));
    // Sums of thousands: every factor but that of the own token vanishes.
    compare(|sizes, leaves| channel_decay(sizes, leaves, 300.0));
    compare(|sizes, leaves| {
        let decay = channel_decay(sizes, leaves, 0.3);
        ScoreMod::Sum(vec![decay, slope(sizes, leaves), distance(sizes, leaves, Beyond::Last)])
    });
}

#[test]
fn gates_and_perceptrons_read_products_that_are_not_reflected() {
    compare(|sizes, leaves| {
        let gated = contextual(sizes, leaves, 6, LogitScaling::Listing);
        ScoreMod::Sum(vec![ScoreMod::Contextual(gated), reflected(sizes, leaves)])
    });
    compare(|sizes, leaves| {
        ScoreMod::Sum(vec![head_mlp(sizes, leaves, 1, None), reflected(sizes, leaves)])
    });
}

#[test]
fn all_forms_beside_each_other_and_others() {
    compare(|sizes, leaves| {
        let base = ScoreMod::PositionMlp(position_mlp(sizes, leaves, [0.5, 20.0], 0.01));
        let gated = contextual(sizes, leaves, 6, LogitScaling::Code);
        ScoreMod::Sum(vec![
            head_mlp(sizes, leaves, 3, Some(base)),
            ScoreMod::PositionMlp(position_mlp(sizes, leaves, [0.1, 500.0], 0.0)),
            token_price(sizes, leaves, [true, true]),
            step_prices(sizes, leaves),
            reflected(sizes, leaves),
            ScoreMod::Contextual(gated),
            distance(sizes, leaves, Beyond::Last),
            decay(sizes, leaves),
        ])
    });
}
