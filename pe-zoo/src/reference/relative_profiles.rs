//! Scalar reference of relative profiles, as in `Inkling2RelativePositionBias` of `transformers`.

use super::{Heads, ScalarInput, Tokens, dot};

/// Learned numbers of one layer.
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
fn weights(x: &Tokens, learned: &ScalarProfiles) -> Heads {
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
pub fn bias(input: &ScalarInput, learned: &ScalarProfiles) -> Heads {
    let weights = weights(&input.x, learned);
    input.map(|h, _row, i, j| {
        let profile = learned.profiles.iter().map(|profile| profile.get(input.distance(i, j)));
        weights[h][i].iter().zip(profile).map(|(weight, p)| weight * p.unwrap_or(&0.0)).sum()
    })
}
