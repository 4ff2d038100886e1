//! Scalar references of learned relative positions.

use super::{Heads, ScalarInput, Tokens, dot};

/// Bias at distances past the end of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// No bias is added.
    Nothing,
    /// The bias of the last entry.
    LastEntry,
}

/// Logits of Shaw et al. 2018, eq. 5, for keys only and with one table for all heads, as in the baseline of the CoPE paper:
/// `(q.k + q.e[i - j]) / sqrt(D)`; `table[d][distance]`.
pub fn logits(input: &ScalarInput, table: &Tokens, past: Past) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    let entries = table[0].len();
    input.map(|h, row, i, j| {
        let distance = input.distance(i, j);
        let mut sum = input.content(h, row, j);
        if distance < entries || past == Past::LastEntry {
            let entry = if distance < entries { distance } else { entries - 1 };
            for (d, q) in input.q[h][row].iter().enumerate() {
                sum += q * table[d][entry];
            }
        }
        sum * scale
    })
}

/// Learned numbers of one layer of relative profiles, as in `Inkling2RelativePositionBias` of `transformers`.
#[derive(Debug, Clone)]
pub struct ScalarProfiles {
    /// Map from tokens to the weights of the profiles, `[channel][head R + profile]`.
    pub weight: Tokens,
    /// Factors of the weights, `[head][profile]`.
    pub scale: Tokens,
    /// Learned functions of the distance, `[profile][distance]`.
    pub profiles: Tokens,
    /// Largest norm of the weights of a token in a head.
    pub limit: f64,
}

/// Weights of the profiles, `[head][column][profile]`: `scale (W x)_h`, shortened to the norm `limit` if longer.
fn profile_weights(x: &Tokens, learned: &ScalarProfiles) -> Heads {
    let of_token = |h: usize, scale: &[f64], x: &[f64]| {
        let scaled = scale.iter().enumerate().map(|(r, scale)| {
            let map = learned.weight.iter().map(|row| row[h * learned.profiles.len() + r]);
            scale * dot(x, &map.collect::<Vec<_>>())
        });
        let scaled = scaled.collect::<Vec<_>>();
        let norm = dot(&scaled, &scaled).sqrt();
        let factor = if norm > learned.limit { learned.limit / norm } else { 1.0 };
        scaled.into_iter().map(|u| factor * u).collect()
    };
    let heads = learned.scale.iter().enumerate();
    heads.map(|(h, scale)| x.iter().map(|x| of_token(h, scale, x)).collect()).collect()
}

/// Bias of every pair, `sum over profiles of weight[i] profile[i - j]`; 0 past the end of the profiles.
pub fn profiles(input: &ScalarInput, learned: &ScalarProfiles) -> Heads {
    let weights = profile_weights(&input.x, learned);
    input.map(|h, _row, i, j| {
        let profile = learned.profiles.iter().map(|profile| profile.get(input.distance(i, j)));
        weights[h][i].iter().zip(profile).map(|(weight, p)| weight * p.unwrap_or(&0.0)).sum()
    })
}
