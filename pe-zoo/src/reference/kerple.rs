//! Scalar references of the two kernels of KERPLE: Chi et al. 2022 (arXiv:2205.09921).
//!
//! Parameters have one value per head, at least 0.01. Results are `[head][row][column]` for the columns that a row may see.

use super::{Heads, ScalarInput};

/// Lower bound of both parameters.
const SMALLEST: f64 = 0.01;

/// Bias of the logarithmic kernel, `-p_h ln(1 + a_h (i - j))`.
pub fn logarithmic(input: &ScalarInput, a: &[f64], p: &[f64]) -> Heads {
    input.map(|h, _row, i, j| {
        let distance = input.distance(i, j) as f64;
        -p[h].max(SMALLEST) * (1.0 + a[h].max(SMALLEST) * distance).ln()
    })
}

/// Bias of the power kernel, `-a_h (i - j)^p_h`, `p_h` at most 2.
pub fn power(input: &ScalarInput, a: &[f64], p: &[f64]) -> Heads {
    input.map(|h, _row, i, j| {
        let distance = input.distance(i, j) as f64;
        -a[h].max(SMALLEST) * distance.powf(p[h].clamp(SMALLEST, 2.0))
    })
}

/// Logits of the weight form, `q_i . k_j / sqrt(D) exp(-wa_h (i - j)^wp_h) + bias`, `wp_h` at most 2.
pub fn weighted(input: &ScalarInput, bias: &Heads, wa: &[f64], wp: &[f64]) -> Heads {
    let root = (input.head_dim() as f64).sqrt();
    input.map(|h, row, i, j| {
        let distance = input.distance(i, j) as f64;
        let exponent = wa[h].max(SMALLEST) * distance.powf(wp[h].clamp(SMALLEST, 2.0));
        input.content(h, row, j) / root * (-exponent).exp() + bias[h][row][j]
    })
}
