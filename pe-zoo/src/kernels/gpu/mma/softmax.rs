//! Weights of a block from its logits.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::power_of_two;
use super::config::{ACROSS, MmaConfig};
use super::tile::{Results, SumPair, row_max};

/// Sums of the rows so far, relative to their largest logits.
#[derive(CubeType)]
pub(super) struct Softmax {
    pub(super) sums: Results,
    pub(super) largest: Array<f32>,
    pub(super) total: Array<f32>,
}

/// Largest logit of a row, from the largest score: without biases, scores are logits only after the multiplication.
#[cube]
pub(super) fn largest_logit(score: f32, scale: f32, #[comptime] config: MmaConfig) -> f32 {
    let mut logit = score;
    if comptime![!config.has_logits()] {
        logit = score * scale;
    }
    logit
}

/// Converts logarithms of the weights of sticks to weights.
#[cube]
pub(super) fn weigh(scores: &mut Results, #[comptime] config: MmaConfig) {
    #[unroll]
    for n in 0..comptime![config.block() / ACROSS] {
        #[unroll]
        for eight in 0..comptime![config.unit_rows()] {
            let pair = scores.index(n)[eight];
            let mut weights = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                weights.insert(one, power_of_two(pair.extract(one), comptime![config.native]));
            }
            scores.index_mut(n)[eight] = weights;
        }
    }
}

/// Converts scores to weights relative to the largest logits so far.
#[cube]
pub(super) fn soften(
    scores: &mut Results,
    softmax: &mut Softmax,
    scale: f32,
    #[comptime] config: MmaConfig,
) {
    let columns = comptime![config.block()];
    #[unroll]
    for eight in 0..comptime![config.unit_rows()] {
        let mut most = softmax.largest[eight];
        #[unroll]
        for n in 0..comptime![columns / ACROSS] {
            let pair = scores.index(n)[eight];
            most = max(most, max(pair.extract(0usize), pair.extract(1usize)));
        }
        most = row_max(most);
        let logit = largest_logit(most, scale, config);
        let shrink = power_of_two(
            largest_logit(softmax.largest[eight], scale, config) - logit,
            comptime![config.native],
        );
        softmax.largest[eight] = most;
        let mut sum = f32::new(0.0);
        #[unroll]
        for n in 0..comptime![columns / ACROSS] {
            let pair = scores.index(n)[eight];
            let mut weights = SumPair::empty();
            #[unroll]
            for one in 0..2usize {
                let mut below = pair.extract(one) - logit;
                if comptime![!config.has_logits()] {
                    below = fma(pair.extract(one), scale, -logit);
                }
                let weight = power_of_two(below, comptime![config.native]);
                weights.insert(one, weight);
                sum += weight;
            }
            scores.index_mut(n)[eight] = weights;
        }
        softmax.total[eight] = softmax.total[eight] * shrink + sum;
        #[unroll]
        for n in 0..comptime![config.value_width() / ACROSS] {
            let old = softmax.sums.index(n)[eight];
            softmax.sums.index_mut(n)[eight] = old * SumPair::new(shrink);
        }
    }
}
