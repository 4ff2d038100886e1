//! Scalar reference of sinusoidal positions: Vaswani et al. 2017, section 3.5.

use super::Tokens;

/// Embeddings with the encoding added: `x[n, 2m] + sin(n / base^(2m/C))`, `x[n, 2m+1] + cos(n /
/// base^(2m/C))`.
pub fn embed(x: &Tokens, positions: &[usize], base: f64) -> Tokens {
    let mut out = x.clone();
    for (token, position) in out.iter_mut().zip(positions) {
        let width = token.len() as f64;
        for (channel, value) in token.iter_mut().enumerate() {
            let pair = (channel / 2) as f64;
            let angle = *position as f64 / base.powf(2.0 * pair / width);
            *value += if channel % 2 == 0 { angle.sin() } else { angle.cos() };
        }
    }
    out
}
