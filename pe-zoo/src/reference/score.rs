//! The remaining modifiers of logits, from their papers' equations.

use super::{Heads, ScalarInput};

/// Lin et al. 2025 (Forgetting Transformer): `q.k / sqrt(D) + sum of ln f over j+1..=i`;
/// `log_forget[h][t]`.
pub fn decay(input: &ScalarInput, log_forget: &[Vec<f64>]) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    input.map(|h, row, i, j| {
        input.content(h, row, j) * scale + log_forget[h][j + 1..=i].iter().sum::<f64>()
    })
}

/// Tan et al. 2024 (stick-breaking attention): the weights themselves, strictly `j < i`.
pub fn stick_breaking(input: &ScalarInput) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
    input.map(|h, row, i, j| {
        if j == i {
            return 0.0;
        }
        let mut weight = sigma(input.content(h, row, j) * scale);
        for m in j + 1..i {
            weight *= 1.0 - sigma(input.content(h, row, m) * scale);
        }
        weight
    })
}
