//! Hua et al. 2024 (FoPE), as the authors' `olmo/model.py` has it.

use super::{Heads, ScalarInput, Tokens, dot};

/// What one layer mixes its waves with.
#[derive(Debug, Clone)]
pub struct Mixture {
    /// `[head][frequency][output]`.
    pub cos: Vec<Tokens>,
    /// `[head][frequency][output]`.
    pub sin: Vec<Tokens>,
    /// What stands for the sine of pairs past the outputs.
    pub padded_sin: f64,
}

/// Pairs `(m, m + D/2)` turned by the mixed cosines and sines.
pub fn logits(input: &ScalarInput, frequencies: &[f64], mixture: &Mixture) -> Heads {
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
    let turned = |h: usize, u: &[f64], position: usize| -> Vec<f64> {
        let mut out = u.to_vec();
        for m in 0..half {
            let (cos, sin) = wave(h, m, position);
            out[m] = u[m] * cos - u[m + half] * sin;
            out[m + half] = u[m + half] * cos + u[m] * sin;
        }
        out
    };
    input.map(|h, row, i, j| {
        let q = turned(h, &input.q[h][row], input.positions[i]);
        let k = turned(h, &input.k[h][j], input.positions[j]);
        dot(&q, &k) / (head_dim as f64).sqrt()
    })
}
