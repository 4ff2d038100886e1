//! Sun et al. 2022 (xPos), as torchscale's `xpos_relative_position.py` has it.

use super::rope::rotate;
use super::{Heads, ScalarInput, dot};

/// `(R_i q zeta^(i/S)) . (R_j k zeta^(-j/S)) / sqrt(D)`, `zeta_m = (2m + 0.4 D) / (1.4 D)`.
pub fn logits(
    input: &ScalarInput,
    frequencies: &[f64],
    scale_base: f64,
    interleaved: bool,
) -> Heads {
    let head_dim = input.head_dim() as f64;
    let pairs = frequencies.len();
    let stretched = |u: &[f64], position: usize, sign: f64| -> Vec<f64> {
        let turned = rotate(u, position, frequencies, interleaved);
        let pair = |channel: usize| if interleaved { channel / 2 } else { channel % pairs };
        turned
            .iter()
            .enumerate()
            .map(|(channel, x)| {
                let zeta = (2.0 * pair(channel) as f64 + 0.4 * head_dim) / (1.4 * head_dim);
                x * zeta.powf(sign * position as f64 / scale_base)
            })
            .collect()
    };
    input.map(|h, row, i, j| {
        let q = stretched(&input.q[h][row], input.positions[i], 1.0);
        let k = stretched(&input.k[h][j], input.positions[j], -1.0);
        dot(&q, &k) / head_dim.sqrt()
    })
}
