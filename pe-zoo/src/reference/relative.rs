//! Scalar reference of learned relative positions: Shaw et al. 2018, eq. 5, for keys only and with
//! one table for all heads, as in the baseline of the CoPE paper.

use super::{Heads, ScalarInput, Tokens};

/// Bias at distances past the end of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// No bias is added.
    Nothing,
    /// The bias of the last entry.
    LastEntry,
}

/// Logits `(q.k + q.e[i - j]) / sqrt(D)`; `table[d][distance]`.
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
