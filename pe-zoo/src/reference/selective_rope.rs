//! Scalar reference of Selective RoPE: Movahedi et al. 2025, as in the authors'
//! `modules/rotary.py`.

use super::{Heads, ScalarInput, Tokens, dot};

/// Normalises slices of `x` of width `slice`: each is divided by `sqrt(its squared length + 1e-6)`.
pub fn unit_slices(x: &[f64], slice: usize) -> Vec<f64> {
    x.chunks(slice)
        .flat_map(|part| {
            let length = (dot(part, part) + 1e-6).sqrt();
            part.iter().map(move |value| value / length)
        })
        .collect()
}

/// Matrix product `x W`, `weight[input][output]`.
pub fn project(x: &[f64], weight: &Tokens) -> Vec<f64> {
    (0..weight[0].len())
        .map(|output| x.iter().zip(weight).map(|(value, row)| value * row[output]).sum())
        .collect()
}

/// Causal filter of one channel, `sum over k of taps[k] steps[t - (K - 1) + k]`.
pub fn filter(steps: &[f64], taps: &[f64]) -> Vec<f64> {
    (0..steps.len())
        .map(|t| {
            (0..taps.len())
                .filter(|k| t + k + 1 >= taps.len())
                .map(|k| taps[k] * steps[t + k + 1 - taps.len()])
                .sum()
        })
        .collect()
}

/// Rotates pairs `(m, m + D/2)` of queries and keys by `temperature[m] * sum of steps up to the
/// token`; `steps[head][column][pair]`.
pub fn transformed(input: &ScalarInput, steps: &Heads, temperatures: &[f64]) -> ScalarInput {
    let half = temperatures.len();
    let rotated = |h: usize, u: &[f64], token: usize| -> Vec<f64> {
        let mut out = u.to_vec();
        for m in 0..half {
            let sum = steps[h][..=token].iter().map(|step| step[m]).sum::<f64>();
            let (sin, cos) = (temperatures[m] * sum).sin_cos();
            out[m] = u[m] * cos - u[m + half] * sin;
            out[m + half] = u[m] * sin + u[m + half] * cos;
        }
        out
    };
    input.changed(rotated, rotated)
}

/// Logits of the queries and keys rotated by [`transformed`].
pub fn logits(input: &ScalarInput, steps: &Heads, temperatures: &[f64]) -> Heads {
    transformed(input, steps, temperatures).plain()
}
