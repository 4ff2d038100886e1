//! Scalar reference of DAPE: Zheng et al. 2024, and its second version with a convolution along the
//! keys.

use super::{Heads, ScalarInput};

/// Weights of the perceptron across heads.
#[derive(Debug, Clone)]
pub struct ScalarMixer {
    /// Hidden weights, `[hidden unit][tap][plane]`; planes are the heads' logits, then the heads'
    /// base biases.
    pub inner: Vec<Vec<Vec<f64>>>,
    /// Hidden biases, one per hidden unit.
    pub inner_bias: Vec<f64>,
    /// Output weights, `[head][tap][hidden unit]`.
    pub outer: Vec<Vec<Vec<f64>>>,
    /// Output biases, one per head.
    pub outer_bias: Vec<f64>,
}

/// Slope of LeakyReLU for negative inputs.
const NEGATIVE_SLOPE: f64 = 0.01;

/// Logits `s + b + g([s; b])`, with `s` the plain logits, `b` the base bias and `g` the perceptron
/// along the keys of one row.
pub fn logits(input: &ScalarInput, base: Option<&Heads>, mixer: &ScalarMixer) -> Heads {
    let content = input.plain();
    let mut planes = content.clone();
    planes.extend(base.into_iter().flatten().cloned());
    input.map(|h, row, _i, j| {
        let base = base.map_or(0.0, |base| base[h][row][j]);
        content[h][row][j] + base + mixer.at(&planes, h, row, j)
    })
}

impl ScalarMixer {
    fn at(&self, planes: &Heads, head: usize, row: usize, key: usize) -> f64 {
        let mut sum = self.outer_bias[head];
        for (tap, weights) in self.outer[head].iter().enumerate() {
            // Left of the first key everything is 0, the hidden units' bias included.
            if let Some(key) = (key + tap).checked_sub(weights_side(&self.outer[head])) {
                for (unit, weight) in weights.iter().enumerate() {
                    sum += weight * self.hidden(planes, unit, row, key);
                }
            }
        }
        sum
    }

    fn hidden(&self, planes: &Heads, unit: usize, row: usize, key: usize) -> f64 {
        let mut z = self.inner_bias[unit];
        for (tap, weights) in self.inner[unit].iter().enumerate() {
            let key = (key + tap).checked_sub(weights_side(&self.inner[unit]));
            for (plane, weight) in planes.iter().zip(weights) {
                // Keys that the row may not see count as 0.
                z += weight * key.and_then(|key| plane[row].get(key)).copied().unwrap_or(0.0);
            }
        }
        if z > 0.0 { z } else { NEGATIVE_SLOPE * z }
    }
}

/// Number of taps on one side of the middle.
fn weights_side(taps: &[Vec<f64>]) -> usize {
    taps.len() / 2
}
