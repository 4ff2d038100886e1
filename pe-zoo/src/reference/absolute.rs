//! Scalar references of encodings of a token's position in its embedding.

use super::Tokens;

/// Embeddings with rows of a table added, `x[n] + table[row of n]`: for learned absolute positions (Gehring et al. 2017,
/// section 3.1) the rows are the positions, for Abacus its indices.
pub fn learned(x: &Tokens, rows: &[usize], table: &Tokens) -> Tokens {
    x.iter()
        .zip(rows)
        .map(|(token, row)| token.iter().zip(&table[*row]).map(|(a, b)| a + b).collect())
        .collect()
}

/// Embeddings with the sinusoidal encoding of Vaswani et al. 2017, section 3.5, added: `x[n, 2m] + sin(n / base^(2m/C))`, `x[n,
/// 2m+1] + cos(n / base^(2m/C))`.
pub fn sinusoidal(x: &Tokens, positions: &[usize], base: f64) -> Tokens {
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

/// Row of the table of Abacus for each token (McLeish et al. 2024, the authors' `abacus.py`): 1, 2, 3, … from the first digit
/// of each run, plus `offset`, at most `last`; 0 for tokens that are not digits.
pub fn abacus_indices(ids: &[usize], digits: [usize; 2], offset: usize, last: usize) -> Vec<usize> {
    let mut run = 0;
    ids.iter()
        .map(|id| {
            if *id < digits[0] || *id > digits[1] {
                run = 0;
                return 0;
            }
            run += 1;
            (run + offset).min(last)
        })
        .collect()
}
