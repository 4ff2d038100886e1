//! Scalar reference of Wall attention, as in `fla/layers/wall_attn.py`.

use super::{Heads, ScalarInput, Tokens, dot};

/// Logarithms of the gates, `[column][channel of all heads]`: `ln sigma(W x + b)`, `weight[input][output]`.
pub fn log_gates(x: &Tokens, weight: &Tokens, bias: &[f64]) -> Tokens {
    let column = |n: usize| weight.iter().map(|row| row[n]).collect::<Vec<_>>();
    let columns = (0..bias.len()).map(column).collect::<Vec<_>>();
    // ln sigma(z) without overflow.
    let gate = |z: f64| -((-z.abs()).exp().ln_1p() + (-z).max(0.0));
    x.iter()
        .map(|x| columns.iter().zip(bias).map(|(column, b)| gate(dot(x, column) + b)).collect())
        .collect()
}

/// Logits `sum over c of q_ic k_jc exp(sum over j < l <= i of ln f_lc) / sqrt(D)`.
pub fn logits(input: &ScalarInput, log_gates: &Tokens) -> Heads {
    let (dim, root) = (input.head_dim(), (input.head_dim() as f64).sqrt());
    input.map(|h, row, i, j| {
        let channel = |c: usize| {
            let decay = log_gates[j + 1..=i].iter().map(|gates| gates[h * dim + c]).sum::<f64>();
            input.q[h][row][c] * input.k[h][j][c] * decay.exp()
        };
        (0..dim).map(channel).sum::<f64>() / root
    })
}
