//! Scalar reference of TAPE: Zhu et al. 2025, as in the authors' code, `models/llama/adape.py`.

use super::{Heads, ScalarInput, ScalarLayer, Tokens, dot};

/// State of the tokens: a complex number per head, token and channel, as cosine and sine parts,
/// `[head][token][channel]`.
pub type ScalarState = Vec<Vec<Vec<[f64; 2]>>>;

/// Components of a token that the updates mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixes {
    /// Heads are mixed, separately for each channel.
    Heads,
    /// Channels are mixed, separately for each head.
    Channels,
    /// All heads and channels of a token are mixed.
    Everything,
}

/// Weights of one layer; maps come in pairs, for cosine and for sine.
#[derive(Debug, Clone)]
pub struct ScalarMaps {
    /// Components that the maps mix.
    pub mixes: Mixes,
    /// Maps `W_A`, `[M][M]`; `None` without an attention update.
    pub attention: Option<[Tokens; 2]>,
    /// Whether `W_A` is applied as a matrix; otherwise each component is scaled by its row sum, as
    /// in the authors' code.
    pub full_mix: bool,
    /// Maps `W_U` `[I][M]`, `W_X` `[I][C]` and `W_D` `[M][I]`; `None` without a feed-forward
    /// update.
    pub feed_forward: Option<([Tokens; 2], Tokens, [Tokens; 2])>,
}

/// Initial state `factor * (cos, sin)(position * frequency)`, the same in both halves of the
/// channels and in every head.
pub fn initial(positions: &[usize], heads: usize, frequencies: &[f64], factor: f64) -> ScalarState {
    let token = |position: &usize| -> Vec<[f64; 2]> {
        let half = frequencies.iter().map(|f| {
            let (sin, cos) = (*position as f64 * f).sin_cos();
            [factor * cos, factor * sin]
        });
        half.clone().chain(half).collect()
    };
    vec![positions.iter().map(token).collect(); heads]
}

/// Rotated vector `u cos + rotate_half(u) sin`.
fn rotated(u: &[f64], z: &[[f64; 2]]) -> Vec<f64> {
    let half = u.len() / 2;
    (0..u.len())
        .map(|d| {
            let other = if d < half { -u[d + half] } else { u[d - half] };
            u[d] * z[d][0] + other * z[d][1]
        })
        .collect()
}

/// Queries and keys rotated by the state of their tokens.
pub fn transformed(input: &ScalarInput, z: &ScalarState) -> ScalarInput {
    let rotated = |h: usize, u: &[f64], column: usize| rotated(u, &z[h][column]);
    input.changed(rotated, rotated)
}

/// Returns the index of a component in its group, and all components of the group as (head,
/// channel).
fn group(
    mixes: Mixes,
    h: usize,
    d: usize,
    heads: usize,
    dim: usize,
) -> (usize, Vec<(usize, usize)>) {
    match mixes {
        Mixes::Heads => (h, (0..heads).map(|e| (e, d)).collect()),
        Mixes::Channels => (d, (0..dim).map(|e| (h, e)).collect()),
        Mixes::Everything => {
            (h * dim + d, (0..heads).flat_map(|g| (0..dim).map(move |e| (g, e))).collect())
        }
    }
}

fn map(z: &ScalarState, f: impl Fn(usize, usize, usize, usize) -> f64) -> ScalarState {
    (0..z.len())
        .map(|h| {
            (0..z[h].len())
                .map(|t| (0..z[h][t].len()).map(|d| [f(h, t, d, 0), f(h, t, d, 1)]).collect())
                .collect()
        })
        .collect()
}

/// State after the attention, `z + W_A (A z)`; `weights` are the attention weights `A`,
/// `[head][row][column]`.
pub fn attention_update(maps: &ScalarMaps, weights: &Heads, z: &ScalarState) -> ScalarState {
    let Some(w) = &maps.attention else { return z.clone() };
    let attended = map(z, |h, t, d, part| {
        weights[h][t].iter().enumerate().map(|(j, a)| a * z[h][j][d][part]).sum()
    });
    map(z, |h, t, d, part| {
        let (n, members) = group(maps.mixes, h, d, z.len(), z[h][t].len());
        let update = members
            .iter()
            .enumerate()
            .map(|(m, (g, e))| {
                let source = if maps.full_mix { attended[*g][t][*e] } else { attended[h][t][d] };
                w[part][n][m] * source[part]
            })
            .sum::<f64>();
        z[h][t][d][part] + update
    })
}

/// State after the feed-forward block, `z + W_D (silu(W_X x) . (W_U z))`; `x[token]` is the output
/// of the block.
pub fn feed_forward_update(maps: &ScalarMaps, x: &Tokens, z: &ScalarState) -> ScalarState {
    let Some((up, gate, down)) = &maps.feed_forward else { return z.clone() };
    map(z, |h, t, d, part| {
        let (n, members) = group(maps.mixes, h, d, z.len(), z[h][t].len());
        let update = (0..gate.len())
            .map(|a| {
                let opened = dot(&gate[a], &x[t]);
                let silu = opened / (1.0 + (-opened).exp());
                let inside = members
                    .iter()
                    .enumerate()
                    .map(|(m, (g, e))| up[part][a][m] * z[*g][t][*e][part])
                    .sum::<f64>();
                down[part][n][a] * silu * inside
            })
            .sum::<f64>();
        z[h][t][d][part] + update
    })
}

/// Attention weights of every layer, the state passed from layer to layer; `weigh` turns the
/// rotated problem and its logits into weights.
pub fn stack(
    layers: &[ScalarLayer],
    maps: &[ScalarMaps],
    mut z: ScalarState,
    weigh: &dyn Fn(&ScalarInput, Heads) -> Heads,
) -> Vec<Heads> {
    let mut all = Vec::new();
    for layer in layers {
        let rotated = transformed(&layer.input, &z);
        let weights = weigh(&rotated, rotated.plain());
        let maps = &maps[layer.input.layer];
        z = attention_update(maps, &weights, &z);
        z = feed_forward_update(maps, &layer.feed_forward, &z);
        all.push(weights);
    }
    all
}
