//! Golovneva et al. 2024, eq. 3 to 5 and Listing 1.

use super::{Heads, ScalarInput, Tokens, dot};
use crate::score::Convention;

/// `p[i, j] = min(sum over m in j..=i of gate[i, m], entries - 1)`.
pub fn positions(
    input: &ScalarInput,
    entries: usize,
    convention: Convention,
    value_gates: bool,
) -> Heads {
    let scale = match convention {
        Convention::Listing | Convention::Code => 1.0 / (input.head_dim() as f64).sqrt(),
        Convention::Equation => 1.0,
    };
    let side = if value_gates { &input.v } else { &input.k };
    input.map(|h, row, i, j| {
        let gates = (j..=i).map(|m| {
            let logit = dot(&input.q[h][row], &side[h][m]) * scale;
            1.0 / (1.0 + (-logit).exp())
        });
        gates.sum::<f64>().min((entries - 1) as f64)
    })
}

/// Content logits with the interpolated table's contribution; `table[d][entry]`.
pub fn logits(
    input: &ScalarInput,
    table: &Tokens,
    convention: Convention,
    value_gates: bool,
) -> Heads {
    let p = positions(input, table[0].len(), convention, value_gates);
    let root = (input.head_dim() as f64).sqrt();
    input.map(|h, row, _i, j| {
        let position = p[h][row][j];
        let (below, above) = (position.floor(), position.ceil());
        let weight = position - below;
        let mut z = 0.0;
        for (d, q) in input.q[h][row].iter().enumerate() {
            z +=
                q * (table[d][above as usize] * weight + table[d][below as usize] * (1.0 - weight));
        }
        let content = input.content(h, row, j);
        match convention {
            Convention::Listing => content / root + z,
            Convention::Code => (content + z) / root,
            Convention::Equation => content + z,
        }
    })
}
