//! Scalar reference of FIRE: Li et al. 2023, the listing in its appendix.

use super::{Heads, ScalarInput};

/// Parameters of the learned function of distance and position.
#[derive(Debug, Clone)]
pub struct ScalarFire {
    /// Scale `c` inside the logarithm.
    pub c: f64,
    /// Length below which the normaliser is constant: multiplier times initial length.
    pub threshold: f64,
    /// Constant added to the normaliser.
    pub eps: f64,
    /// Weight and bias of each hidden unit.
    pub hidden: Vec<(f64, f64)>,
    /// Slope of the activation for negative inputs.
    pub negative_slope: f64,
    /// Output weights, `[head][hidden unit]`.
    pub outer: Vec<Vec<f64>>,
    /// Output biases, one per head.
    pub outer_bias: Vec<f64>,
}

impl ScalarFire {
    /// Normalised distance `psi(i - j) / (psi(max(i, |threshold|)) + eps)`, `psi(x) = ln(|c x| +
    /// 1)`.
    pub fn normalised(&self, i: usize, j: usize) -> f64 {
        let psi = |x: f64| ((self.c * x).abs() + 1.0).ln();
        psi((i - j) as f64) / (psi((i as f64).max(self.threshold.abs())) + self.eps)
    }

    /// Bias of every visible pair, `[head][row][column]`.
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
