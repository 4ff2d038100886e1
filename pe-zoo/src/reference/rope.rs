//! Scalar reference of RoPE: Su et al. 2021, eq. 14 and 15, and Llama's pairing of channels.

use super::{Heads, ScalarInput};

/// Rotates each pair of channels of `u` by `position * frequency`; channels past the last pair stay
/// unchanged.
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

/// Rotated queries and keys, `R_i q` and `R_j k`, with cosines and sines multiplied by
/// `attention_factor`.
pub fn transformed(
    input: &ScalarInput,
    frequencies: &[f64],
    attention_factor: f64,
    interleaved: bool,
) -> ScalarInput {
    let rotated = |_head: usize, u: &[f64], column: usize| -> Vec<f64> {
        let mut out = rotate(u, input.positions[column], frequencies, interleaved);
        out[..2 * frequencies.len()].iter_mut().for_each(|x| *x *= attention_factor);
        out
    };
    input.changed(rotated, rotated)
}

/// Logits `R_i q . R_j k / sqrt(D)`.
pub fn logits(input: &ScalarInput, frequencies: &[f64], interleaved: bool) -> Heads {
    transformed(input, frequencies, 1.0, interleaved).plain()
}
