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

/// Attention weights of stick-breaking attention (Tan et al. 2024).
pub fn stick_breaking(input: &ScalarInput, current: Current, remainder: Remainder) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    let share =
        |h: usize, row: usize, j: usize| 1.0 / (1.0 + (-input.content(h, row, j) * scale).exp());
    input.map(|h, row, i, j| {
        // Columns before `end` take shares, from the last to the first.
        let end = if current == Current::Included { i + 1 } else { i };
        let left = |from: usize| (from..end).map(|m| 1.0 - share(h, row, m)).product::<f64>();
        let own = if j == i && remainder == Remainder::OwnToken { left(0) } else { 0.0 };
        let taken = if j < end { share(h, row, j) * left(j + 1) } else { 0.0 };
        own + taken
    })
}
