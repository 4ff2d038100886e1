//! Su et al. 2021, eq. 14 and 15, and the pairing that Llama uses.

use super::{Heads, ScalarInput};

/// Each pair of channels of `u`, turned by `position * frequency`; channels past the last pair
/// stay as they are.
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
    scaled_logits(input, frequencies, 1.0, interleaved)
}

/// The same with cosines and sines multiplied by `attention_factor`.
pub fn scaled_logits(
    input: &ScalarInput,
    frequencies: &[f64],
    attention_factor: f64,
    interleaved: bool,
) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    let turned = |u: &[f64], position: usize| -> Vec<f64> {
        let mut out = rotate(u, position, frequencies, interleaved);
        out[..2 * frequencies.len()].iter_mut().for_each(|x| *x *= attention_factor);
        out
    };
    input.map(|h, row, i, j| {
        let q = turned(&input.q[h][row], input.positions[i]);
        let k = turned(&input.k[h][j], input.positions[j]);
        super::dot(&q, &k) * scale
    })
}
