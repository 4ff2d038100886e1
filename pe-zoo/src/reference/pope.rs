//! Scalar reference of PoPE: Gopalakrishnan et al. 2025.

use super::{Heads, ScalarInput, Tokens};

/// Logits `sum over c of softplus(q_c) softplus(k_c) cos((j - i) theta_c + delta_hc) / sqrt(D)`,
/// `theta_c = base^(-c / D)`; `phase[head][channel]`, clamped to `-2 pi ..= 0`.
pub fn logits(input: &ScalarInput, base: f64, phase: &Tokens) -> Heads {
    let head_dim = input.head_dim() as f64;
    let magnitude = |u: f64| if u > 30.0 { u } else { u.exp().ln_1p() };
    input.map(|h, row, i, j| {
        let back = input.positions[j] as f64 - input.positions[i] as f64;
        let mut sum = 0.0;
        for (c, (q, k)) in input.q[h][row].iter().zip(&input.k[h][j]).enumerate() {
            let theta = 1.0 / base.powf(c as f64 / head_dim);
            let delta = phase[h][c].clamp(-2.0 * std::f64::consts::PI, 0.0);
            sum += magnitude(*q) * magnitude(*k) * (back * theta + delta).cos();
        }
        sum / head_dim.sqrt()
    })
}

/// Transformed queries and keys: magnitudes times the cosines, then times the sines, of their
/// angles.
pub fn transformed(input: &ScalarInput, base: f64, phase: &Tokens) -> ScalarInput {
    let magnitude = |u: f64| if u > 30.0 { u } else { u.exp().ln_1p() };
    let polar = |u: &[f64], angle: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let part = |wave: fn(f64) -> f64| {
            u.iter().enumerate().map(|(c, u)| magnitude(*u) * wave(angle(c))).collect::<Vec<_>>()
        };
        [part(f64::cos), part(f64::sin)].concat()
    };
    let head_dim = input.head_dim() as f64;
    let theta = |c: usize| 1.0 / base.powf(c as f64 / head_dim);
    let mut out = input.clone();
    for head in &mut out.q {
        for (row, u) in head.iter_mut().enumerate() {
            let n = input.positions[input.first_row + row] as f64;
            *u = polar(u, &|c| n * theta(c));
        }
    }
    for (h, head) in out.k.iter_mut().enumerate() {
        for (column, u) in head.iter_mut().enumerate() {
            let n = input.positions[column] as f64;
            let delta = |c: usize| phase[h][c].clamp(-2.0 * std::f64::consts::PI, 0.0);
            *u = polar(u, &|c| n * theta(c) + delta(c));
        }
    }
    out
}
