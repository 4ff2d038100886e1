//! Li et al. 2023 (FIRE), the listing in its appendix.

use super::{Heads, ScalarInput};

/// The learned function of distance over position, at one set of weights.
#[derive(Debug, Clone)]
pub struct Fire {
    /// How fast the logarithm bends.
    pub c: f64,
    /// The length below which the normaliser stays as it is: multiplier times initial length.
    pub threshold: f64,
    /// Added to the normaliser.
    pub eps: f64,
    /// Weight and bias of each hidden unit.
    pub hidden: Vec<(f64, f64)>,
    /// What a negative hidden value is multiplied with.
    pub negative_slope: f64,
    /// `[head][hidden unit]`.
    pub outer: Vec<Vec<f64>>,
    /// `[head]`.
    pub outer_bias: Vec<f64>,
}

impl Fire {
    /// `psi(i - j) / (psi(max(i, |threshold|)) + eps)`, `psi(x) = ln(|c x| + 1)`.
    pub fn normalised(&self, i: usize, j: usize) -> f64 {
        let psi = |x: f64| ((self.c * x).abs() + 1.0).ln();
        psi((i - j) as f64) / (psi((i as f64).max(self.threshold.abs())) + self.eps)
    }

    /// The bias of every pair.
    pub fn bias(&self, input: &ScalarInput) -> Heads {
        input.map(|h, _row, i, j| {
            let u = self.normalised(input.positions[i], input.positions[j]);
            let mut sum = self.outer_bias[h];
            for ((weight, bias), outer) in self.hidden.iter().zip(&self.outer[h]) {
                let z = weight * u + bias;
                sum += outer * if z > 0.0 { z } else { self.negative_slope * z };
            }
            sum
        })
    }
}
