//! Scalar references of the kernels of KERPLE, Chi et al. 2022 (arXiv:2205.09921), and of the prior of BAM, Bianchessi et al. 2025
//! (arXiv:2505.22842).
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

/// Bias of the generalised Gaussian kernel, `-exp(a_h) (|j - i - mu_h| + 1e-5)^p_h`, `mu_h = exp(m_h) - exp(-m_h)`, 0 without
/// `m`. Parameters are not bounded.
pub fn generalized_gaussian(input: &ScalarInput, a: &[f64], p: &[f64], m: Option<&[f64]>) -> Heads {
    input.map(|h, _row, i, j| {
        let mean = m.map_or(0.0, |m| m[h].exp() - (-m[h]).exp());
        let from_mean = (input.distance(i, j) as f64 + mean).abs() + 1e-5;
        -a[h].exp() * from_mean.powf(p[h])
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
