//! Scalar references of the four variants of GRAPE: Zhang et al. 2025, as in the authors' code.

use super::{Heads, ScalarInput, Tokens, dot};

/// Weights of the normalisation of queries and keys, `[D]` each.
#[derive(Debug, Clone)]
pub struct ScalarNorm {
    /// Weights for queries, `[D]`.
    pub q: Vec<f64>,
    /// Weights for keys, `[D]`.
    pub k: Vec<f64>,
}

/// Root mean square normalisation, `u / sqrt(mean of squares + eps)`.
pub fn rms(u: &[f64], eps: f64) -> Vec<f64> {
    let mean = u.iter().map(|x| x * x).sum::<f64>() / u.len() as f64;
    u.iter().map(|x| x / (mean + eps).sqrt()).collect()
}

/// Rotates plane `(m, m + D/2)` of `u` by `-angles[m]`.
pub fn turn_back(u: &[f64], angles: &[f64]) -> Vec<f64> {
    let half = angles.len();
    let mut out = u.to_vec();
    for (m, angle) in angles.iter().enumerate() {
        let (a, b) = (u[m], u[m + half]);
        out[m] = a * angle.cos() + b * angle.sin();
        out[m + half] = b * angle.cos() - a * angle.sin();
    }
    out
}

/// Returns the problem with every query and key changed; `change` gets the head, the column and the
/// vector.
fn changed(
    input: &ScalarInput,
    norm: Option<&ScalarNorm>,
    change: impl Fn(usize, usize, &[f64]) -> Vec<f64>,
) -> ScalarInput {
    let scaled = |u: Vec<f64>, weights: Option<&Vec<f64>>| match weights {
        Some(weights) => rms(&u, 1e-5).iter().zip(weights).map(|(x, w)| x * w).collect(),
        None => u,
    };
    let mut out = input.clone();
    for (h, head) in out.q.iter_mut().enumerate() {
        for (row, u) in head.iter_mut().enumerate() {
            *u = scaled(change(h, input.first_row + row, u), norm.map(|norm| &norm.q));
        }
    }
    for (h, head) in out.k.iter_mut().enumerate() {
        for (column, u) in head.iter_mut().enumerate() {
            *u = scaled(change(h, column, u), norm.map(|norm| &norm.k));
        }
    }
    out
}

/// Returns the problem with queries and keys normalised.
pub fn normed(input: &ScalarInput, norm: Option<&ScalarNorm>) -> ScalarInput {
    changed(input, norm, |_, _, u| u.to_vec())
}

/// GRAPE-M: position `n` rotates plane `m` by `-n f_m`; `frequencies[head][m]`.
pub fn multiplicative(
    input: &ScalarInput,
    frequencies: &Tokens,
    norm: Option<&ScalarNorm>,
) -> ScalarInput {
    changed(input, norm, |h, column, u| {
        let n = input.positions[column] as f64;
        turn_back(u, &frequencies[h].iter().map(|f| n * f).collect::<Vec<_>>())
    })
}

/// Contextual GRAPE-M: token `t` rotates plane `m` by minus `f_m` times the sum of `omega` over the
/// tokens before it; `omega = sigma((W x + b) / 16)`, `weight[channel][head or 0]`.
pub fn contextual(
    input: &ScalarInput,
    weight: &Tokens,
    bias: &[f64],
    frequencies: &[f64],
    norm: Option<&ScalarNorm>,
) -> ScalarInput {
    changed(input, norm, |h, column, u| {
        let g = if bias.len() == 1 { 0 } else { h };
        let mut phase = 0.0;
        for x in &input.x[..column] {
            let z = bias[g] + x.iter().zip(weight).map(|(x, w)| x * w[g]).sum::<f64>();
            phase += 1.0 / (1.0 + (-z / 16.0).exp());
        }
        turn_back(u, &frequencies.iter().map(|f| phase * f).collect::<Vec<_>>())
    })
}

/// Gate directions of GRAPE-A, `[head][D]` each, before they are normalised to length 1.
#[derive(Debug, Clone, Default)]
pub struct ScalarGates {
    /// Directions multiplied with keys.
    pub key: Option<Tokens>,
    /// Directions multiplied with queries.
    pub query: Option<Tokens>,
}

fn softplus(x: f64) -> f64 {
    x.exp().ln_1p()
}

/// GRAPE-A: the bias is `-(i - j) softplus(omega_h) slope_h` times the sum of the gates
/// `softplus(u_h . k_j / sqrt(D))` and `softplus(v_h . q_i / sqrt(D))`.
pub fn additive(
    input: &ScalarInput,
    slopes: &[f64],
    omega: &[f64],
    gates: &ScalarGates,
    norm: Option<&ScalarNorm>,
) -> Heads {
    let input = normed(input, norm);
    let root = (input.head_dim() as f64).sqrt();
    let gate = |direction: &[f64], u: &[f64]| {
        let length = dot(direction, direction).sqrt().max(1e-6);
        softplus(dot(direction, u) / length / root)
    };
    let bias = input.map(|h, row, i, j| {
        let mut rate = 0.0;
        if let Some(key) = &gates.key {
            rate += gate(&key[h], &input.k[h][j]);
        }
        if let Some(query) = &gates.query {
            rate += gate(&query[h], &input.q[h][row]);
        }
        -(input.distance(i, j) as f64) * softplus(omega[h]) * slopes[h] * rate
    });
    input.biased(&bias)
}

/// Bias of GRAPE-AP from given `p[head][column]`: `slope_h` times the sum over `l` in `j+1..=i` of
/// `ln sigma(p_i . R_l rms(p_l) / d)`, where `R_l` rotates every plane by `-l`.
pub fn path_bias(input: &ScalarInput, p: &Heads, slopes: &[f64]) -> Heads {
    let dim = p[0][0].len();
    let edge = |h: usize, i: usize, l: usize| {
        let angle = input.positions[l] as f64;
        let rotated = turn_back(&rms(&p[h][l], f64::from(f32::EPSILON)), &vec![angle; dim / 2]);
        -softplus(-dot(&p[h][i], &rotated) / dim as f64)
    };
    input.map(|h, _row, i, j| slopes[h] * (j + 1..=i).map(|l| edge(h, i, l)).sum::<f64>())
}

/// Logits of GRAPE-AP; `projection[channel][head * dim + d]`.
pub fn path(
    input: &ScalarInput,
    projection: &Tokens,
    slopes: &[f64],
    norm: Option<&ScalarNorm>,
) -> Heads {
    let dim = projection[0].len() / slopes.len();
    let p = (0..slopes.len())
        .map(|h| {
            let project = |x: &Vec<f64>| {
                (0..dim)
                    .map(|d| x.iter().zip(projection).map(|(x, w)| x * w[h * dim + d]).sum())
                    .collect()
            };
            input.x.iter().map(project).collect()
        })
        .collect();
    normed(input, norm).biased(&path_bias(input, &p, slopes))
}
