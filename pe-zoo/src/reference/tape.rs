//! Zhu et al. 2025 (TAPE), as in the authors' code `models/llama/adape.py`.

use super::{Heads, ScalarInput, ScalarLayer, Tokens, dot};

/// A complex number per head, token and channel, as cosine and sine part:
/// `[head][token][channel]`.
pub type State = Vec<Vec<Vec<[f64; 2]>>>;

/// Which numbers of a token the updates mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixes {
    /// Heads, each channel for itself.
    Heads,
    /// Channels, each head for itself.
    Channels,
    /// All of a token's.
    Everything,
}

/// The weights of one layer; maps come in pairs, for cosine and for sine.
#[derive(Debug, Clone)]
pub struct Maps {
    /// Which numbers they mix.
    pub mixes: Mixes,
    /// `W_A`, `[M][M]`, if the attention updates.
    pub attention: Option<[Tokens; 2]>,
    /// Whether `W_A` mixes, or scales each number by the sum of its row, as the code has it.
    pub full_mix: bool,
    /// `W_U` `[I][M]`, `W_X` `[I][C]`, `W_D` `[M][I]`, if the feed-forward part updates.
    pub feed_forward: Option<([Tokens; 2], Tokens, [Tokens; 2])>,
}

/// `factor * (cos, sin)(position * frequency)`, the same in both halves of the channels and in
/// every head.
pub fn initial(positions: &[usize], heads: usize, frequencies: &[f64], factor: f64) -> State {
    let token = |position: &usize| -> Vec<[f64; 2]> {
        let half = frequencies.iter().map(|f| {
            let (sin, cos) = (*position as f64 * f).sin_cos();
            [factor * cos, factor * sin]
        });
        half.clone().chain(half).collect()
    };
    vec![positions.iter().map(token).collect(); heads]
}

/// `u cos + rotate_half(u) sin`.
fn turned(u: &[f64], z: &[[f64; 2]]) -> Vec<f64> {
    let half = u.len() / 2;
    (0..u.len())
        .map(|d| {
            let other = if d < half { -u[d + half] } else { u[d - half] };
            u[d] * z[d][0] + other * z[d][1]
        })
        .collect()
}

/// Queries and keys turned by their tokens' state.
pub fn transformed(input: &ScalarInput, z: &State) -> ScalarInput {
    let turned = |h: usize, u: &[f64], column: usize| turned(u, &z[h][column]);
    input.changed(turned, turned)
}

/// Index of a number among those mixed with it, and all of those as (head, channel).
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

fn map(z: &State, f: impl Fn(usize, usize, usize, usize) -> f64) -> State {
    (0..z.len())
        .map(|h| {
            (0..z[h].len())
                .map(|t| (0..z[h][t].len()).map(|d| [f(h, t, d, 0), f(h, t, d, 1)]).collect())
                .collect()
        })
        .collect()
}

/// `z + W_A (A z)`; `weights` are the attention's, `[head][row][column]`.
pub fn attention_update(maps: &Maps, weights: &Heads, z: &State) -> State {
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

/// `z + W_D (silu(W_X x) . (W_U z))`; `x[token]` is the feed-forward part's output.
pub fn feed_forward_update(maps: &Maps, x: &Tokens, z: &State) -> State {
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

/// Attention weights of every layer, the state passed from layer to layer; `weigh` makes weights of
/// the turned problem and its logits.
pub fn stack(
    layers: &[ScalarLayer],
    maps: &[Maps],
    mut z: State,
    weigh: &dyn Fn(&ScalarInput, Heads) -> Heads,
) -> Vec<Heads> {
    let mut all = Vec::new();
    for layer in layers {
        let turned = transformed(&layer.input, &z);
        let weights = weigh(&turned, turned.plain());
        let maps = &maps[layer.input.layer];
        z = attention_update(maps, &weights, &z);
        z = feed_forward_update(maps, &layer.feed_forward, &z);
        all.push(weights);
    }
    all
}
