//! Scalar reference of the Forgetting Transformer: Lin et al. 2025, section 3.

use super::Tokens;

/// Affine projection `w_h . x_t + b_h`, `[head][token]`; `weight[channel][head]`.
pub fn per_head(x: &Tokens, weight: &Tokens, bias: &[f64]) -> Tokens {
    let value = |h: usize, token: &Vec<f64>| {
        bias[h] + token.iter().zip(weight).map(|(x, row)| x * row[h]).sum::<f64>()
    };
    (0..bias.len()).map(|h| x.iter().map(|token| value(h, token)).collect()).collect()
}

/// Logarithms of the forget gates, `ln f_t = ln sigma(w_h . x_t + b_h)`, `[head][token]`.
pub fn log_forget(x: &Tokens, weight: &Tokens, bias: &[f64]) -> Tokens {
    let log_sigmoid = |z: f64| z.min(0.0) - (-z.abs()).exp().ln_1p();
    per_head(x, weight, bias)
        .into_iter()
        .map(|head| head.into_iter().map(log_sigmoid).collect())
        .collect()
}
