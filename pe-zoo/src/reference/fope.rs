//! Scalar reference of FoPE: Hua et al. 2024, as in the authors' `olmo/model.py`.

use super::{ScalarInput, Tokens};

/// Mixing weights of the waves of one layer.
#[derive(Debug, Clone)]
pub struct Mixture {
    /// Weights of the cosines, `[head][frequency][output]`.
    pub cos: Vec<Tokens>,
    /// Weights of the sines, `[head][frequency][output]`.
    pub sin: Vec<Tokens>,
    /// Value used in place of the sine for pairs beyond the outputs.
    pub padded_sin: f64,
}

/// Rotates pairs `(m, m + D/2)` of queries and keys by the mixed cosines and sines.
pub fn transformed(input: &ScalarInput, frequencies: &[f64], mixture: &Mixture) -> ScalarInput {
    let head_dim = input.head_dim();
    let half = head_dim / 2;
    let wave = |h: usize, m: usize, position: usize| -> (f64, f64) {
        if m >= mixture.cos[h][0].len() {
            return (1.0, mixture.padded_sin);
        }
        let mut sums = (0.0, 0.0);
        for (d, f) in frequencies.iter().enumerate() {
            sums.0 += (position as f64 * f).cos() * mixture.cos[h][d][m];
            sums.1 += (position as f64 * f).sin() * mixture.sin[h][d][m];
        }
        sums
    };
    let rotated = |h: usize, u: &[f64], position: usize| -> Vec<f64> {
        let mut out = u.to_vec();
        for m in 0..half {
            let (cos, sin) = wave(h, m, position);
            out[m] = u[m] * cos - u[m + half] * sin;
            out[m + half] = u[m + half] * cos + u[m] * sin;
        }
        out
    };
    let rotated = |h: usize, u: &[f64], column: usize| rotated(h, u, input.positions[column]);
    input.changed(rotated, rotated)
}
