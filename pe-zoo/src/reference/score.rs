//! Scalar references of further modifications of the logits, from the equations of their papers.

use super::{Heads, ScalarInput};
use crate::score::{Current, Remainder};

/// Logits of the Forgetting Transformer (Lin et al. 2025), `q.k / sqrt(D) + sum of ln f over
/// j+1..=i`; `log_forget[h][t]`.
pub fn decay(input: &ScalarInput, log_forget: &[Vec<f64>]) -> Heads {
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
