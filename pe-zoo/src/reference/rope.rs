//! Scalar references of rotations of queries and keys.

use super::{Heads, ScalarInput, Tokens, dot};

/// Rotates each pair of channels of `u` by `position * frequency` (Su et al. 2021, eq. 14 and 15, or Llama's pairing); channels
/// past the last pair stay unchanged.
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

/// Queries and keys of xPos (Sun et al. 2022, torchscale's `xpos_relative_position.py`): `R_i q zeta^((i - c)/S)` and `R_j k
/// zeta^(-(j - c)/S)`, `zeta_m = (2m + 0.4 D) / (1.4 D)`, `c` the centre.
pub fn xpos(
    input: &ScalarInput,
    frequencies: &[f64],
    scale_base: f64,
    centre: f64,
    interleaved: bool,
) -> ScalarInput {
    let head_dim = input.head_dim() as f64;
    let pairs = frequencies.len();
    let stretched = |u: &[f64], position: usize, sign: f64| -> Vec<f64> {
        let rotated = rotate(u, position, frequencies, interleaved);
        let pair = |channel: usize| if interleaved { channel / 2 } else { channel % pairs };
        rotated
            .iter()
            .enumerate()
            .map(|(channel, x)| {
                let zeta = (2.0 * pair(channel) as f64 + 0.4 * head_dim) / (1.4 * head_dim);
                x * zeta.powf(sign * (position as f64 - centre) / scale_base)
            })
            .collect()
    };
    let at = |column: usize| input.positions[column];
    input.changed(
        |_, u, column| stretched(u, at(column), 1.0),
        |_, u, column| stretched(u, at(column), -1.0),
    )
}

/// Mixing weights of the waves of one layer of FoPE (Hua et al. 2024, the authors' `olmo/model.py`).
#[derive(Debug, Clone)]
pub struct ScalarMixture {
    /// Weights of the cosines, `[head][frequency][output]`.
    pub cos: Vec<Tokens>,
    /// Weights of the sines, `[head][frequency][output]`.
    pub sin: Vec<Tokens>,
    /// Value used in place of the sine for pairs beyond the outputs.
    pub padded_sin: f64,
}

/// Queries and keys of FoPE: rotates pairs `(m, m + D/2)` of queries and keys by the mixed cosines and sines.
pub fn fope(input: &ScalarInput, frequencies: &[f64], mixture: &ScalarMixture) -> ScalarInput {
    let head_dim = input.head_dim();
    let half = head_dim / 2;
    let wave = |h: usize, m: usize, position: usize| -> (f64, f64) {
        if m >= mixture.cos[h][0].len() {
            return (1.0, mixture.padded_sin);
        }
        let mut sums = (0.0, 0.0);
        for (d, f) in frequencies.iter().enumerate() {
            sums.0 += (position as f64 * f).cos() * mixture.cos[h][d][m];
            sums.1 += (position as f64 * f).sin() * mixture.sin[h][d][m];
        }
        sums
    };
    let rotated = |h: usize, u: &[f64], position: usize| -> Vec<f64> {
        let mut out = u.to_vec();
        for m in 0..half {
            let (cos, sin) = wave(h, m, position);
            out[m] = u[m] * cos - u[m + half] * sin;
            out[m + half] = u[m + half] * cos + u[m] * sin;
        }
        out
    };
    let rotated = |h: usize, u: &[f64], column: usize| rotated(h, u, input.positions[column]);
    input.changed(rotated, rotated)
}

/// Logits of PoPE (Gopalakrishnan et al. 2025; fewer angles than channels as in PoPE-pytorch), `sum over c of softplus(q_c)
/// softplus(k_c) cos((j - i) theta_c + delta_hc) / sqrt(D)`, `theta_c = base^(-c / R)`; `phase[head][channel]` of `R` channels,
/// clamped to `-2 pi ..= 0`. Channels from `R` on add their plain products to the sum.
pub fn pope_logits(input: &ScalarInput, base: f64, phase: &Tokens) -> Heads {
    let head_dim = input.head_dim() as f64;
    let magnitude = |u: f64| if u > 30.0 { u } else { u.exp().ln_1p() };
    input.map(|h, row, i, j| {
        let back = input.positions[j] as f64 - input.positions[i] as f64;
        let (q, k) = (&input.q[h][row], &input.k[h][j]);
        let turning = phase[h].len();
        let mut sum = dot(&q[turning..], &k[turning..]);
        for (c, delta) in phase[h].iter().enumerate() {
            let theta = 1.0 / base.powf(c as f64 / turning as f64);
            let delta = delta.clamp(-2.0 * std::f64::consts::PI, 0.0);
            sum += magnitude(q[c]) * magnitude(k[c]) * (back * theta + delta).cos();
        }
        sum / head_dim.sqrt()
    })
}

/// Queries and keys of PoPE: magnitudes times the cosines of their angles, then times the sines, then the channels
/// without an angle and as many zeros.
pub fn pope(input: &ScalarInput, base: f64, phase: &Tokens) -> ScalarInput {
    let magnitude = |u: f64| if u > 30.0 { u } else { u.exp().ln_1p() };
    let turning = phase[0].len();
    let polar = |u: &[f64], angle: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let (polar, rest) = u.split_at(turning);
        let part = |wave: fn(f64) -> f64| {
            polar
                .iter()
                .enumerate()
                .map(|(c, u)| magnitude(*u) * wave(angle(c)))
                .collect::<Vec<_>>()
        };
        [part(f64::cos), part(f64::sin), rest.to_vec(), vec![0.0; rest.len()]].concat()
    };
    let angle = |column: usize, c: usize| {
        input.positions[column] as f64 / base.powf(c as f64 / turning as f64)
    };
    input.changed(
        |_, u, column| polar(u, &|c| angle(column, c)),
        |h, u, column| {
            let delta = |c: usize| phase[h][c].clamp(-2.0 * std::f64::consts::PI, 0.0);
            polar(u, &|c| angle(column, c) + delta(c))
        },
    )
}

/// Step of Selective RoPE (Movahedi et al. 2025, the authors' `modules/rotary.py`): normalises slices of `x` of width `slice`:
/// each is divided by `sqrt(its squared length + 1e-6)`.
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

/// Queries and keys of Selective RoPE: rotates pairs `(m, m + D/2)` of queries and keys by `temperature[m] * sum of steps up to
/// the token`; `steps[head][column][pair]`.
pub fn selective_rope(input: &ScalarInput, steps: &Heads, temperatures: &[f64]) -> ScalarInput {
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

/// Logits of the queries and keys rotated by [`selective_rope`].
pub fn selective_rope_logits(input: &ScalarInput, steps: &Heads, temperatures: &[f64]) -> Heads {
    selective_rope(input, steps, temperatures).plain()
}
