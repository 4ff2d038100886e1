//! Scalar reference of Sandwich: Chi et al. 2023, "Dissecting Transformer Length Extrapolation".

use super::{Heads, ScalarInput};

/// Bias `(sum over k in 1..=d/2 of cos(distance / 10000^(2k/d)) - d/2) / (8 (h + 1) / H)`.
pub fn bias(input: &ScalarInput, d_bar: usize) -> Heads {
    let heads = input.q.len() as f64;
    input.map(|h, _row, i, j| wave_sum(input.distance(i, j), d_bar) * heads / (8 * (h + 1)) as f64)
}

/// Sum of the waves minus its value at distance 0.
pub fn wave_sum(distance: usize, d_bar: usize) -> f64 {
    let mut sum = 0.0;
    for k in 1..=d_bar / 2 {
        sum += (distance as f64 / 10_000f64.powf(2.0 * k as f64 / d_bar as f64)).cos();
    }
    sum - (d_bar / 2) as f64
}
