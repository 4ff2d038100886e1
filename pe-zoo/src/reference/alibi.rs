//! Press et al. 2021, figure 3 and section 3.

use super::{Heads, ScalarInput};

/// `q.k / sqrt(D) - slope_h (i - j)`.
pub fn logits(input: &ScalarInput, slopes: &[f64]) -> Heads {
    let scale = 1.0 / (input.head_dim() as f64).sqrt();
    input.map(|h, row, i, j| {
        input.content(h, row, j) * scale - slopes[h] * input.distance(i, j) as f64
    })
}
