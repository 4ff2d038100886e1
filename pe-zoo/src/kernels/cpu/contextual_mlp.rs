//! Contextual positions as input of a perceptron with one hidden layer.
//!
//! `q . e(p) = (w2^T q) . act(w1 p + b1) + q . b2`: the products of the queries with the second
//! layer are computed once per block, and each pair of tokens costs a few operations per hidden
//! unit.

use super::problem::{Block, ContextualMlpOperands};
use super::scratch::Scratch;
use super::view::MatrixMut;
use crate::math::lanes::{self, Lanes};
use crate::score::HiddenActivation;

/// Number of columns whose positions and gradients stay in the L1 cache while all hidden units are
/// processed.
const TILE: usize = 32;

/// Returns the activation and its derivative, which is 0 for `max(x, 0)` at 0. NaN propagates.
#[inline(always)]
fn act(activation: HiddenActivation, x: f32) -> (f32, f32) {
    match activation {
        HiddenActivation::Relu => (if x <= 0.0 { 0.0 } else { x }, if x > 0.0 { 1.0 } else { 0.0 }),
        HiddenActivation::Gelu => {
            let (below, density) = lanes::normal(x);
            (x * below, below + x * density)
        }
    }
}

/// Returns the bias at one position per lane, and its derivative. `products` are those of the
/// queries with the second layer, the constant last.
#[inline(always)]
pub(super) fn at<const R: usize>(
    perceptron: &ContextualMlpOperands<'_>,
    products: &[Lanes<R>],
    positions: &Lanes<R>,
) -> (Lanes<R>, Lanes<R>) {
    let units = perceptron.hidden.shape().columns;
    let (mut bias, mut rise) = (products[units], [0.0; R]);
    for unit in 0..units {
        let (w, b) = (perceptron.hidden.at(0, unit), perceptron.hidden.at(1, unit));
        let product = &products[unit];
        for r in 0..R {
            let (value, slope) = act(perceptron.activation, w * positions[r] + b);
            bias[r] += product[r] * value;
            rise[r] += product[r] * slope * w;
        }
    }
    (bias, rise)
}

/// Adds the gradients of the products (to `s.product_grads`) and of the hidden layer: column by
/// column from `constant_below` on, and from the sum over the columns before.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    perceptron: &ContextualMlpOperands<'_>,
    max: f32,
    constant_below: usize,
    constant: &Lanes<R>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    hidden_grads: &mut MatrixMut<'_>,
) {
    let units = perceptron.hidden.shape().columns;
    s.hidden_grads.clear();
    s.hidden_grads.resize(2 * units, [0.0; R]);
    if constant_below > 0 {
        one(perceptron, units, s, &[max; R], constant);
    }
    for start in (constant_below..block.columns).step_by(TILE) {
        let end = block.columns.min(start + TILE);
        for j in start..end {
            for r in 0..R {
                s.product_grads[units][r] += s.grads[j][r];
            }
        }
        for unit in 0..units {
            let (w, b) = (perceptron.hidden.at(0, unit), perceptron.hidden.at(1, unit));
            let product = s.products[unit];
            let mut product_grad = s.product_grads[unit];
            let (mut of_weight, mut of_bias) = (s.hidden_grads[unit], s.hidden_grads[units + unit]);
            for j in start..end {
                let (counts, grads) = (&s.counts[j], &s.grads[j]);
                for r in 0..R {
                    let position = lanes::at_most(counts[r], max);
                    let (value, slope) = act(perceptron.activation, w * position + b);
                    product_grad[r] += grads[r] * value;
                    let through = grads[r] * product[r] * slope;
                    of_weight[r] += through * position;
                    of_bias[r] += through;
                }
            }
            s.product_grads[unit] = product_grad;
            (s.hidden_grads[unit], s.hidden_grads[units + unit]) = (of_weight, of_bias);
        }
    }
    for unit in 0..units {
        for (row, lanes) in [(0, &s.hidden_grads[unit]), (1, &s.hidden_grads[units + unit])] {
            *hidden_grads.get(row, unit) += lanes[..block.rows].iter().sum::<f32>();
        }
    }
}

/// Adds the gradients of one position per lane.
#[inline(always)]
fn one<const R: usize>(
    perceptron: &ContextualMlpOperands<'_>,
    units: usize,
    s: &mut Scratch<R>,
    positions: &Lanes<R>,
    grads: &Lanes<R>,
) {
    for r in 0..R {
        s.product_grads[units][r] += grads[r];
    }
    for unit in 0..units {
        let (w, b) = (perceptron.hidden.at(0, unit), perceptron.hidden.at(1, unit));
        for r in 0..R {
            let (value, slope) = act(perceptron.activation, w * positions[r] + b);
            s.product_grads[unit][r] += grads[r] * value;
            let through = grads[r] * s.products[unit][r] * slope;
            s.hidden_grads[unit][r] += through * positions[r];
            s.hidden_grads[units + unit][r] += through;
        }
    }
}
