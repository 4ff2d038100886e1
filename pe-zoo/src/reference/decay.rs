//! Scalar references of decays of the logits and of stick-breaking.

use super::{Heads, ScalarInput, Tokens, dot};
use crate::score::{Current, Remainder};

/// Affine projection `w_h . x_t + b_h`, `[head][token]`; `weight[channel][head]`.
pub fn per_head(x: &Tokens, weight: &Tokens, bias: &[f64]) -> Tokens {
    let value = |h: usize, token: &Vec<f64>| {
        bias[h] + token.iter().zip(weight).map(|(x, row)| x * row[h]).sum::<f64>()
    };
    (0..bias.len()).map(|h| x.iter().map(|token| value(h, token)).collect()).collect()
}

/// Logarithms of the forget gates of the Forgetting Transformer (Lin et al. 2025, section 3), `ln f_t = ln sigma(w_h . x_t +
/// b_h)`, `[head][token]`.
pub fn log_forget(x: &Tokens, weight: &Tokens, bias: &[f64]) -> Tokens {
    let log_sigmoid = |z: f64| z.min(0.0) - (-z.abs()).exp().ln_1p();
    per_head(x, weight, bias)
        .into_iter()
        .map(|head| head.into_iter().map(log_sigmoid).collect())
        .collect()
}

/// Sum of `ln f_il` over the tokens `l` in `j..i`, `f_il = sigma((A_h x_i) . (B_h x_l) / sqrt(dim))`, as in
/// `PerRowDataDependentAlibi` of x-transformers; `rows[channel][head * dim + d]` is `A`, `keys` `B`.
pub fn per_row_bias(input: &ScalarInput, rows: &Tokens, keys: &Tokens, heads: usize) -> Heads {
    let dim = rows[0].len() / heads;
    let project = |weight: &Tokens, h: usize, token: usize| -> Vec<f64> {
        let channel = |d: usize| {
            input.x[token].iter().zip(weight).map(|(x, w)| x * w[h * dim + d]).sum::<f64>()
        };
        (0..dim).map(channel).collect()
    };
    let log_forget = |h: usize, i: usize, l: usize| {
        let z = dot(&project(rows, h, i), &project(keys, h, l)) / (dim as f64).sqrt();
        -(1.0 + (-z).exp()).ln()
    };
    input.map(|h, _row, i, j| (j..i).map(|l| log_forget(h, i, l)).sum())
}

/// Logits of the Forgetting Transformer, `q.k / sqrt(D) + sum of ln f over
/// j+1..=i`; `log_forget[h][t]`.
pub fn forgetting(input: &ScalarInput, log_forget: &[Vec<f64>]) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    input.map(|h, row, i, j| {
        input.content(h, row, j) * scale + log_forget[h][j + 1..=i].iter().sum::<f64>()
    })
}

/// Attention weights of stick-breaking attention (Tan et al. 2024) from logits `[head][row][column]`.
pub fn stick_breaking(logits: &Heads, current: Current, remainder: Remainder) -> Heads {
    let of_row = |logits: &Vec<f64>| {
        let i = logits.len() - 1;
        let share = |j: usize| 1.0 / (1.0 + (-logits[j]).exp());
        // Columns before `end` take shares, from the last to the first.
        let end = if current == Current::Included { i + 1 } else { i };
        let left = |from: usize| (from..end).map(|m| 1.0 - share(m)).product::<f64>();
        let weight = |j: usize| {
            let own = if j == i && remainder == Remainder::OwnToken { left(0) } else { 0.0 };
            let taken = if j < end { share(j) * left(j + 1) } else { 0.0 };
            own + taken
        };
        (0..=i).map(weight).collect()
    };
    logits.iter().map(|head| head.iter().map(of_row).collect()).collect()
}

/// Logarithms of the gates of Wall attention, as in `fla/layers/wall_attn.py`, `[column][channel of all heads]`:
/// `ln sigma(W x + b)` with `weight[input][output]`.
pub fn wall_log_gates(x: &Tokens, weight: &Tokens, bias: &[f64]) -> Tokens {
    let column = |n: usize| weight.iter().map(|row| row[n]).collect::<Vec<_>>();
    let columns = (0..bias.len()).map(column).collect::<Vec<_>>();
    // ln sigma(z) without overflow.
    let gate = |z: f64| -((-z.abs()).exp().ln_1p() + (-z).max(0.0));
    x.iter()
        .map(|x| columns.iter().zip(bias).map(|(column, b)| gate(dot(x, column) + b)).collect())
        .collect()
}

/// Logits of Wall attention, `sum over c of q_ic k_jc exp(sum over j < l <= i of ln f_lc) / sqrt(D)`.
pub fn wall_logits(input: &ScalarInput, log_gates: &Tokens) -> Heads {
    let (dim, root) = (input.head_dim(), (input.head_dim() as f64).sqrt());
    input.map(|h, row, i, j| {
        let channel = |c: usize| {
            let decay = log_gates[j + 1..=i].iter().map(|gates| gates[h * dim + c]).sum::<f64>();
            input.q[h][row][c] * input.k[h][j][c] * decay.exp()
        };
        (0..dim).map(channel).sum::<f64>() / root
    })
}
