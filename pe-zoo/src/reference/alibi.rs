//! Scalar reference of ALiBi: Press et al. 2021, figure 3 and section 3.

use super::{Heads, ScalarInput};

/// Bias of every visible pair, `-slope_h (i - j)`.
pub fn bias(input: &ScalarInput, slopes: &[f64]) -> Heads {
    input.map(|h, _row, i, j| -slopes[h] * (input.position(i) - input.position(j)))
}

/// Logits `q.k / sqrt(D) - slope_h (i - j)`.
pub fn logits(input: &ScalarInput, slopes: &[f64]) -> Heads {
    input.biased(&bias(input, slopes))
}

/// Logits in the authors' form, `q.k / sqrt(D) + slope_h j`, which differs by a constant in each
/// row.
pub fn logits_by_column(input: &ScalarInput, slopes: &[f64]) -> Heads {
    let bias = input.map(|h, _row, _i, j| slopes[h] * input.positions[j] as f64);
    input.biased(&bias)
}
