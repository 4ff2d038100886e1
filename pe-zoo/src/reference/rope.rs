//! Su et al. 2021, eq. 14 and 15, and the pairing that Llama uses.

use super::{Heads, ScalarInput};

/// Each pair of channels of `u`, turned by `position * frequency`.
pub fn rotate(u: &[f64], position: usize, frequencies: &[f64], interleaved: bool) -> Vec<f64> {
    let mut out = u.to_vec();
    let pairs = frequencies.len();
    for (m, frequency) in frequencies.iter().enumerate() {
        let (a, b) = if interleaved { (2 * m, 2 * m + 1) } else { (m, m + pairs) };
        let (sin, cos) = (position as f64 * frequency).sin_cos();
        out[a] = u[a] * cos - u[b] * sin;
        out[b] = u[a] * sin + u[b] * cos;
    }
    out
}

/// `R_i q . R_j k / sqrt(D)`.
pub fn logits(input: &ScalarInput, frequencies: &[f64], interleaved: bool) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    input.map(|h, row, i, j| {
        let q = rotate(&input.q[h][row], input.positions[i], frequencies, interleaved);
        let k = rotate(&input.k[h][j], input.positions[j], frequencies, interleaved);
        super::dot(&q, &k) * scale
    })
}

/// Queries and keys turned: `R_i q`, `R_j k`.
pub fn transformed(input: &ScalarInput, frequencies: &[f64], interleaved: bool) -> ScalarInput {
    let turned = |heads: &Heads, first: usize| -> Heads {
        let head = |head: &Vec<Vec<f64>>| {
            let positions = &input.positions[first..];
            let tokens = head.iter().zip(positions);
            tokens.map(|(u, n)| rotate(u, *n, frequencies, interleaved)).collect()
        };
        heads.iter().map(head).collect()
    };
    ScalarInput { q: turned(&input.q, input.first_row), k: turned(&input.k, 0), ..input.clone() }
}
