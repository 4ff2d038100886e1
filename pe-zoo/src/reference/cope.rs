//! Scalar reference of CoPE: Golovneva et al. 2024, eq. 3 to 5, eq. 10 and Listing 1.

use super::{Heads, ScalarInput, Tokens, dot};
use crate::score::LogitScaling;

/// Vectors that queries are multiplied with for the gate logits.
#[derive(Debug, Clone, Copy)]
pub enum GateSide<'a> {
    /// Keys of the attention.
    Keys,
    /// Values of the attention.
    Values,
    /// Separate keys for the gates, `[head][column][D]`.
    Own(&'a Heads),
}

/// Separate keys: `k'[h][j]` is slice `h` of `x_j W`, with `weight[c][c']`.
pub fn own_keys(x: &Tokens, weight: &Tokens, heads: usize) -> Heads {
    let width = weight[0].len();
    let head_dim = width / heads;
    (0..heads)
        .map(|h| {
            x.iter()
                .map(|token| {
                    (h * head_dim..(h + 1) * head_dim)
                        .map(|out| token.iter().zip(weight).map(|(x, row)| x * row[out]).sum())
                        .collect()
                })
                .collect()
        })
        .collect()
}

/// Contextual positions `p[i, j] = min(sum over m in j..=i of gate[i, m], max_position)`.
pub fn positions(
    input: &ScalarInput,
    max_position: f64,
    convention: LogitScaling,
    side: GateSide<'_>,
) -> Heads {
    let scale = match convention {
        LogitScaling::Listing | LogitScaling::Code => 1.0 / (input.head_dim() as f64).sqrt(),
        LogitScaling::Equation => 1.0,
    };
    let side = match side {
        GateSide::Keys => &input.k,
        GateSide::Values => &input.v,
        GateSide::Own(keys) => keys,
    };
    input.map(|h, row, i, j| {
        let gates = (j..=i).map(|m| {
            let logit = dot(&input.q[h][row], &side[h][m]) * scale;
            1.0 / (1.0 + (-logit).exp())
        });
        gates.sum::<f64>().min(max_position)
    })
}

/// Position vector `e[p]`, interpolated linearly between the neighbouring entries;
/// `table[d][entry]`.
pub fn interpolated(table: &Tokens, position: f64) -> Vec<f64> {
    let (below, above) = (position.floor(), position.ceil());
    let weight = position - below;
    table
        .iter()
        .map(|row| row[above as usize] * weight + row[below as usize] * (1.0 - weight))
        .collect()
}

/// Sum of the content logits and the bias of the contextual positions; `added` gets head, row and
/// position.
pub fn combine(
    input: &ScalarInput,
    positions: &Heads,
    convention: LogitScaling,
    added: impl Fn(usize, usize, f64) -> f64,
) -> Heads {
    let root = (input.head_dim() as f64).sqrt();
    input.map(|h, row, _i, j| {
        let (content, z) = (input.content(h, row, j), added(h, row, positions[h][row][j]));
        match convention {
            LogitScaling::Listing => content / root + z,
            LogitScaling::Code => (content + z) / root,
            LogitScaling::Equation => content + z,
        }
    })
}

/// Logits with the bias of the interpolated table; `table[d][entry]`.
pub fn logits(
    input: &ScalarInput,
    table: &Tokens,
    convention: LogitScaling,
    side: GateSide<'_>,
) -> Heads {
    let p = positions(input, (table[0].len() - 1) as f64, convention, side);
    combine(input, &p, convention, |h, row, p| dot(&input.q[h][row], &interpolated(table, p)))
}
