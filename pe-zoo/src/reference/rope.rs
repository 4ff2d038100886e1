//! Scalar reference of RoPE: Su et al. 2021, eq. 14 and 15, and Llama's pairing of channels.

use super::{Heads, ScalarInput};

/// Rotates each pair of channels of `u` by `position * frequency`; channels past the last pair stay
/// unchanged.
pub fn rotate(u: &[f64], position: usize, frequencies: &[f64], interleaved: bool) -> Vec<f64> {
    let rotation = ScalarRotation { frequencies: frequencies.to_vec(), factor: 1.0, interleaved };
    rotation.turned(u, position as f64, 0.0)
}

/// Rotation of pairs of channels, in scalars.
#[derive(Debug, Clone)]
pub struct ScalarRotation {
    /// Angle of each pair per position.
    pub frequencies: Vec<f64>,
    /// Factor of cosines and sines.
    pub factor: f64,
    /// Whether the channels of a pair are adjacent.
    pub interleaved: bool,
}

impl ScalarRotation {
    /// Rotates each pair of channels of `u` by `position * frequency + phase` and multiplies it by the factor; channels past
    /// the last pair stay unchanged.
    pub fn turned(&self, u: &[f64], position: f64, phase: f64) -> Vec<f64> {
        let mut out = u.to_vec();
        let pairs = self.frequencies.len();
        for (m, frequency) in self.frequencies.iter().enumerate() {
            let (a, b) = if self.interleaved { (2 * m, 2 * m + 1) } else { (m, m + pairs) };
            let (sin, cos) = (position * frequency + phase).sin_cos();
            out[a] = self.factor * (u[a] * cos - u[b] * sin);
            out[b] = self.factor * (u[a] * sin + u[b] * cos);
        }
        out
    }
}

/// Rotated queries and keys, `R_i q` and `R_j k`, with cosines and sines multiplied by
/// `attention_factor`.
pub fn transformed(
    input: &ScalarInput,
    frequencies: &[f64],
    attention_factor: f64,
    interleaved: bool,
) -> ScalarInput {
    let frequencies = frequencies.to_vec();
    let rotation = ScalarRotation { frequencies, factor: attention_factor, interleaved };
    let rotated =
        |_head: usize, u: &[f64], column: usize| rotation.turned(u, input.position(column), 0.0);
    input.changed(rotated, rotated)
}

/// Logits `R_i q . R_j k / sqrt(D)`.
pub fn logits(input: &ScalarInput, frequencies: &[f64], interleaved: bool) -> Heads {
    transformed(input, frequencies, 1.0, interleaved).plain()
}
