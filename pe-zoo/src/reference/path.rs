//! Scalar reference of PaTH attention: Yang et al. 2025, section 3, products of Householder-like
//! maps.

use super::{Heads, ScalarInput, Tokens, decay, dot};

/// Directions `w_t = L2norm(SiLU(conv(x_t down up)))`, `[head][token][D]`; `kernel[tap][channel]`,
/// the last tap being the token itself and tokens before the first being zero.
pub fn directions(x: &Tokens, down: &Tokens, up: &Tokens, kernel: &Tokens, heads: usize) -> Heads {
    let row_times = |row: &[f64], matrix: &Tokens| -> Vec<f64> {
        (0..matrix[0].len()).map(|c| row.iter().zip(matrix).map(|(a, m)| a * m[c]).sum()).collect()
    };
    let raw = x.iter().map(|x| row_times(&row_times(x, down), up)).collect::<Vec<_>>();
    let width = up[0].len();
    let head_dim = width / heads;
    let active = (0..x.len()).map(|t| {
        (0..width)
            .map(|c| {
                let mut sum = 0.0;
                for (back, tap) in kernel.iter().rev().enumerate() {
                    if t >= back {
                        sum += tap[c] * raw[t - back][c];
                    }
                }
                sum / (1.0 + (-sum).exp())
            })
            .collect::<Vec<f64>>()
    });
    let active = active.collect::<Vec<_>>();
    let unit = |u: &[f64]| -> Vec<f64> {
        let norm = (dot(u, u) + 1e-6).sqrt();
        u.iter().map(|x| x / norm).collect()
    };
    (0..heads)
        .map(|h| active.iter().map(|u| unit(&u[h * head_dim..(h + 1) * head_dim])).collect())
        .collect()
}

/// Strengths `beta_t = 2 sigma(w_h . x_t + b_h)`, `[head][token]`.
pub fn strengths(x: &Tokens, weight: &Tokens, bias: &[f64]) -> Tokens {
    decay::per_head(x, weight, bias)
        .into_iter()
        .map(|head| head.into_iter().map(|z| 2.0 / (1.0 + (-z).exp())).collect())
        .collect()
}

/// Logits `q_i . H_i H_{i-1} ... H_{j+1} k_j / sqrt(D)` with `H_t = I - beta_t w_t w_t^T`.
pub fn logits(input: &ScalarInput, w: &Heads, beta: &Tokens) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    input.map(|h, row, i, j| {
        let mut key = input.k[h][j].clone();
        for t in j + 1..=i {
            let along = beta[h][t] * dot(&w[h][t], &key);
            for (x, w) in key.iter_mut().zip(&w[h][t]) {
                *x -= along * w;
            }
        }
        dot(&input.q[h][row], &key) * scale
    })
}

/// PaTH-FoX as in the authors' code: both the product and the sum of `ln f` over `j+1..=i` are
/// divided by `sqrt(D)`.
pub fn logits_with_forgetting(
    input: &ScalarInput,
    w: &Heads,
    beta: &Tokens,
    log_forget: &Tokens,
) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    let products = logits(input, w, beta);
    input.map(|h, row, i, j| {
        products[h][row][j] + log_forget[h][j + 1..=i].iter().sum::<f64>() * scale
    })
}
